"""The replays as tables: what a grade is worth, what each agent got, and each problem."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from benchmarks.checkpoints.play import AGENTS, Replay


def table(replays: Iterable[Replay]) -> str:
    """Markdown: what a grade is worth, grades per agent, and each problem."""
    told = list(replays)
    played = [it for it in told if not it.note]
    parts = [_worth(played), _agents(played), _problems(told), _age(played)]
    return "\n\n".join(parts)


def _age(played: Sequence[Replay]) -> str:
    """By which sources of ours they were judged, as git names them."""
    counted = Counter(it.code for it in played).most_common()
    parts = [
        f"{count} by `{code}`" if code else f"{count} by older ones" for code, count in counted
    ]
    return f"Judged by this source of ours: {', '.join(parts)}."


def _worth(played: Sequence[Replay]) -> str:
    """How often a grade was right: of everybody, and without what knows the tests by heart."""
    lines = [
        "| grade | stories | right by the hidden tests | without the table | right |",
        "|---" * 5 + "|",
    ]
    for grade in ("verified", "checked"):
        mine = [it for it in played if it.grade == grade]
        others = [it for it in mine if it.agent != "table"]
        cells = [_count(mine), _right(mine), _count(others), _right(others)]
        lines.append(f"| {grade} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _count(replays: Sequence[Replay]) -> str:
    return str(len(replays))


def _right(replays: Sequence[Replay]) -> str:
    right = sum(it.is_right for it in replays)
    share = f", {100 * right / len(replays):.0f} %" if replays else ""
    return f"{right}{share}"


def _agents(played: Sequence[Replay]) -> str:
    heads = "agent stories right verified wrong checked claimed review failed".split()
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for agent in AGENTS:
        mine = [it for it in played if it.agent == agent]
        grades = Counter(it.grade or "not passed" for it in mine)
        lied = sum(it.grade == "verified" and not it.is_right for it in mine)
        lines.append(
            f"| {agent} | {len(mine)} | {sum(it.is_right for it in mine)} | {grades['verified']}"
            f" | {lied} | {grades['checked']} | {grades['claimed']} | {grades['needs review']}"
            f" | {grades['not passed']} |"
        )
    return "\n".join(lines)


_LETTERS = {"verified": "V", "checked": "C", "claimed": "C", "": "–"}


def _problems(told: Sequence[Replay]) -> str:
    """One row a problem: the grade at each checkpoint, with a mark where it is wrong."""
    lines = ["| problem | " + " | ".join(AGENTS) + " |", "|---" * (len(AGENTS) + 1) + "|"]
    for problem in sorted({it.problem for it in told}):
        cells = []
        for agent in AGENTS:
            mine = [it for it in told if it.problem == problem and it.agent == agent]
            cells.append(" ".join(map(_cell, sorted(mine, key=lambda it: it.checkpoint))))
        lines.append(f"| {problem} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(replay: Replay) -> str:
    if replay.note:
        return "·"
    letter = _LETTERS.get(replay.grade, "R")
    return f"**{letter}!**" if replay.grade == "verified" and not replay.is_right else letter
