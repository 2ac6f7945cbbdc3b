"""From raw data to stories: the two shapes of prd.json in the wild, and tasks.yaml.

Flat and nested stories are read field by field, so mixtures work.  Absent and null mean the same:
generators write both for "nothing".  `passes` says what passed where a story has it, else `status`;
that same field is the one we write.  `done` flags of criteria or tasks never make a story pass.

Three test-only iterations in a row end work on a story, unless tests are what it asks for: its
title or criteria name them, beyond the gates that generators append ("Tests pass").
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

import msgspec

from ralphloop.core.model import Story, StoryList
from ralphloop.errors import InputError
from ralphloop.stories.names import quoted
from ralphloop.text.command_line import NO_SHELL, word_for_a_shell
from ralphloop.text.plain import LazyRegex, closest, is_visible

Raw = Mapping[object, object]

YAML_SUFFIXES = frozenset({".yaml", ".yml"})
_LIST_KEYS = ("userStories", "stories", "tasks")
_PASSED_WORDS = frozenset({"done", "complete", "completed", "passed", "closed"})
_SHOWN = 10
_NEARLY = 0.75  # of two keys: below, a suggestion is a guess
# An id travels in an environment variable, which the kernel bounds at 128 KiB.
_MAX_ID = 1000
_UNUSABLE = LazyRegex("[\x00\ud800-\udfff]")  # cannot be stored, printed or passed to a process
_NUMBER_LIMIT = 2**53  # beyond it, other tools that read the file see another number


ADD_A_STORY = 'ralph stories add "What you want" -c "What will be seen"'


class Problems(msgspec.Struct):
    """Mistakes of one file, in the order they were found; only the first few are kept."""

    path: Path
    found: list[str] = []
    count: int = 0
    step: str = ""  # what to do about it, where that is not to correct the file

    @property
    def wants_detail(self) -> bool:
        """False once further problems are only counted, so that costly hints can be left out."""
        return len(self.found) < _SHOWN

    def add(self, place: str, reason: str) -> None:
        self.count += 1
        if self.wants_detail:
            self.found.append(f"{place}: {reason}" if place else reason)

    def fail(self, place: str, reason: str) -> InputError:
        """Note a mistake that makes reading on pointless, and give the error to raise."""
        self.add(place, reason)
        return self._error()

    def raise_if_any(self) -> None:
        if self.count:
            raise self._error()

    def _error(self) -> InputError:
        message = self.found[0]
        rest = self.count - _SHOWN
        if self.count > 1:
            lines = [*self.found, *([f"and {rest} more"] if rest > 0 else [])]
            message = "\n  ".join([f"{self.count} problems", *lines])
        usual = f"Correct {self.path} and run the command again. Nothing was changed."
        return InputError(message, self.step or usual, place=self.path.name)


def found(value: object) -> str:
    """Name a value of the wrong kind, for "must be …, found …"."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int | float):
        is_large = isinstance(value, int) and value.bit_length() > 64
        return "a number out of range" if is_large else f"the number {value}"
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    named = {type(None): "null", list: "a list", dict: "an object"}
    return named.get(type(value), f"a {type(value).__name__} (quote it to make it text)")


class Listing(msgspec.Struct, frozen=True):
    root: dict[object, object]
    key: str
    entries: list[object]


def find_list(root: object, problems: Problems) -> Listing:
    """The list of stories in a file; anything ambiguous stops here."""
    if not isinstance(root, dict):
        hint = "name the list in it" if isinstance(root, list) else "there are no stories in it"
        reason = f"must be an object with userStories (or tasks), found {found(root)}: {hint}"
        raise problems.fail("", reason)
    keys = [key for key in _LIST_KEYS if root.get(key) is not None]
    if len(keys) > 1:
        raise problems.fail("", f"has both {' and '.join(keys)}: keep one list of stories")
    if not keys:
        raise problems.fail("", f'has no "userStories" (nor "stories" or "tasks"){_instead(root)}')
    entries = root[keys[0]]
    if not isinstance(entries, list):
        raise problems.fail(keys[0], f"must be a list, found {found(entries)}")
    return Listing(root, keys[0], entries)


def _instead(root: Mapping[object, object]) -> str:
    """The key that was probably meant to be the list of stories, named."""
    lists = [key for key, value in root.items() if isinstance(key, str) and isinstance(value, list)]
    meant = closest("userStories", lists) or closest("stories", lists)
    return f"; did you mean that by {quoted(meant)}?" if meant else ""


def read_list(listing: Listing, problems: Problems) -> StoryList:
    """All stories of a file; what is wrong with them is left in `problems`."""
    if not listing.entries:
        problems.add(listing.key, "is empty: there is nothing to do")
        problems.step = f"Say what you want: {ADD_A_STORY}"
    fields = _Fields(listing.root, "", problems)
    stories = []
    for index, raw in enumerate(listing.entries):
        place = f"{listing.key}[{index}]"
        if isinstance(raw, dict):
            stories.append(_story(raw, _Fields(raw, place, problems), index))
        else:
            problems.add(place, f"must be an object, found {found(raw)}")
    return StoryList(
        stories=tuple(stories),
        source=str(problems.path),
        project=fields.text("project", "name", "projectName"),
        description=fields.text("description"),
        branch_name=fields.text("branchName", "branch_name") or None,
    )


def identity(raw: object) -> str | None:
    """The id of a raw story as text, None where it has none that can be used."""
    return _id_text(raw.get("id")) if isinstance(raw, dict) else None


def status_passed(raw: Raw) -> bool | None:
    """Whether the status says that it passed; None where it is not the status that says it."""
    status = raw.get("status") if raw.get("passes") is None else None
    return status.strip().casefold() in _PASSED_WORDS if isinstance(status, str) else None


def _story(raw: Raw, fields: _Fields, index: int) -> Story:
    number = _id_text(raw.get("id")) if not isinstance(raw.get("id"), str) else None
    story_id = number or fields.required_text("id")
    if len(story_id) > _MAX_ID:
        fields.problem("id", f"is longer than {_MAX_ID} characters")
    if story_id.strip() and not is_visible(story_id):
        fields.problem("id", "has characters that cannot be seen or that turn words round")
    title = fields.required_text("title")
    description = fields.text("description")
    tasks = [f"- {line}" for line in fields.lines("tasks")]
    if tasks:
        described = [description] if description else []
        description = "\n".join([*described, "Tasks:", *tasks])
    criteria = fields.lines("acceptanceCriteria", "acceptance_criteria")
    parent_spec = fields.text("parent_spec", "parentSpec")
    is_tasks = fields.problems.path.suffix in YAML_SUFFIXES
    by_status = status_passed(raw)
    return Story(
        id=story_id,
        title=title,
        index=index,
        description=description,
        criteria=criteria,
        priority=fields.number("priority"),
        passes=fields.flag("passes") if by_status is None else by_status,
        notes=fields.text("notes"),
        depends_on=_depends_on(fields),
        parent_spec=parent_spec
        or fields.inner("context").text("parent_spec", "parentSpec")
        or None,
        verify=fields.argv("verify"),
        exit_signal=is_tasks and fields.flag("exit_signal"),
        about_tests=is_about_tests(title, criteria),
        touches=fields.lines("touches"),
        machine=fields.lines("machine"),
    )


def _id_text(value: object) -> str | None:
    is_number = isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= 63
    return str(value) if isinstance(value, str) or is_number else None


def _depends_on(fields: _Fields) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for value, place in _dependency_entries(fields):
        if name := _id_text(value):
            names[name] = None
        else:
            fields.problems.add(place, f"must be a story id, found {found(value)}")
    return tuple(names)


def _dependency_entries(fields: _Fields) -> list[_Placed]:
    entries = fields.items("dependsOn", "depends_on")
    if isinstance(fields.value("dependencies").value, dict):
        return entries + fields.inner("dependencies").items("depends_on", "dependsOn")
    return entries + fields.items("dependencies")


def dependency_place(listing: Listing, index: int, name: str) -> str:
    """Where the story at this index names this dependency first."""
    raw = listing.entries[index]
    place = f"{listing.key}[{index}]"
    if not isinstance(raw, dict):
        return place
    entries = _dependency_entries(_Fields(raw, place, Problems(Path())))
    return next(at for value, at in entries if _id_text(value) == name)


class _Placed(NamedTuple):
    """A value of the file, and where it stands."""

    value: object
    place: str


class _Fields(msgspec.Struct):
    """Typed access to one object of the file; of several names the first that is there counts."""

    raw: Raw
    place: str
    problems: Problems

    def value(self, *names: str) -> _Placed:
        """The first of these fields that is not null, and its place."""
        there = (name for name in names if self.raw.get(name) is not None)
        name = next(there, names[0])
        return _Placed(self.raw.get(name), f"{self.place}.{name}" if self.place else name)

    def problem(self, name: str, reason: str) -> None:
        self.problems.add(self.value(name).place, reason)

    def text(self, *names: str) -> str:
        value, place = self.value(*names)
        return "" if value is None else self._text(value, place)

    def required_text(self, name: str) -> str:
        value, _ = self.value(name)
        if value is None:
            self.problem(
                name, f"missing{self._misspelt(name)}" if name not in self.raw else "is null"
            )
        elif isinstance(value, str) and not value.strip():
            self.problem(name, "is empty")
        return self.text(name)

    def _misspelt(self, name: str) -> str:
        """A key that is not read and is nearly the one that is missing."""
        given = [key for key in self.raw if isinstance(key, str)]
        meant = closest(name, given, _NEARLY)
        return f"; did you mean that by {quoted(meant)}?" if meant else ""

    def flag(self, name: str) -> bool:
        return self._one_of(name, (bool,), "true or false") is True

    def number(self, name: str) -> int | float | None:
        value = self._one_of(name, (int, float), "a number (the lowest comes first)")
        if value is not None and not -_NUMBER_LIMIT < value < _NUMBER_LIMIT:
            self.problem(name, "is out of range")
            return None
        return value

    def _one_of(self, name: str, kinds: tuple[type, ...], words: str) -> int | float | None:
        value, _ = self.value(name)
        if value is None or type(value) in kinds:
            return value  # type: ignore[return-value]
        self.problem(name, f"must be {words}, found {found(value)}")
        return None

    def inner(self, name: str) -> _Fields:
        """The fields of an object inside this one; none where it is absent or something else."""
        value, place = self.value(name)
        return _Fields(value if isinstance(value, dict) else {}, place, self.problems)

    def items(self, *names: str) -> list[_Placed]:
        """The entries of a list with their places; a lone text counts as one entry."""
        value, place = self.value(*names)
        if value is None:
            return []
        if isinstance(value, str):
            return [_Placed(value, place)] if value.strip() else []
        if isinstance(value, list):
            return [_Placed(entry, f"{place}[{at}]") for at, entry in enumerate(value)]
        self.problems.add(place, f"must be a list, found {found(value)}")
        return []

    def lines(self, *names: str) -> tuple[str, ...]:
        """A list of texts or of objects that carry one, as plain lines."""
        lines: list[str] = []
        for entry, place in self.items(*names):
            if not isinstance(entry, dict):
                lines += self._text(entry, place).splitlines()
                continue
            fields = _Fields(entry, place, self.problems)
            if fields.value("description", "text", "title").value is None:
                self.problems.add(place, "has no description")
            text = fields.text("description", "text", "title")
            number = entry.get("id")
            is_numbered = isinstance(number, str | int) and number != ""
            lines.append(f"{number}: {text}" if is_numbered else text)
        return tuple(filter(None, map(str.strip, lines)))

    def argv(self, name: str) -> tuple[str, ...] | None:
        """A command: a list of arguments, or a text that is split like a shell would split it."""
        value, place = self.value(name)
        if isinstance(value, str):
            try:
                split = shlex.split(self._text(value, place))
            except ValueError as error:
                self.problems.add(place, f"cannot be split into arguments: {str(error).lower()}")
                return None
            if word := word_for_a_shell(value):
                hint = 'write ["sh", "-c", "…"] if you want one'
                self.problems.add(place, f"uses {quoted(word)}: {NO_SHELL}; {hint}")
            return tuple(split) or None
        entries = self.items(name)
        program: object = None
        if entries:
            program, place = entries[0]
        words = program.split() if isinstance(program, str) else ["?"]
        if not words:
            self.problems.add(place, "names no program")
        elif len(words) > 1 and "/" not in str(program):
            hint = f"write the whole command as one text, or {quoted(words[0])} alone"
            self.problems.add(place, f"the program is {quoted(str(program))}: {hint}")
        return tuple(self._text(entry, at) for entry, at in entries) or None

    def _text(self, value: object, place: str) -> str:
        if not isinstance(value, str):
            self.problems.add(place, f"must be text, found {found(value)}")
            return ""
        if bad := _UNUSABLE.search(value):
            reason = f"holds a character that cannot be used: {quoted(bad[0])}"
            self.problems.add(place, reason)
        return value


# A word edge that also splits at underscores: test_login.py names a test.
_START = r"(?<![^\W_])"
_END = r"(?![^\W_])"

_NAMED = LazyRegex(
    _START
    + r"(?i:tests?|testing|testsuites?|unittests?|coverage|e2e|pytest|jest|vitest|mocha|jasmine"
    + r"|rspec|phpunit|junit|xunit|nunit|testng"
    + r"|(?:playwright|cypress|selenium)[ \t-](?:specs?|suites?|scenarios?))"
    + _END
    + r"|(?<=[a-z0-9])Tests?(?![a-z])"  # LoginTests
)
_EXPERIMENT = LazyRegex(_START + r"a ?/ ?b[ \t-]?(?:tests?|testing|tested)" + _END, re.IGNORECASE)

# Every name of tests has one of these in it; ordinary stories need no more than this look.
_PARTS = "test coverage e2e jest mocha jasmine rspec unit playwright cypress selenium".split()
_LABEL = LazyRegex(r"^[\w.-]{1,20}: ")  # "AC3: Tests pass"
_TOKEN = re.compile(r"[^\W_]+")
_VERDICTS = frozenset(
    "pass passes passed passing green succeed succeeds successful successfully ok fail fails failed"
    " failing failures broken break clean cleanly".split()
)
_OTHER_GATE_WORDS = """
test tests testing suite suites unit integration e2e end to regression all every the existing
relevant other still continue continues keep keeps remain run runs is are must should be and with
without no not any errors error warnings in on ci locally lint linter linting typecheck
typechecking typescript type types check checks checking build builds compiles format formatting
npm npx yarn pnpm bun make cargo go python m q uv tox nox pytest jest vitest mocha rspec phpunit
junit mypy ruff eslint tsc
"""
_GATE_WORDS = _VERDICTS.union(_OTHER_GATE_WORDS.split())


def is_about_tests(title: str, criteria: Iterable[str]) -> bool:
    return _names_tests(title) or any(
        _names_tests(criterion) and not is_quality_gate(criterion) for criterion in criteria
    )


def _names_tests(text: str) -> bool:
    if not any(part in text.casefold() for part in _PARTS):
        return False
    return _NAMED.search(_EXPERIMENT.sub(" ", text)) is not None


def is_quality_gate(criterion: str) -> bool:
    """What generators append to every story, such as "Typecheck passes"."""
    words = set(_TOKEN.findall(_LABEL.sub("", criterion).casefold()))
    return words <= _GATE_WORDS and not words.isdisjoint(_VERDICTS)
