"""It learns: what attempts taught, how that reaches later ones, and whether it helps.

    journal ─► capture ─► .ralph/learnings/*.yaml ─┐                       ┌─► carry: the prompt
                                                   ├─► aggregate ─► index ─┤
    people, colleagues ─► learned.jsonl (tracked) ─┘   (doubts)            └─► publish: skills,
                                                                               CLAUDE.md, ...

The loop calls `select.carry` before a start, `capturing.capture` once an iteration's effects are
done, `publish.after_story` and `publish.at_end`; none of them ever raises or ends a run.
"""

# Generated files: they are never progress and never dirt.
OWN_FILES = (
    ".claude/skills/*-learned/",
    ".claude/commands/*-learned.md*",
    ".claude/learned.jsonl",
    "learned.jsonl",
)
