"""From raw data to stories: the two shapes of prd.json in the wild, and tasks.yaml.

Flat stories carry `passes`, criteria as texts and `dependsOn`; nested ones carry criteria and
tasks as objects, `dependencies.depends_on`, `context.parent_spec` and `status`.  Both are read
field by field, so mixtures work.

What means "passed": `passes` where a story has it, else `status` (`done`, `complete`, `completed`,
`passed`, `closed`); that same field is the one we write.  `done` flags of single criteria or tasks
are somebody's bookkeeping and never make a story pass.

Is a story itself about tests?  Three test-only iterations in a row end work on a story, unless
tests are what it asks for: its title or criteria name them.  Words count, not letters ("latest",
"contest" are no tests), and the quality gates that generators append to every story ("Tests pass",
"Typecheck passes") do not.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from ralphloop.core.story import Kind, Story, StoryList
from ralphloop.stories.fields import Fields, Problems, found
from ralphloop.text.lazy_regex import LazyRegex

_LIST_KEYS = ("userStories", "stories", "tasks")
_PASSED_WORDS = frozenset({"done", "complete", "completed", "passed", "closed"})
# An id travels in an environment variable, which the kernel bounds at 128 KiB.
_MAX_ID = 1000


class Listing(msgspec.Struct, frozen=True):
    """The root of a file, and the list of stories in it."""

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
        raise problems.fail("", 'has no "userStories" (nor "stories" or "tasks")')
    entries = root[keys[0]]
    if not isinstance(entries, list):
        raise problems.fail(keys[0], f"must be a list, found {found(entries)}")
    return Listing(root, keys[0], entries)


def read_list(listing: Listing, *, source: str, kind: Kind, problems: Problems) -> StoryList:
    """All stories of a file; what is wrong with them is left in `problems`."""
    if not listing.entries:
        problems.add(listing.key, "is empty: there is nothing to do")
    fields = Fields(listing.root, "", problems)
    return StoryList(
        stories=tuple(_stories(listing, kind, problems)),
        source=source,
        kind=kind,
        project=fields.text("project", "name", "projectName"),
        description=fields.text("description"),
        branch_name=fields.text("branchName", "branch_name") or None,
    )


def identity(raw: object) -> str | None:
    """The id of a raw story as text, None where it has none that can be used."""
    return _id_text(raw.get("id")) if isinstance(raw, dict) else None


def says(raw: Mapping[object, object], passes: bool) -> bool:
    """True where a raw story needs no writing to carry this mark."""
    if _pass_field(raw) == "status":
        return _status_passed(raw) == passes
    value = raw.get("passes")
    return value is passes or (value is None and not passes)


def status_words(entries: list[object]) -> dict[bool, str]:
    """The words this file uses for passed and open stories, else the usual ones."""
    words: dict[bool, str] = {}
    for raw in entries:
        if isinstance(raw, dict) and _pass_field(raw) == "status":
            words.setdefault(_status_passed(raw), str(raw["status"]))
    return {True: "done", False: "pending"} | words


def mark_for(
    raw: Mapping[object, object], passes: bool, words: Mapping[bool, str]
) -> tuple[str, bool | str]:
    """The field to write for this mark, and its value."""
    field = _pass_field(raw)
    return field, words[passes] if field == "status" else passes


def dependency_place(listing: Listing, index: int, name: str) -> str:
    """Where the story at this index names this dependency first."""
    raw = listing.entries[index]
    place = f"{listing.key}[{index}]"
    if not isinstance(raw, dict):
        return place
    entries = _dependency_entries(Fields(raw, place, Problems(Path())))
    return next(at for value, at in entries if _id_text(value) == name)


def _pass_field(raw: Mapping[object, object]) -> str:
    if raw.get("passes") is None and isinstance(raw.get("status"), str):
        return "status"
    return "passes"


def _status_passed(raw: Mapping[object, object]) -> bool:
    return str(raw.get("status")).strip().casefold() in _PASSED_WORDS


def _stories(listing: Listing, kind: Kind, problems: Problems) -> Iterator[Story]:
    for index, raw in enumerate(listing.entries):
        place = f"{listing.key}[{index}]"
        if isinstance(raw, dict):
            yield _story(raw, Fields(raw, place, problems), index, kind)
        else:
            problems.add(place, f"must be an object, found {found(raw)}")


def _story(raw: Mapping[object, object], fields: Fields, index: int, kind: Kind) -> Story:
    story_id = _id(raw, fields)
    title = fields.required_text("title")
    criteria = tuple(fields.lines("acceptanceCriteria", "acceptance_criteria"))
    return Story(
        id=story_id,
        title=title,
        index=index,
        description=_description(fields),
        criteria=criteria,
        priority=fields.number("priority"),
        passes=_passes(raw, fields),
        notes=fields.text("notes"),
        depends_on=_depends_on(fields),
        parent_spec=_parent_spec(fields),
        verify=fields.argv("verify"),
        exit_signal=kind == "tasks" and fields.flag("exit_signal"),
        about_tests=is_about_tests(title, criteria),
    )


def _id(raw: Mapping[object, object], fields: Fields) -> str:
    number = raw.get("id")
    text = str(number) if _is_id_number(number) else fields.required_text("id")
    if len(text) > _MAX_ID:
        fields.problem(fields.value("id")[1], f"is longer than {_MAX_ID} characters")
    return text


def _description(fields: Fields) -> str:
    text = fields.text("description")
    tasks = [f"- {line}" for line in fields.lines("tasks")]
    return "\n".join([*([text] if text else []), "Tasks:", *tasks]) if tasks else text


def _passes(raw: Mapping[object, object], fields: Fields) -> bool:
    return _status_passed(raw) if _pass_field(raw) == "status" else fields.flag("passes")


def _id_text(value: object) -> str | None:
    return str(value) if isinstance(value, str) or _is_id_number(value) else None


def _is_id_number(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value.bit_length() <= 63


def _depends_on(fields: Fields) -> tuple[str, ...]:
    names: dict[str, None] = {}
    for value, place in _dependency_entries(fields):
        if name := _id_text(value):
            names[name] = None
        else:
            fields.problem(place, f"must be a story id, found {found(value)}")
    return tuple(names)


def _dependency_entries(fields: Fields) -> list[tuple[object, str]]:
    nested, _ = fields.value("dependencies")
    return [
        *fields.items("dependsOn", "depends_on"),
        *(
            fields.inner("dependencies").items("depends_on", "dependsOn")
            if isinstance(nested, dict)
            else fields.items("dependencies")
        ),
    ]


def _parent_spec(fields: Fields) -> str | None:
    own = fields.text("parent_spec", "parentSpec")
    return own or fields.inner("context").text("parent_spec", "parentSpec") or None


# A word edge that also splits at underscores: test_login.py names a test.
_START, _END = r"(?<![^\W_])", r"(?![^\W_])"

_NAMED = LazyRegex(
    _START
    + r"(?:tests?|testing|testsuites?|unittests?|coverage|e2e|pytest|jest|vitest|mocha|jasmine"
    + r"|rspec|phpunit|junit|xunit|nunit|testng"
    + r"|(?:playwright|cypress|selenium)[ \t-](?:specs?|suites?|scenarios?))"
    + _END,
    re.IGNORECASE,
)
_CAMEL_CASE = LazyRegex(r"(?<=[a-z0-9])Tests?(?![a-z])")
_EXPERIMENT = LazyRegex(_START + r"a ?/ ?b[ \t-]?(?:tests?|testing|tested)" + _END, re.IGNORECASE)

# Every name of tests has one of these in it; ordinary stories need no more than this look.
_PARTS = "test coverage e2e jest mocha jasmine rspec unit playwright cypress selenium".split()
_LABEL = LazyRegex(r"^[\w.-]{1,20}: ")  # "AC3: Tests pass"
_TOKEN = re.compile(r"[^\W_]+")
_VERDICT_WORDS = """
pass passes passed passing green succeed succeeds successful successfully ok fail fails failed
failing failures broken break clean cleanly
"""
_OTHER_GATE_WORDS = """
test tests testing suite suites unit integration e2e end to regression all every the existing
relevant other still continue continues keep keeps remain run runs is are must should be and with
without no not any errors error warnings in on ci locally lint linter linting typecheck
typechecking typescript type types check checks checking build builds compiles format formatting
npm npx yarn pnpm bun make cargo go python m q uv tox nox pytest jest vitest mocha rspec phpunit
junit mypy ruff eslint tsc
"""
_VERDICTS = frozenset(_VERDICT_WORDS.split())
_GATE_WORDS = _VERDICTS.union(_OTHER_GATE_WORDS.split())


def is_about_tests(title: str, criteria: Iterable[str]) -> bool:
    """True where the title, or a criterion beyond the usual gates, names tests."""
    return _names_tests(title) or any(
        _names_tests(criterion) and not _is_quality_gate(criterion) for criterion in criteria
    )


def _names_tests(text: str) -> bool:
    if not any(part in text.casefold() for part in _PARTS):
        return False
    if not (_NAMED.search(text) or _CAMEL_CASE.search(text)):
        return False
    rest = _EXPERIMENT.sub(" ", text)
    return bool(_NAMED.search(rest) or _CAMEL_CASE.search(rest))


def _is_quality_gate(criterion: str) -> bool:
    words = set(_TOKEN.findall(_LABEL.sub("", criterion).casefold()))
    return words <= _GATE_WORDS and not words.isdisjoint(_VERDICTS)
