"""The results as a table and a picture that a person reads."""

from __future__ import annotations

from html import escape
from typing import Any, NamedTuple

STORIES = 4  # of each night


class Sums(NamedTuple):
    """All nights of one supervisor together."""

    nights: int
    done: int
    false: int
    admitted: int  # called done, false, and said by itself to be unproven
    lost: int
    not_whole: int  # nights after which something is not done
    told: int  # of these, the ones of which a person is told
    cut: int
    left_running: int
    starts: int
    dollars: float
    wall_s: float
    wasted: float  # the part of all tokens that left nothing


def table(whole: dict[str, Any]) -> str:
    """Markdown: all nights together, what a person is told, and each night; a column for each."""
    names = list(whole["versions"])
    parts = (_summary(whole, names), _knowing(whole, names), _nights(whole, names))
    return "\n\n".join(parts)


def _summary(whole: dict[str, Any], names: list[str]) -> str:
    lines = [
        "| | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    sums = [sums_of(whole, name) for name in names]
    rows = (
        ("stories truly done", [f"{it.done} of {STORIES * it.nights}" for it in sums]),
        ("falsely called done", [_false_words(it) for it in sums]),
        ("done work lost", [str(it.lost) for it in sums]),
        ("told when something is not done", [f"{it.told} of {it.not_whole}" for it in sums]),
        ("nights still going when time was up", [str(it.cut) for it in sums]),
        ("processes left running", [str(it.left_running) for it in sums]),
        ("starts of the agent", [str(it.starts) for it in sums]),
        ("paid", [f"${it.dollars:.2f}" for it in sums]),
        ("all nights took", [f"{it.wall_s / 60:.0f} min" for it in sums]),
        ("tokens that left nothing", [f"{100 * it.wasted:.0f} %" for it in sums]),
    )
    lines += [f"| {label} | " + " | ".join(cells) + " |" for label, cells in rows]
    return "\n".join(lines)


def costs(whole: dict[str, Any]) -> str:
    """Markdown: what one truly done story cost each supervisor, with a real model."""
    lines = [
        "| supervisor | truly done | falsely called done | paid | paid for one |",
        "|---" * 5 + "|",
    ]
    for name in whole["versions"]:
        sums = sums_of(whole, name)
        each = f"${sums.dollars / sums.done:.2f}" if sums.done else "nothing done"
        lines.append(f"| {name} | {sums.done} | {sums.false} | ${sums.dollars:.2f} | {each} |")
    return "\n".join(lines)


def _false_words(sums: Sums) -> str:
    if sums.admitted:
        return f"{sums.false}, {sums.admitted} of them said to be unproven"
    return str(sums.false)


def sums_of(whole: dict[str, Any], name: str) -> Sums:
    """What one supervisor reached in all nights that were run."""
    mine = [it for it in whole["results"] if it["supervisor"] == name]
    tokens = sum(it["tokens"] for it in mine)
    wasted = sum(it["tokens_wasted"] or 0 for it in mine)
    admitted = [it["falsely_done"] - it["proven_falsely"] for it in mine if _knows_proof(it)]
    return Sums(
        nights=len(mine),
        done=sum(it["truly_done"] for it in mine),
        false=sum(it["falsely_done"] for it in mine),
        admitted=sum(admitted),
        lost=sum(it["work_lost"] for it in mine),
        not_whole=len([it for it in mine if _is_not_whole(it)]),
        told=len([it for it in mine if _is_not_whole(it) and it["known_after_s"] is not None]),
        cut=len([it for it in mine if _is_cut(it)]),
        left_running=sum(it["left_running"] for it in mine),
        starts=sum(it["starts"] for it in mine),
        dollars=sum(it["dollars"] for it in mine),
        wall_s=sum(it["wall_s"] for it in mine),
        wasted=wasted / tokens if tokens else 0.0,
    )


def _knows_proof(result: dict[str, Any]) -> bool:
    return result["proven_falsely"] is not None


def _is_not_whole(result: dict[str, Any]) -> bool:
    return bool(result["truly_done"] < STORIES)


def _is_cut(result: dict[str, Any]) -> bool:
    return bool(result["ended"] == "cut off")


def _knowing(whole: dict[str, Any], names: list[str]) -> str:
    """How long until a person is told, of the nights in which somebody left something undone."""
    by_place = {(it["night"], it["supervisor"]): it for it in whole["results"]}
    lines = [
        "| until a person knows | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    for night in whole["nights"]:
        results = [by_place.get((night, name)) for name in names]
        if any(it is not None and _is_not_whole(it) for it in results):
            lines.append(f"| {night} | " + " | ".join(map(_known, results)) + " |")
    return "\n".join(lines)


def _known(result: dict[str, Any] | None) -> str:
    if result is None:
        return ""
    if not _is_not_whole(result):
        return "all done"
    if _is_cut(result):
        return f"not in {result['wall_s']:.0f} s"
    if result["known_after_s"] is None:
        return "**never**"
    return f"{result['known_after_s']:.0f} s"


def _nights(whole: dict[str, Any], names: list[str]) -> str:
    by_place = {(it["night"], it["supervisor"]): it for it in whole["results"]}
    lines = [
        "| night | " + " | ".join(names) + " |",
        "|---" * (len(names) + 1) + "|",
    ]
    for night in whole["nights"]:
        cells = [_cell(by_place.get((night, name))) for name in names]
        lines.append(f"| {night} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def _cell(result: dict[str, Any] | None) -> str:
    if result is None:
        return ""
    words = [f"{result['truly_done']} done"]
    if result["falsely_done"]:
        words.append(f"**{result['falsely_done']} false**{_admitted(result)}")
    if result["work_lost"]:
        words.append(f"{result['work_lost']} lost")
    words.append(_starts(result["starts"]))
    words.append(f"${result['dollars']:.2f}")
    if _is_cut(result):
        words.append(f"still going after {result['wall_s']:.0f} s")
    else:
        words += [f"{result['wall_s']:.0f} s", f"exit {result['exit_code']}"]
    return ", ".join(words)


def _starts(count: int) -> str:
    return "1 start" if count == 1 else f"{count} starts"


def _admitted(result: dict[str, Any]) -> str:
    """Whether it said itself that what is false was not proven."""
    if result["proven_falsely"] is None or result["proven_falsely"]:
        return ""
    return " (said to be unproven)"


_COLOURS = "truly done (green), falsely called done (red; amber: and said to be unproven)"
_ROW = 34
_BAR = 460
_LEFT = 230


def picture(whole: dict[str, Any]) -> str:
    """An SVG: per supervisor how much was truly done, falsely called done, and neither."""
    names = list(whole["versions"])
    height = 60 + _ROW * len(names)
    title = f"{len(whole['nights'])} nights of {STORIES} stories"
    head = f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 800 {height}" role="img"'
    parts = [
        f'{head} font-family="system-ui, sans-serif" font-size="14">',
        '<rect width="100%" height="100%" fill="#ffffff"/>',
        f'<text x="16" y="26" font-weight="600">{title}</text>',
        f'<text x="230" y="26">{_COLOURS}</text>',
    ]
    for row, name in enumerate(names):
        sums = sums_of(whole, name)
        top = 44 + _ROW * row
        most = max(1, STORIES * sums.nights)
        done = _BAR * sums.done / most
        unsaid = _BAR * (sums.false - sums.admitted) / most
        admitted = _BAR * sums.admitted / most
        parts.append(f'<text x="16" y="{top + 16}">{escape(name)}</text>')
        parts.append(_bar(_LEFT, top, _BAR, "#e5e7eb"))
        parts.append(_bar(_LEFT, top, done, "#15803d"))
        parts.append(_bar(_LEFT + done, top, unsaid, "#b91c1c"))
        parts.append(_bar(_LEFT + done + unsaid, top, admitted, "#d97706"))
        words = f"{sums.done} / {sums.false}"
        parts.append(f'<text x="{_LEFT + _BAR + 10}" y="{top + 16}">{words}</text>')
    parts.append("</svg>")
    return "\n".join(parts) + "\n"


def _bar(left: float, top: int, width: float, colour: str) -> str:
    return f'<rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="22" fill="{colour}"/>'
