"""Acceptance tests by somebody else: an agent that will not work on the stories writes them.

Its answer is read strictly, as that of a planning agent is: a path that is taken or is no file of
tests, a story that nobody knows, text that does not parse goes back to it, three times at most.
Nothing is written here.  The tests are a value until a person has seen them.
"""

import ast
from collections.abc import Callable, Iterator, Sequence
from importlib.resources import files
from pathlib import Path, PurePosixPath
from typing import Annotated, NamedTuple

import msgspec
from msgspec import Meta

from ralphloop.core.model import Story
from ralphloop.errors import InputError
from ralphloop.loop.prepare import Setup
from ralphloop.plan.asking import Asker
from ralphloop.prompts import fenced
from ralphloop.redaction import redact, secret_values
from ralphloop.repo.experiment import is_test_file
from ralphloop.stories.names import label, quoted
from ralphloop.text.plain import clean, counted, one_line, some

MOST_STORIES = 20
REPAIRS = 3
_MOST_FILES = 40
_MOST_TOLD = 20
_LONGEST_FILE = 100_000
_LONGEST_ANSWER = 1_000_000
_LONGEST_STORY = 6_000
_EXAMPLES = {
    ".py": "tests/test_accept_{}.py",
    ".go": "accept_{}_test.go",
    ".rs": "tests/accept_{}.rs",
}
_FALLBACK = "test/accept_{}.test.js"
_REPAIR = (
    "Your answer cannot be used. What is wrong:\n\n{}\n\n"
    "Mend exactly this and answer again with the whole JSON object and nothing else."
)


class AcceptanceFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """One file of tests, and the stories it has to be green for."""

    path: Annotated[str, Meta(min_length=1, max_length=300)]
    stories: Annotated[tuple[str, ...], Meta(min_length=1, max_length=MOST_STORIES)]
    text: Annotated[str, Meta(min_length=1, max_length=_LONGEST_FILE)]


class Untested(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A story for which there is no acceptance test, and why."""

    story: Annotated[str, Meta(max_length=60)]
    why: Annotated[str, Meta(min_length=3, max_length=500)]


class Acceptance(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Tests for stories, as somebody proposes them."""

    files: Annotated[tuple[AcceptanceFile, ...], Meta(max_length=_MOST_FILES)] = ()
    none: Annotated[tuple[Untested, ...], Meta(max_length=MOST_STORIES)] = ()


class AcceptanceBrief(NamedTuple):
    stories: tuple[Story, ...]
    taken: frozenset[str] = frozenset()  # paths, from the project, that are sealed already


def write_acceptance(
    asker: Asker, setup: Setup, brief: AcceptanceBrief, tell: Callable[[str], None]
) -> Acceptance:
    """The tests that an agent proposes; InputError where it does not get them right."""
    prompt = acceptance_prompt(setup, brief)
    again = ""
    mistakes = list[str]()
    for repair in range(REPAIRS + 1):
        said = asker.ask(prompt, again)
        try:
            found = read_acceptance(said)
            mistakes = list(mistakes_in(found, brief, setup))
        except InputError as error:
            mistakes = [error.message]
        if not mistakes:
            return found
        if repair < REPAIRS:
            tell(f"{counted(len(mistakes), 'mistake')} in the answer, sent back: {mistakes[0]}")
        again = _REPAIR.format("\n".join(f"- {one_line(it, 400)}" for it in mistakes[:_MOST_TOLD]))
    told = "\n  ".join(one_line(it, 300) for it in mistakes[:_MOST_TOLD])
    step = "Nothing was sealed. Seal fewer stories at once, or name another agent."
    raise InputError(f"no usable tests after {counted(REPAIRS, 'repair')}:\n  {told}", step)


def acceptance_prompt(setup: Setup, brief: AcceptanceBrief) -> str:
    """What the agent is told."""
    root = setup.project.root
    checks = "; ".join(" ".join(argv) for argv in setup.config.checks.commands)
    names = sorted(_shown_name(path) for path in root.iterdir())
    shown = [name for name in names if not name.startswith((".git/", ".ralph"))][:60]
    first = brief.stories[0].id
    prompt = files("ralphloop.plan").joinpath("data/accept.md").read_text("utf-8").strip()
    for mark, words in {
        "{example}": _example(root, first),
        "{story}": first,
        "{repository}": f"Checks: {checks or 'none'}\nAt its root: {', '.join(shown)}",
        "{stories}": fenced(
            "\n\n".join(map(_told, brief.stories))
        ),  # the last: its marks stay words
    }.items():
        prompt = prompt.replace(mark, words)
    return prompt


def _shown_name(path: Path) -> str:
    return f"{path.name}/" if path.is_dir() else path.name


def _example(root: Path, story: str) -> str:
    """A path for a file of tests, in the language of the repository."""
    name = "".join(char if char.isalnum() else "_" for char in story.lower())
    marks = {".go": "go.mod", ".rs": "Cargo.toml", ".py": "pyproject.toml"}
    kinds = (kind for kind, file in marks.items() if (root / file).exists())
    kind = next(kinds, ".js" if (root / "package.json").exists() else ".py")
    return _EXAMPLES.get(kind, _FALLBACK).format(name)


def _told(story: Story) -> str:
    criteria = "\n".join(f"- {criterion}" for criterion in story.criteria)
    told = f"{story.id}: {story.title}\n{story.description}\n{criteria or 'no criteria'}"
    return redact(clean(told)[:_LONGEST_STORY])


def read_acceptance(said: str) -> Acceptance:
    """The tests of an answer; InputError says what is wrong with its form."""
    text = said[:_LONGEST_ANSWER]
    begin = text.find("{")
    end = text.rfind("}")
    if begin < 0 or end < begin:
        raise InputError("there is no JSON object in it")
    try:
        return msgspec.json.decode(text[begin : end + 1], type=Acceptance)
    except (msgspec.DecodeError, RecursionError) as error:
        raise InputError(one_line(str(error), 300)) from None


def mistakes_in(found: Acceptance, brief: AcceptanceBrief, setup: Setup) -> Iterator[str]:
    """What is wrong with the tests themselves, each in words."""
    known = {story.id for story in brief.stories}
    root = setup.project.root
    secrets = secret_values(setup.options.env)
    seen = set[str]()
    for file in found.files:
        yield from (f"{quoted(file.path)}: {words}" for words in _path_mistakes(file.path, root))
        if file.path in brief.taken or file.path in seen:
            yield f"{quoted(file.path)}: is taken"
        seen.add(file.path)
        if unknown := [name for name in file.stories if name not in known]:
            yield f"{quoted(file.path)}: there is no story {some([label(it) for it in unknown])}"
        yield from (f"{quoted(file.path)}: {words}" for words in _text_mistakes(file, secrets))
    told = {name for file in found.files for name in file.stories}
    told |= {one.story for one in found.none}
    for story in brief.stories:
        if story.id not in told:
            yield f"{label(story.id)} has neither a test nor a reason in `none`"


def _path_mistakes(path: str, root: Path) -> Iterator[str]:
    parts = PurePosixPath(path).parts
    is_inside = not path.startswith(("/", "~")) and not {"..", "."} & set(path.split("/"))
    if (
        not is_inside
        or clean(path) != path
        or "\\" in path
        or PurePosixPath(path).as_posix() != path
    ):
        yield "must be a plain path below the project's root"
        return
    if parts[0] in (".git", ".ralph"):
        yield f"nothing is kept in {parts[0]}"
    elif not is_test_file(path):
        yield "has no name of a file of tests"
    elif (root / path).exists() or (root / path).is_symlink():
        yield "is there already"
    elif not (root / path).parent.resolve().is_relative_to(root.resolve()):
        yield "lies outside of the repository"


def _text_mistakes(file: AcceptanceFile, secrets: Sequence[str]) -> Iterator[str]:
    if clean(file.text) != file.text:
        yield "has control or invisible characters in it; write them as escapes"
    if redact(file.text, secrets) != file.text:
        yield "has something in it that looks like a secret"
    if file.path.endswith(".py"):
        try:
            ast.parse(file.text)
        except (SyntaxError, ValueError, RecursionError) as error:
            yield f"does not parse: {one_line(str(error), 200)}"
