"""`ralph learnings`: what was learned here, and what of it is kept."""

import sys
import time
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import click
from msgspec.structs import replace

from ralphloop.cli import output
from ralphloop.cli.learn import learn
from ralphloop.cli.shared.agreement import insist_on_person
from ralphloop.cli.shared.options import DefaultGroup, json_option
from ralphloop.errors import InputError, UsageError
from ralphloop.learning import publish, store
from ralphloop.learning.aggregate import id_of
from ralphloop.learning.model import MAX_TEXT, EntryWord, NoteSource, Pattern, SharedEntry
from ralphloop.learning.wording import category_of, match_words, paths_in
from ralphloop.project import Project, find_project
from ralphloop.text.plain import counted, one_line

_NONE_YET = (
    "Nothing yet. `ralph stats` counts what was captured; patterns come out of several stories."
)
_FOLLOWS = "Published files follow at the end of the next run, or now: ralph learnings update"
_KEYS = "y yes   n never   s later   q quit"
_Known = TypeVar("_Known", Pattern, SharedEntry)
_as_json = json_option("All fields, as JSON.")
_ids = click.argument("ids", nargs=-1, required=True, metavar="ID…")


@click.group(cls=DefaultGroup)
def learnings() -> None:
    """Look at what was learned in this project, and decide what is kept."""


@learnings.command("list")
@_as_json
def list_all(as_json: bool) -> None:
    """All patterns, best first."""
    index = store.rebuild(find_project(), now=time.time())
    _print(index.patterns, as_json, _NONE_YET)
    for problem in index.problems:
        output.warn(problem)


@learnings.command()
@click.argument("words", nargs=-1, required=True)
@_as_json
def search(words: tuple[str, ...], as_json: bool) -> None:
    """Patterns that share words with the question, most of them first."""
    wanted = match_words(" ".join(words))
    known = store.rebuild(find_project(), now=time.time()).patterns
    # Words so common that they tell nothing apart are all that some searches have.
    plain = [] if wanted else [word.lower() for word in words]
    found = [
        one
        for one in known
        if wanted.intersection(one.words) or any(word in one.text.lower() for word in plain)
    ]
    found.sort(key=lambda one: -len(wanted.intersection(one.words)))
    _print(found, as_json, "None of them has these words." if known else _NONE_YET)


@learnings.command()
@_ids
@_as_json
def why(ids: tuple[str, ...], as_json: bool) -> None:
    """Where a pattern comes from, why it stands as it does, how attempts went that carried it."""
    found = _find(find_project(), ids)
    output.show((line for one in found for line in _details(one)), found, as_json=as_json)


learnings.add_command(why, "show")


def _decide(name: str, word: EntryWord, words: str) -> None:
    @learnings.command(name, help=words)
    @_ids
    def decide(ids: tuple[str, ...]) -> None:
        project = _person()
        _put(project, _find(project, ids), word)
        output.note(_FOLLOWS)


_NEVER = "Never use these again, also when a later story says them once more."
_decide("forget", EntryWord.FORGOTTEN, _NEVER)
_decide("approve", EntryWord.APPROVED, "Say yes: into prompts, skills and the memory file.")


@learnings.command()
def review() -> None:
    """Go through what waits for a yes or no, one key each."""
    project = _person()
    decided = 0
    waiting = [one for one in store.rebuild(project, now=time.time()).patterns if one.waits]
    if not waiting:
        output.emit_lines(["Nothing waits for you."])
        return
    for number, one in enumerate(waiting, 1):
        output.emit_lines(["", f"{number} of {len(waiting)}", *_details(one)])
        try:
            key = output.key(f"  {_KEYS} ", "ynsq", err=True)
        except OSError:
            step = "ralph learnings approve ID, or: ralph learnings forget ID"
            raise UsageError("review asks for keys, and there is no terminal", step) from None
        if key == "q":
            break
        if key != "s":
            _put(project, [one], EntryWord.APPROVED if key == "y" else EntryWord.FORGOTTEN)
            decided += 1
    output.note(f"{decided} of {len(waiting)} decided. {_FOLLOWS if decided else ''}".rstrip())


@learnings.command()
@click.argument("text")
@click.option("--category", default="", help="What it is about: api, database, testing …")
def add(text: str, category: str) -> None:
    """Tell every later run something, in your own words."""
    project = _person()
    line = _worded(text, "ralph learnings add --help")
    files = tuple(path for path in paths_in(line) if (project.root / path).exists())
    entry = SharedEntry(
        id="",
        word=EntryWord.APPROVED,
        text=line,
        source=NoteSource.PERSON,
        at=store.moment(time.time()),
        category=category or category_of(files, line),
        files=files[:5],
        before=(EntryWord.FORGOTTEN, line, ""),
    )
    _keep(project, [replace(entry, id=id_of(entry))])
    output.note(_FOLLOWS)


@learnings.command()
@click.argument("wanted", metavar="ID")
@click.argument("text")
def edit(wanted: str, text: str) -> None:
    """Say a pattern in better words, and approve it so."""
    project = _person()
    line = _worded(text, "or: ralph learnings forget ID")
    _put(project, _find(project, [wanted]), EntryWord.APPROVED, line)
    output.note(_FOLLOWS)


@learnings.command()
@_ids
def undo(ids: tuple[str, ...]) -> None:
    """Take your last word about these back."""
    project = _person()
    known = store.load_entries(project).entries
    now = store.moment(time.time())
    made = []
    for wanted in ids:
        entry = _match(wanted, list(known.values()), "nothing was decided about")
        if entry.before is None:
            told = f"there is nothing to take back about [{entry.id}]"
            raise InputError(told, "ralph learnings list")
        word, text, lesson = entry.before
        made.append(replace(entry, word=word, text=text, lesson=lesson, before=None, at=now))
    _keep(project, made, again=" again")
    output.note(_FOLLOWS)


def _person() -> Project:
    """The project, for a person who decides."""
    insist_on_person("only a person decides what is trusted")
    return find_project()


def _worded(text: str, step: str) -> str:
    if not (line := one_line(text, MAX_TEXT)):
        raise UsageError("say what is to be known", step)
    return line


def _put(project: Project, found: list[Pattern], word: EntryWord, text: str = "") -> None:
    """What a person decided, in better words where there is a text."""
    known = store.load_entries(project).entries
    now = store.moment(time.time())
    made = []
    for one in found:
        old = known.get(one.id)
        before = (old.word if old else EntryWord.OPEN, one.text, one.lesson)
        entry = publish.entry_of(one, word, now)
        said = old.said if old else ""
        if text:
            entry = replace(entry, text=text, lesson="")
            said = said or f"{one.text} {one.lesson}".strip()
        made.append(replace(entry, before=before, said=said))
    _keep(project, made)


def _keep(project: Project, entries: list[SharedEntry], *, again: str = "") -> None:
    store.decide(project, entries)
    store.rebuild(project, now=time.time())
    for one in entries:
        said = output.safe(one.sentence)
        output.emit_lines([f"{one.word or 'undecided'}{again}: [{one.id}] {said}"])


def _find(project: Project, ids: Iterable[str]) -> list[Pattern]:
    """Patterns by the beginning of their ids."""
    known = list(store.rebuild(project, now=time.time()).patterns)
    return [_match(wanted, known, "no learning has") for wanted in ids]


def _match(wanted: str, known: list[_Known], none: str) -> _Known:
    matches = [one for one in known if one.id.startswith(wanted.strip("[]").lower())]
    if len(matches) != 1 or len(wanted) < 4:
        what = none if not matches else "several learnings have"
        raise InputError(f"{what} the id {wanted!r}", "ralph learnings list")
    return matches[0]


def _print(patterns: Sequence[Pattern], as_json: bool, none: str) -> None:
    if as_json:
        output.emit_json(patterns)
        return
    for one in patterns:
        styles = []
        if one.is_published:
            styles.append("green")
        if one.waits:
            styles.append("yellow")
        word = "old" if one.is_old else one.standing
        standing = output.paint(f"{word:<11}", *styles)
        row = f"{one.id}  {standing}  {one.category:<10} {counted(one.story_count, 'story'):>9}"
        indent = len(one.id) + 37  # of what wraps on a terminal; a pipe has whole lines
        on_screen = output.wrapped(one.sentence, indent=indent) if sys.stdout.isatty() else []
        first, *rest = on_screen or [output.safe(one.sentence)]
        output.emit_lines([f"{row}  {first}", *(" " * indent + words for words in rest)])
    if not patterns:
        output.emit_lines([none])


def _details(one: Pattern) -> Iterator[str]:
    yield f"{output.paint(one.id, 'bold')}  {output.safe(one.sentence)}"
    yield f"  standing   {one.standing}{output.safe(one.because)}"
    yield f"  category   {one.category}, {one.kind} from {one.source}, score {one.score:g}"
    stories = output.safe(", ".join(one.stories)) or "-"
    yield f"  found by   {stories} ({one.story_count} passed), last {output.safe(one.last_seen)}"
    yield f"  carried    {one.carried} times, {one.carried_passed} of them passed"
    if one.files:
        yield f"  files      {', '.join(one.files)}"
    if one.commit:
        yield f"  commit     {output.safe(one.commit)}"
    for line in one.hunk.splitlines():
        yield f"    {output.safe(line)}"


learnings.add_command(learn, "update")
