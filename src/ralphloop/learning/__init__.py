"""What attempts taught, how that reaches later ones, whether it helps; none of it ever ends a run.

journal ─► capture ─► .ralph/learnings/*.yaml ─┐                       ┌─► carry: the prompt
                                               ├─► aggregate ─► index ─┤
people, colleagues ─► learned.jsonl (tracked) ─┘   (doubts)            └─► publish: skills,
                                                                           CLAUDE.md, ...
"""

SHARED_FILES = (".claude/learned.jsonl", "learned.jsonl")  # beside the skills, or the memory file
# Generated files: they are never progress and never dirt.
OWN_FILES = (
    ".claude/skills/*-learned/",
    ".agents/skills/*-learned/",
    ".claude/commands/*-learned.md*",
    *SHARED_FILES,
)
