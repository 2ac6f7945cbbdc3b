"""It learns: what attempts taught, how that reaches later ones, and whether it helps.

    journal ─► capture ─► .ralph/learnings/*.yaml ─┐                       ┌─► carry: the prompt
                                                   ├─► aggregate ─► index ─┤
    people, colleagues ─► learned.jsonl (tracked) ─┘   (doubts)            └─► publish: skills,
                                                                               CLAUDE.md, ...

The loop's side of it, none of which ever raises or ends a run:

* `select.carry` before a start: `Carried.text` is the learned part of the prompt, `Carried.share`
  is recorded with the iteration under `record["learning"]`.
* `capturing.capture` once the iteration's effects are done; it reads everything else from the
  journal and may be repeated.
* `publish.after_story` when a story ended; aggregates every fifth.
* `publish.at_end` when a run ended: the shared file, skills and the managed block, in a commit of
  their own; returns what was done, in words.
"""

from __future__ import annotations

# Generated files: they are never progress and never dirt.
OWN_FILES = (
    ".claude/skills/*-learned/",
    ".claude/commands/*-learned.md*",
    ".claude/learned.jsonl",
    "learned.jsonl",
)
