"""What an agent answers when it is asked for a plan: read strictly, believed in nothing.

The answer is one JSON object with questions or with stories.  Every mistake in it is a sentence,
and all of them go back to the agent at once.  Each criterion says beside what is wanted how it will
be seen; one without that, or in the eye of the beholder, is a mistake like a missing comma.

The words are a model's: bounded, without control characters, secrets taken out, and a command among
them is text until a person says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from ralphloop.errors import InputError
from ralphloop.plan.convert import Entry, made
from ralphloop.plan.draft import Draft, Shelf, drafted, split_parts
from ralphloop.redaction import redact
from ralphloop.stories.documents import JsonDocument
from ralphloop.stories.lint import as_lines, is_observable, vague
from ralphloop.stories.names import quoted
from ralphloop.stories.shapes import Problems
from ralphloop.text.plain import clean, one_line

MOST_QUESTIONS = 5
MOST_PROPOSED = 40
_LONGEST_ANSWER = 400_000
_FENCE = re.compile(r"^[ \t]*```[a-zA-Z]*[ \t]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)

_Line = Annotated[str, Meta(min_length=3, max_length=500)]
_Word = Annotated[str, Meta(min_length=1, max_length=500)]
_T = TypeVar("_T")
_Few = Annotated[list[_Word], Meta(max_length=40)]


class _Asked(msgspec.Struct, forbid_unknown_fields=True):
    text: _Line
    seen: _Line  # a test, a command, something that can be observed


class _Proposed(msgspec.Struct, forbid_unknown_fields=True, kw_only=True):
    id: Annotated[str, Meta(min_length=1, max_length=60)]
    title: Annotated[str, Meta(min_length=3, max_length=160)]
    description: Annotated[str, Meta(max_length=4000)] = ""
    criteria: Annotated[list[_Asked], Meta(min_length=1, max_length=20)]
    verify: _Few | _Word | None = None
    dependsOn: _Few = []  # noqa: N815 as prd.json calls it
    touches: _Few = []


class Question(msgspec.Struct, forbid_unknown_fields=True):
    """What the agent cannot find out and a person may know; an empty answer takes the proposal."""

    question: _Line
    proposed: _Word
    why: Annotated[str, Meta(max_length=500)] = ""
    answer: Annotated[str, Meta(max_length=4000)] = ""

    @property
    def settled(self) -> str:
        return self.answer.strip() or self.proposed


class Mistakes(Exception):
    """Why an answer cannot be used, one sentence each."""

    def __init__(self, lines: Iterable[str]) -> None:
        self.lines = list(lines)
        super().__init__("; ".join(self.lines))


class Proposal(NamedTuple):
    """An answer that has the right form."""

    questions: list[Question]
    entries: list[Entry]
    unseen: list[str]  # criteria that do not say how they will be seen


def read_answer(text: str, *, secrets: Sequence[str] = (), may_ask: bool) -> Proposal:
    """The questions or the stories of an answer; raises `Mistakes`."""
    root = _object(clean(redact(text[:_LONGEST_ANSWER], secrets)))
    if unknown := root.keys() - {"questions", "stories"}:
        raise Mistakes(
            [f"unknown key {quoted(str(min(unknown, key=str)))}: only questions or stories"]
        )
    mistakes: list[str] = []
    questions = list(_each(root.get("questions"), "questions", Question, mistakes))
    stories = list(_each(root.get("stories"), "stories", _Proposed, mistakes))
    if questions and not may_ask:
        mistakes.append("questions: everything that can be answered was; propose the stories now")
    elif len(questions) > MOST_QUESTIONS:
        mistakes.append(f"questions: at most {MOST_QUESTIONS}, found {len(questions)}")
    elif not questions and not stories and not mistakes:
        mistakes.append("stories: there are none")
    if len(stories) > MOST_PROPOSED:
        mistakes.append(
            f"stories: at most {MOST_PROPOSED}, found {len(stories)}; plan the first ones"
        )
    if mistakes:
        raise Mistakes(mistakes)
    # Whoever asks and proposes at once has not heard the answers yet.
    unseen = [line for story in stories for line in _unseen(story)]
    return Proposal(questions, [] if questions else [_entry(story) for story in stories], unseen)


def _object(text: str) -> dict[str, object]:
    """The JSON object of an answer, alone, in a fence or among words."""
    fenced = _FENCE.findall(text)
    begin, end = text.find("{"), text.rfind("}")
    found = next((one for one in (text, *reversed(fenced)) if one.strip().startswith("{")), "")
    found = found or (text[begin : end + 1] if 0 <= begin < end else "")
    if not found.strip():
        raise Mistakes(["there is no JSON object in the answer"])
    problems = Problems(Path("answer"))
    try:
        data = JsonDocument(found.strip(), problems).data
        problems.raise_if_any()
    except InputError as error:
        raise Mistakes([error.message.removeprefix("answer: ")]) from None
    if not isinstance(data, dict):
        raise Mistakes(["the answer must be one JSON object"])
    return data


def _each(raw: object, key: str, kind: type[_T], mistakes: list[str]) -> Iterator[_T]:
    """Every entry that has the right form; the others are mistakes."""
    if raw is None:
        return
    if not isinstance(raw, list):
        mistakes.append(f"{key}: must be a list")
        return
    for index, one in enumerate(raw[: 2 * MOST_PROPOSED]):
        try:
            yield msgspec.convert(one, kind)
        except msgspec.ValidationError as error:
            mistakes.append(f"{key}[{index}]: {one_line(str(error), 300)}")


def _unseen(story: _Proposed) -> Iterator[str]:
    """Criteria that do not say how they will be seen."""
    for asked in story.criteria:
        if words := vague(asked.text):
            yield f"{story.id}: {quoted(asked.text)} cannot be checked: {words}"
        elif not is_observable(asked.seen):
            fix = "name a test, a command or what is observed"
            yield f"{story.id}: {quoted(asked.text)} is not seen by {quoted(asked.seen)}: {fix}"


def _entry(story: _Proposed) -> Entry:
    return made(
        id=story.id,
        title=one_line(story.title, 160),
        description=story.description.strip(),
        acceptanceCriteria=[
            f"{one.text.strip()} (seen: {one.seen.strip()})" for one in story.criteria
        ],
        verify=story.verify,
        dependsOn=story.dependsOn,
        touches=story.touches,
    )


def weighed(
    entries: list[Entry], shelf: Shelf, split: str = "", note: str = ""
) -> tuple[Draft, list[str]]:
    """The plan and what the linter refuses in it; raises `Mistakes` where it cannot be run."""
    clash = [str(entry["id"]) for entry in entries if str(entry["id"]) in shelf.titles]
    if clash:
        raise Mistakes(f"the id {quoted(name)} is a story of the list already" for name in clash)
    try:
        if split:
            draft = split_parts(shelf, shelf.story(split), entries, note)
        else:
            draft = drafted(entries, shelf, renumber=True)
    except InputError as error:
        lines = [line.strip() for line in error.message.splitlines()]
        raise Mistakes(lines[1:] if len(lines) > 1 else lines) from None
    return draft, list(as_lines(draft.remarks))
