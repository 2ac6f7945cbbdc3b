"""The talk that makes a plan: what the agent is told, what it answers, what goes back.

A proposal with mistakes goes back with every one of them, three times at most.  What only the
linter refuses after that is shown to the person, who decides; what cannot be run ends it.

An answer is read strictly and believed in nothing.  A criterion that does not say how it will be
seen is a mistake like a missing comma.  The words are a model's: bounded, without control
characters, secrets taken out, and a command among them is text until a person says otherwise.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path
from typing import Annotated, NamedTuple, TypeVar

import msgspec
from msgspec import Meta

from ralphloop.core.model import Story
from ralphloop.core.run_state import StoryState
from ralphloop.errors import InputError
from ralphloop.loop.prepare import Setup
from ralphloop.plan.asking import Asker
from ralphloop.plan.draft import Draft, Shelf, drafted, split_parts
from ralphloop.plan.importers.reading import Entry, made
from ralphloop.prompts import fenced
from ralphloop.redaction import redact, secret_values
from ralphloop.stories.documents import JsonDocument
from ralphloop.stories.lint import as_lines, is_observable, vague
from ralphloop.stories.names import label, next_id, quoted
from ralphloop.stories.shapes import Problems
from ralphloop.text.plain import clean, counted, one_line

MOST_QUESTIONS = 5
MOST_PROPOSED = 40
ANSWER = "answer"
_LONGEST_ANSWER = 400_000
_FENCE = re.compile(r"^[ \t]*```[a-zA-Z]*[ \t]*\n(.*?)^[ \t]*```", re.MULTILINE | re.DOTALL)
_Line = Annotated[str, Meta(min_length=3, max_length=500)]
_Word = Annotated[str, Meta(min_length=1, max_length=500)]
_T = TypeVar("_T")
_Few = Annotated[list[_Word], Meta(max_length=40)]
REPAIRS = 3
_EVERYBODYS = ("CHANGELOG", "CHANGES", "HISTORY", "NEWS")
_LONGEST_TEXT = 100_000
_LONGEST_FAILURE = 6_000
_MOST_LISTED = 200
_MOST_TOLD = 20
_TELLING = (
    "Everything that could be asked was answered, in the text below: propose the stories now."
)
_REPAIR = (
    "Your answer cannot be used. What is wrong:\n\n{}\n\n"
    "Mend exactly this and answer again with the whole JSON object and nothing else."
)


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


class PlanQuestion(msgspec.Struct, forbid_unknown_fields=True):
    """What the agent cannot find out and a person may know; an empty answer takes the proposal."""

    question: _Line
    proposed: _Word
    why: Annotated[str, Meta(max_length=500)] = ""
    answer: Annotated[str, Meta(max_length=4000)] = ""


class PlanAnswer(NamedTuple):
    """What an agent answered: questions, or stories."""

    asked: list[PlanQuestion]
    entries: list[Entry]
    unseen: list[str]  # criteria that do not say how they will be seen


class ProposedPlan(NamedTuple):
    draft: Draft
    refused: list[str]  # what the linter still refuses in it
    answers: tuple[PlanQuestion, ...]  # what was asked on the way


class Brief(NamedTuple):
    text: str
    shelf: Shelf
    split: str = ""  # the story to make smaller
    left_at: str = ""  # where the work of that story is kept
    answers: tuple[PlanQuestion, ...] = ()


def propose(
    asker: Asker,
    setup: Setup,
    brief: Brief,
    ask_person: Callable[[list[PlanQuestion]], list[PlanQuestion]],
    tell: Callable[[str], None],
) -> ProposedPlan:
    """The plan, what the linter still refuses in it, and what was asked on the way."""
    secrets = secret_values(setup.options.env)
    best: ProposedPlan | None = None
    mistakes = list[str]()
    again = ""
    repairs = 0
    may_ask = not brief.answers
    where = f" What its attempts left: git show {brief.left_at}" if brief.left_at else ""
    left = f"A part of {brief.split}, which was split.{where}" if brief.split else ""
    has_answers = False  # and nothing else is to be said
    while repairs <= REPAIRS:
        prompt = prompt_for(brief, setup, may_ask=may_ask)
        said = asker.ask(prompt, again, is_in_prompt=has_answers)
        has_answers = False
        try:
            asked, entries, unseen = read_answer(said, secrets=secrets, may_ask=may_ask)
            if asked:
                brief = brief._replace(answers=tuple(ask_person(asked)))
                may_ask = False
                has_answers = True
                again = f"The answers:\n\n{fenced(_settled(brief.answers))}\n\n{_TELLING}"
                continue
            draft = weighed(entries, brief.shelf, brief.split, left)
            mistakes = [*unseen, *as_lines(draft.remarks)]
            best = ProposedPlan(draft, mistakes, brief.answers)
        except InputError as error:
            lines = error.message.removeprefix(f"{ANSWER}: ").splitlines()
            mistakes = [line.strip() for line in lines[len(lines) > 1 :]]
        if not mistakes:
            break
        repairs += 1
        if repairs <= REPAIRS:
            tell(f"{counted(len(mistakes), 'mistake')} in the answer, sent back: {mistakes[0]}")
        again = _REPAIR.format("\n".join(f"- {one_line(it, 400)}" for it in mistakes[:_MOST_TOLD]))
    if best is None:
        told = "\n  ".join(mistakes[:_MOST_TOLD])
        step = "Plan a smaller piece, or try another --model. Nothing was written."
        raise InputError(f"no usable plan after {counted(REPAIRS, 'repair')}:\n  {told}", step)
    return best


def prompt_for(brief: Brief, setup: Setup, *, may_ask: bool) -> str:
    how = [_data("questions") if may_ask else _TELLING, *([_data("split")] if brief.split else [])]
    checks = [" ".join(argv) for argv in setup.config.checks.commands]
    names = sorted(path.name + "/" * path.is_dir() for path in setup.project.root.iterdir())
    shown = [name for name in names if not name.startswith((".git/", ".ralph"))][:60]
    green = f"Checks that must be green after every story: {'; '.join(checks) or 'none'}"
    there = [
        f"- {label(it.id)} ({'done' if it.passes else 'open'}): {one_line(it.title, 120)}"
        for it in brief.shelf.stories[:_MOST_LISTED]
    ]
    if (more := len(brief.shelf.stories) - _MOST_LISTED) > 0:
        there.append(f"- and {more} more")
    prompt = _data("ask")
    for mark, words in {
        "{next_id}": next_id(list(brief.shelf.titles)),
        "{how}": "\n\n".join(how),
        "{repository}": f"{green}\nAt its root: {', '.join(shown) or 'nothing yet'}",
        "{there}": "\n".join(there) or "None.",
        "{text}": fenced(spec_text(brief.text, brief.answers)),  # the last: its marks stay words
    }.items():
        prompt = prompt.replace(mark, words)
    return prompt


def _data(name: str) -> str:
    return (files("ralphloop.plan") / "data" / f"{name}.md").read_text("utf-8").strip()


def _settled(answers: Sequence[PlanQuestion]) -> str:
    said = [(one.question, one.answer.strip() or one.proposed) for one in answers]
    return "\n\n".join(f"Q: {question}\nA: {answer}" for question, answer in said)


def spec_text(text: str, answers: Sequence[PlanQuestion]) -> str:
    """What was asked for, with the answers: the spec that stories lean on."""
    told = f"\n\n## Questions and answers\n\n{_settled(answers)}" if answers else ""
    return f"{redact(text[:_LONGEST_TEXT]).strip()}{told}\n"


def text_of_split(story: Story, state: StoryState, changed: str) -> str:
    known = {
        f"The story {story.id}": f"{story.title}\n{story.description}",
        "Its criteria": "\n".join(f"- {criterion}" for criterion in story.criteria),
        "How it stands": f"{state.standing}: {state.reason}" if state.reason else "",
        "Failed attempts": str(max(state.totals.failed, state.attempt.failed) or ""),
        "What failed last": state.notes.failure[-_LONGEST_FAILURE:],
        "What was found": "\n".join(state.notes.findings),
        "What a person said": "\n".join(answer.text for answer in state.notes.answers),
        "What its attempts changed": changed,
        "Notes": story.notes,
    }
    told = {name: words.strip() for name, words in known.items()}
    return "\n\n".join(f"{name}:\n{words}" for name, words in told.items() if words)


def read_answer(text: str, *, secrets: Sequence[str] = (), may_ask: bool) -> PlanAnswer:
    """The questions or the stories of an answer; InputError says all that is wrong with it."""
    problems = Problems(Path(ANSWER))
    text = text[:_LONGEST_ANSWER]
    # The JSON is alone, in a fence or among words.
    whole = text[text.find("{") : text.rfind("}") + 1]
    in_fence = [one for one in _FENCE.findall(text) if one.lstrip().startswith("{")]
    found = text.strip() if text.lstrip().startswith("{") else (in_fence or [whole])[-1].strip()
    if not found:
        raise problems.fail("", "there is no JSON object in it")
    data = JsonDocument(found, problems).data
    problems.raise_if_any()
    root = _plain(data, secrets)
    if not isinstance(root, dict) or not root.keys() <= {"questions", "stories"}:
        raise problems.fail("", "must be one object with nothing but questions or stories")
    questions = list(_each(root, "questions", PlanQuestion, problems))
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
    return PlanAnswer(questions, [_entry(story) for story in stories], unseen)


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
    told = {
        "title": one_line(story.title),
        "acceptanceCriteria": criteria,
        "touches": [path for path in story.touches if not _is_everybodys(path)],
    }
    return made(**own | told)


def _is_everybodys(path: str) -> bool:
    """A file that every story changes keeps none apart from another."""
    return path.rpartition("/")[2].partition(".")[0].upper() in _EVERYBODYS


def weighed(entries: list[Entry], shelf: Shelf, split: str = "", note: str = "") -> Draft:
    """The plan, with remarks; InputError where it cannot be run."""
    if clash := [name for entry in entries if (name := str(entry["id"])) in shelf.titles]:
        raise InputError(f"the id {quoted(clash[0])} is a story of the list already")
    if story := next((one for one in shelf.stories if one.id == split), None):
        return split_parts(shelf, story, entries, note)
    return drafted(entries, shelf, renumber=True)
