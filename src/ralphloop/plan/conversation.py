"""The talk that makes a plan: what the agent is told, what a person is asked, what goes back.

First the agent may ask, up to five questions that matter, each with the answer it would take; then
it proposes.  A proposal with mistakes goes back with every one of them, three times at most.  What
only the linter refuses after that is shown to the person, who decides; what cannot be run ends it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from typing import NamedTuple

from ralphloop.core.story import Story
from ralphloop.core.story_state import StoryState
from ralphloop.errors import InputError
from ralphloop.loop.prepare import Setup
from ralphloop.plan.asking import Asker
from ralphloop.plan.draft import Draft, Shelf
from ralphloop.plan.proposal import ANSWER, Question, read_answer, weighed
from ralphloop.prompts import fenced
from ralphloop.redaction import redact, secret_values
from ralphloop.stories.lint import as_lines
from ralphloop.stories.names import label, next_id
from ralphloop.text.plain import counted, one_line

REPAIRS = 3
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


class Brief(NamedTuple):
    """What is to be planned."""

    text: str
    shelf: Shelf
    split: str = ""  # the story to make smaller
    left_at: str = ""  # where the work of that story is kept
    answers: tuple[Question, ...] = ()


def propose(
    asker: Asker,
    setup: Setup,
    brief: Brief,
    ask_person: Callable[[list[Question]], list[Question]],
    tell: Callable[[str], None],
) -> tuple[Draft, list[str], tuple[Question, ...]]:
    """The plan, what the linter still refuses in it, and what was asked on the way."""
    secrets, best, mistakes = secret_values(setup.options.env), None, list[str]()
    again, repairs, may_ask = "", 0, not brief.answers
    while repairs <= REPAIRS:
        said = asker.ask(prompt_for(brief, setup, may_ask=may_ask), again)
        try:
            answer = read_answer(said, secrets=secrets, may_ask=may_ask)
            if answer.questions:
                brief, may_ask = brief._replace(answers=tuple(ask_person(answer.questions))), False
                again = f"The answers:\n\n{fenced(_settled(brief.answers))}\n\n{_TELLING}"
                continue
            draft = weighed(answer.entries, brief.shelf, brief.split, _left(brief))
            mistakes = [*answer.unseen, *as_lines(draft.remarks)]
            best = draft, mistakes, brief.answers
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


# --- what the agent is told --------------------------------------------------------------------


def prompt_for(brief: Brief, setup: Setup, *, may_ask: bool) -> str:
    """The whole prompt of a plan."""
    how = [_data("questions") if may_ask else _TELLING, *([_data("split")] if brief.split else [])]
    prompt = _data("ask")
    for mark, words in {
        "{next_id}": next_id(list(brief.shelf.titles)),
        "{how}": "\n\n".join(how),
        "{repository}": "\n".join(_repository(setup)),
        "{there}": "\n".join(_there(brief.shelf)) or "None.",
        "{text}": fenced(spec_text(brief.text, brief.answers)),  # the last: its marks stay words
    }.items():
        prompt = prompt.replace(mark, words)
    return prompt


def _data(name: str) -> str:
    return (files("ralphloop.plan") / "data" / f"{name}.md").read_text("utf-8").strip()


def _repository(setup: Setup) -> Iterator[str]:
    checks = [" ".join(argv) for argv in setup.config.checks.commands]
    yield f"Checks that must be green after every story: {'; '.join(checks) or 'none'}"
    names = sorted(path.name + "/" * path.is_dir() for path in setup.project.root.iterdir())
    shown = [name for name in names if not name.startswith((".git/", ".ralph"))][:60]
    yield f"At its root: {', '.join(shown) or 'nothing yet'}"


def _there(shelf: Shelf) -> Iterator[str]:
    for story in shelf.stories[:_MOST_LISTED]:
        state = "done" if story.passes else "open"
        yield f"- {label(story.id)} ({state}): {one_line(story.title, 120)}"
    if (more := len(shelf.stories) - _MOST_LISTED) > 0:
        yield f"- and {more} more"


def _settled(answers: Sequence[Question]) -> str:
    return "\n\n".join(f"Q: {one.question}\nA: {one.settled}" for one in answers)


def spec_text(text: str, answers: Sequence[Question]) -> str:
    """What was asked for, with the answers: the spec that stories lean on."""
    told = f"\n\n## Questions and answers\n\n{_settled(answers)}" if answers else ""
    return f"{redact(text[:_LONGEST_TEXT]).strip()}{told}\n"


def text_of_split(story: Story, state: StoryState, changed: str) -> str:
    """What is known of a story that got stuck."""
    known = {
        f"The story {story.id}": f"{story.title}\n{story.description}",
        "Its criteria": "\n".join(f"- {criterion}" for criterion in story.criteria),
        "How it stands": f"{state.standing}: {state.reason}" if state.reason else "",
        "Failed attempts": str(max(state.failed, state.attempts) or ""),
        "What failed last": state.failure[-_LONGEST_FAILURE:],
        "What was found": "\n".join(state.findings),
        "What a person said": "\n".join(answer.text for answer in state.answers),
        "What its attempts changed": changed,
        "Notes": story.notes,
    }
    return "\n\n".join(
        f"{name}:\n{words.strip()}" for name, words in known.items() if words.strip()
    )


def _left(brief: Brief) -> str:
    where = f" What its attempts left: git show {brief.left_at}" if brief.left_at else ""
    return f"A part of {brief.split}, which was split.{where}" if brief.split else ""
