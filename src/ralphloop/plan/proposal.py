"""What an agent answers when it is asked for a plan: read strictly, believed in nothing.

The answer is one JSON object with questions or with stories.  Every mistake in it is a sentence,
and all of them go back to the agent at once.  Each criterion says beside what is wanted how it will
be seen; one without that, or in the eye of the beholder, is a mistake like a missing comma.

The words are a model's: bounded, without control characters, secrets taken out, and a command among
them is text until a person says otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from ralphloop.errors import InputError
from ralphloop.plan.convert import Entry, made
from ralphloop.plan.draft import Draft, Shelf, drafted, split_parts
from ralphloop.redaction import redact
from ralphloop.stories.documents import JsonDocument
from ralphloop.stories.lint import is_observable, vague
from ralphloop.stories.names import quoted
from ralphloop.stories.shapes import Problems
from ralphloop.text.plain import clean, one_line

MOST_QUESTIONS = 5
MOST_PROPOSED = 40
ANSWER = "answer"
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


class Proposal(NamedTuple):
    """An answer that has the right form."""

    questions: list[Question]
    entries: list[Entry]
    unseen: list[str]  # criteria that do not say how they will be seen


def read_answer(text: str, *, secrets: Sequence[str] = (), may_ask: bool) -> Proposal:
    """The questions or the stories of an answer; InputError says all that is wrong with it."""
    problems = Problems(Path(ANSWER))
    root = _plain(_object(text[:_LONGEST_ANSWER], problems), secrets)
    if not isinstance(root, dict) or not root.keys() <= {"questions", "stories"}:
        raise problems.fail("", "must be one object with nothing but questions or stories")
    questions = list(_each(root, "questions", Question, problems))
    stories = list(_each(root, "stories", _Proposed, problems))
    if questions and not may_ask:
        problems.add("questions", "everything that can be answered was; propose the stories now")
    if len(questions) > MOST_QUESTIONS:
        problems.add("questions", f"at most {MOST_QUESTIONS}, found {len(questions)}")
    if not root.get("questions") and not root.get("stories"):
        problems.add("stories", "there are none")
    problems.raise_if_any()
    # Whoever asks and proposes at once has not heard the answers yet.
    stories = [] if questions else stories
    unseen = [line for story in stories for line in _unseen(story)]
    return Proposal(questions, [_entry(story) for story in stories], unseen)


def _object(text: str, problems: Problems) -> object:
    """The JSON of an answer, alone, in a fence or among words."""
    whole = text[text.find("{") : text.rfind("}") + 1]
    fenced = [one for one in _FENCE.findall(text) if one.lstrip().startswith("{")]
    found = text.strip() if text.lstrip().startswith("{") else (fenced or [whole])[-1].strip()
    if not found:
        raise problems.fail("", "there is no JSON object in it")
    data = JsonDocument(found, problems).data
    problems.raise_if_any()
    return data


def _plain(value: object, secrets: Sequence[str]) -> object:
    """The same with words that do no more than be read."""
    if isinstance(value, str):
        return clean(redact(value, secrets)).strip()
    if isinstance(value, list):
        return [_plain(one, secrets) for one in value]
    if isinstance(value, dict):
        return {str(key): _plain(one, secrets) for key, one in value.items()}
    return value


def _each(root: dict[str, object], key: str, kind: type[_T], problems: Problems) -> Iterator[_T]:
    """Every entry that has the right form; the others are problems."""
    raw = root.get(key) or []
    if not isinstance(raw, list) or len(raw) > MOST_PROPOSED:
        raise problems.fail(key, f"must be a list of at most {MOST_PROPOSED}")
    for index, one in enumerate(raw):
        try:
            yield msgspec.convert(one, kind)
        except msgspec.ValidationError as error:
            problems.add(f"{key}[{index}]", one_line(str(error), 300))


def _unseen(story: _Proposed) -> Iterator[str]:
    """Criteria that do not say how they will be seen."""
    for asked in story.criteria:
        if words := vague(asked.text):
            yield f"{story.id}: {quoted(asked.text)} cannot be checked: {words}"
        elif not is_observable(asked.seen):
            fix = "name a test, a command or what is observed"
            yield f"{story.id}: {quoted(asked.text)} is not seen by {quoted(asked.seen)}: {fix}"


def _entry(story: _Proposed) -> Entry:
    criteria = [f"{one.text} (seen: {one.seen})" for one in story.criteria]
    own = {name: getattr(story, name) for name in _Proposed.__struct_fields__ if name != "criteria"}
    return made(**own | {"title": one_line(story.title), "acceptanceCriteria": criteria})


def weighed(entries: list[Entry], shelf: Shelf, split: str = "", note: str = "") -> Draft:
    """The plan, with remarks; InputError where it cannot be run."""
    if clash := [name for entry in entries if (name := str(entry["id"])) in shelf.titles]:
        raise InputError(f"the id {quoted(clash[0])} is a story of the list already")
    if story := next((one for one in shelf.stories if one.id == split), None):
        return split_parts(shelf, story, entries, note)
    return drafted(entries, shelf, renumber=True)
