"""Items of a queue that others fill: what each gives, how far it is, and what is told about it.

An item gives a title, a text and criteria.  It never gives a command, a path or a setting.
"""

import re
from collections.abc import Iterable, Iterator
from enum import StrEnum
from typing import NamedTuple

from ralphloop.core.criteria import CriterionEvidence
from ralphloop.core.model import Value
from ralphloop.text.headings import CRITERIA_HEADINGS

LARGEST_ITEM = 20_000
MOST_CRITERIA = 20
_LONGEST_CRITERION = 300
_LONGEST_HEADING = 80
_CRITERIA = CRITERIA_HEADINGS | {"criteria", "done when", "definition of done", "acceptance"}
_BULLET = re.compile(r"\s{0,12}(?:[-*+]|\d{1,3}[.)])\s+(?:\[([ xX])\]\s+)?(\S.*)")


class QueueItem(Value, kw_only=True):
    """What somebody wants, as the queue tells it."""

    id: str
    title: str
    text: str = ""
    criteria: tuple[str, ...] = ()
    by: str = ""
    url: str = ""


class QueueStage(StrEnum):
    CLAIMING = "claiming"  # written ahead: it may be ours
    ASKED = "asked"  # it cannot be checked as it is; a question waits
    STORY = "story"  # a story of the list
    OVER = "over"  # everything was told


class QueueEntry(Value, kw_only=True):
    """An item that we took, and how far it is."""

    item: QueueItem
    queue: str  # which one, as it was typed
    token: str  # by which our claim is known
    stage: QueueStage = QueueStage.CLAIMING
    story: str = ""
    told: tuple[str, ...] = ()  # keys of what was told
    answers: tuple[str, ...] = ()  # to the question about its criteria
    heard: tuple[str, ...] = ()  # ids of answers that were taken


class QueueAnswer(Value, kw_only=True):
    """What somebody who may answer said since we asked."""

    id: str
    text: str
    by: str = ""


class ReportKind(StrEnum):
    STARTED = "started"
    QUESTION = "question"  # about its criteria
    PASSED = "passed"
    WAITS = "waits"  # for an answer
    FAILED = "failed"


class QueueReport(Value, kw_only=True):
    """What is told about an item."""

    id: str
    kind: ReportKind
    key: str  # the same for the same news: told once
    text: str
    story: str = ""
    grade: str = ""
    commit: str = ""
    criteria: tuple[CriterionEvidence, ...] = ()


class _Bullet(NamedTuple):
    box: str  # a space, a cross, or empty where it has none
    words: str


def criteria_in(text: str) -> list[str]:
    """The criteria that a text lists: below a heading that says so, else its open boxes."""
    below = [*_below_heading(text.splitlines())]
    found = below or [one.words for one in _bullets(text.splitlines()) if one.box == " "]
    return [words[:_LONGEST_CRITERION].strip() for words in found][:MOST_CRITERIA]


def _below_heading(lines: Iterable[str]) -> Iterator[str]:
    is_inside = False
    for line in lines:
        bullet = _BULLET.fullmatch(line)
        if bullet is not None:
            if is_inside:
                yield bullet[2]
            continue
        plain = line.strip()
        is_heading = plain.startswith(("#", "**")) or plain.endswith(":")
        if is_heading and len(plain) <= _LONGEST_HEADING:
            is_inside = plain.strip("#*: ").lower() in _CRITERIA


def _bullets(lines: Iterable[str]) -> Iterator[_Bullet]:
    for line in lines:
        bullet = _BULLET.fullmatch(line)
        if bullet is not None:
            yield _Bullet(bullet[1] or "", bullet[2])


def criteria_of_answer(text: str) -> list[str]:
    """What an answer to the question about criteria lists: its bullets, else each line."""
    lines = text.splitlines()
    listed = [one.words for one in _bullets(lines)]
    found = listed or [line.strip() for line in lines if line.strip()]
    return [words[:_LONGEST_CRITERION] for words in found][:MOST_CRITERIA]
