"""It learns: what attempts taught, how that reaches later ones, and whether it helps.

    journal ─► capture ─► .ralph/learnings/*.yaml ─► aggregate ─► index.json ─┬─► carry: the prompt
                                                                             └─► skills, CLAUDE.md

The loop's side of it, none of which ever raises or ends a run:

* `carry(project, story, config=…, agent=…)` before a start: `Carried.text` is the learned part of
  the prompt, the rest (`ids`, `skills`, `tokens`, `held_out`) is recorded with the iteration under
  `record["learning"]`.
* `ask(…)` after an attempt was judged, if `learning.ask_agent`: its notes are recorded under
  `record["learning"]["asked"]`, its usage is added to what the iteration spent.
* `capture(project, journal, run, n, story, commit=…, secrets=…)` once the iteration's effects are
  done; it reads everything else from the journal and may be repeated.
* `after_story(project, config, ended_stories=…, now=…)` when a story ended; aggregates every fifth.
* `at_end(project, repo, config, run=…, commit=…, now=…)` when a run ended: skills and the managed
  block, in a commit of their own; returns what was done, in words.

`OWN_FILES` are the generated files: they are never progress and never dirt.  The other names are
resolved when they are used.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ralphloop.learning.capturing import Captured, capture, ended_as
    from ralphloop.learning.model import Carried
    from ralphloop.learning.publish import after_story, at_end
    from ralphloop.learning.select import carry

OWN_FILES = (".claude/skills/*-learned/", ".claude/commands/*-learned.md*")

__all__ = [
    "OWN_FILES",
    "Captured",
    "Carried",
    "after_story",
    "at_end",
    "capture",
    "carry",
    "ended_as",
]

_HOMES = {
    "Captured": "capturing",
    "Carried": "model",
    "after_story": "publish",
    "at_end": "publish",
    "capture": "capturing",
    "carry": "select",
    "ended_as": "capturing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
