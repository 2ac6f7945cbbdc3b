"""`ralph run --dry-run`: what would be done, and nothing done."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import Any

from ralphloop.cli import output
from ralphloop.core.planning import choose
from ralphloop.core.session import Frozen, Session
from ralphloop.journal.queries import JournalReader
from ralphloop.journal.session import load_session
from ralphloop.loop.briefing import brief
from ralphloop.loop.setup import Setup
from ralphloop.night.look import Placed, arranged
from ralphloop.prompts import Prompt


def show_plan(setup: Setup, *, as_json: bool) -> None:
    """Print stories in order and why, the checks, and the first prompt."""
    session = _session(setup)
    listed = arranged(setup.stories.list, session.stories) if setup.stories else ()
    steps = [placed for placed in listed if not placed.look.story.passes]
    prompt = _first_prompt(setup, session)
    if as_json:
        output.emit_json(_as_data(setup, steps, prompt))
    else:
        output.emit_lines(_as_lines(setup, steps, prompt))


def _session(setup: Setup) -> Session:
    frozen = Frozen(checks=setup.config.checks.commands)
    with JournalReader.open(setup.project.journal) as journal:
        latest = journal.latest_run()
        session = load_session(journal, latest.id) if latest else Session(run="dry-run")
    session.frozen = frozen
    return session


def _first_prompt(setup: Setup, session: Session) -> Prompt | None:
    if setup.stories is None:
        return brief(setup, session, None, None)
    choice = choose(setup.stories.list, session.stories, only=setup.options.only)
    return brief(setup, session, choice.story, setup.stories.list) if choice else None


def _as_lines(setup: Setup, steps: list[Placed], prompt: Prompt | None) -> Iterator[str]:
    yield f"project  {setup.project.root}"
    yield f"agent    {setup.config.agent.name} {setup.config.agent.model}".rstrip()
    checks = " · ".join(shlex.join(argv) for argv in setup.config.checks.commands)
    yield f"checks   {checks or 'none: stories can only be claimed'}"
    if steps:
        yield "stories"
    for step in steps:
        mark = f"{step.position:>3}." if step.position else "  - "
        yield f"  {mark} {output.safe(step.look.story.id)}: {output.safe(step.look.story.title)}"
        yield f"       {output.safe(step.why)}"
    if prompt is None:
        yield "Nothing can run; see ralph stories."
        return
    yield f"first prompt: about {prompt.estimated_tokens:,} tokens"
    for part in prompt.left_out:
        yield f"  left out: {part}"
    yield ""
    yield output.safe(prompt.text)


def _as_data(setup: Setup, steps: list[Placed], prompt: Prompt | None) -> dict[str, Any]:
    return {
        "project": str(setup.project.root),
        "agent": str(setup.config.agent.name),
        "checks": [list(argv) for argv in setup.config.checks.commands],
        "stories": [
            {
                "id": s.look.story.id,
                "title": s.look.story.title,
                "runs": s.position is not None,
                "reason": s.why,
            }
            for s in steps
        ],
        "prompt_tokens": prompt.estimated_tokens if prompt else 0,
        "prompt": prompt.text if prompt else None,
    }
