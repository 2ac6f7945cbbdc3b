"""Whether the tests that fail without a story may do so because something is not there yet.

A test can take the error that a missing name raises, and fail in words of its own, or look for the
new text of the code, or start a program and ask no more than how it ended.  What it is worth then
is what it notices where the code does something else.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import PurePosixPath

from msgspec.structs import replace

from ralphloop.core.model import Value
from ralphloop.core.mutation import Mutation
from ralphloop.core.proof import TestReport, Trial, is_test_path
from ralphloop.loop.bench import Bench
from ralphloop.loop.mutating import StoryTexts, texts_of
from ralphloop.proof.answers_elsewhere import is_known_language
from ralphloop.proof.handed_out import handed_out, has_documents
from ralphloop.proof.shams import shams_in
from ralphloop.proof.shams_elsewhere import shams_elsewhere
from ralphloop.repo.beneath import read
from ralphloop.repo.bytecode import hides_its_source, is_bytecode
from ralphloop.repo.judges import is_source
from ralphloop.repo.named import file_of
from ralphloop.text.definitions import (
    added_lines,
    added_names,
    reads_text_of,
    starts_programs,
    words_of,
)
from ralphloop.text.peeking import looks_at_mechanics, peeks

_OF_JAVA = ".class"
_MOST_BESIDE = 2000  # files that lie with the tests


class Absence(Value, kw_only=True):
    """What may be all that the failing tests of a story miss without it."""

    has_new_names: bool = False  # the story defines something
    is_named: bool = False  # and its new tests say the name
    is_text: bool = False  # they read the text of the code
    is_outside: bool = False  # they start programs, which may refuse what they do not know yet

    @property
    def may_be_all(self) -> bool:
        return self.has_new_names or self.is_text or self.is_outside

    def without_proof(self, found: Trial, mutation: Mutation) -> Trial:
        """What was found, where the tests notice nothing of what the code does: only reach."""
        is_whole = not mutation.untried
        is_unseen = self.is_named or (self.is_text and not mutation.is_cut)
        is_unseen = is_unseen or (self.is_outside and is_whole and mutation.is_tried)
        is_unseen = is_unseen and not mutation.watched
        if not self.may_be_all or not (mutation.is_unnoticed or is_unseen):
            return found
        return replace(found, proven=(), reached=(*found.reached, *found.proven))


def absence_in(bench: Bench, before: TestReport | None, trial: Trial) -> Absence:
    """What may be missing, where all tests that fail without the story came with it."""
    had = before or TestReport()
    known = {*had.passed, *had.failed, *had.errors, *had.skipped}
    if not trial.proven or any(name in known for name in trial.proven):
        return Absence()
    texts = texts_of(bench)
    whole = "\n".join(_text(it.new) or "" for it in texts.tests)
    tests = "\n".join(added_lines(_text(it.old), _text(it.new) or "") for it in texts.tests)
    names = set[str]()
    for code in texts.code:
        names |= added_names(code.path, _text(code.old), _text(code.new) or "")
    return Absence(
        has_new_names=bool(names),
        is_named=not names.isdisjoint(words_of(tests)),
        is_text=any(reads_text_of(tests, code.path) for code in texts.code),
        is_outside=starts_programs(whole) or starts_programs(_helpers(bench, had, whole)),
    )


def _helpers(bench: Bench, had: TestReport, tests: str) -> str:
    """What tests use of files beside them: those that they name, and what runners load unasked."""
    root = bench.story.place.root
    words = words_of(tests)
    files = {PurePosixPath(file_of(name)) for name in had.passed}
    found = [file for file in sorted(files) if file.stem in words]
    found += sorted({file.parent / "conftest.py" for file in files})
    texts = list[str]()
    for file in found:
        with suppress(OSError, ValueError):
            content = read(root, str(file)) or b""
            texts.append(content.decode("utf-8", "replace"))
    return "\n".join(texts)


def peeking_in(bench: Bench) -> tuple[str, ...]:
    """What of the story's code looks at who judges it, in words."""
    end = bench.now.report or TestReport()
    names = (*end.passed, *end.failed)
    tests = {file_of(name) for name in names} - {""}
    tests |= bench.expected_files
    found = [f"{path} is run in the place of its source" for path in _hiding(bench)]
    texts = texts_of(bench)
    for code in texts.code:
        if not is_source(code.path):
            continue
        before = _text(code.old)
        added = added_lines(before, _text(code.new) or "")
        told = peeks(code.path, added, tests, names, before or "")
        found += (f"{code.path} {words}" for words in told)
    if texts.is_python:
        found += shams_in(texts.sources, bench.asking_texts, [it.new for it in texts.tests])
    elif texts.sources and all(is_known_language(it.path) for it in texts.sources):
        own = [it.new for it in texts.tests]
        # Tests of Java and Rust are told by their directory, which runners do not name.
        found += shams_elsewhere(texts.sources, (*bench.test_texts, *own), own)
    found += _handed_out(bench, texts)
    for test in texts.tests:
        added = added_lines(_text(test.old), _text(test.new) or "")
        if words := looks_at_mechanics(added):
            found.append(f"{test.path} looks at how it is judged ({words})")
    return tuple(found)


def _hiding(bench: Bench) -> Iterator[str]:
    """Bytecode of the story that runs whatever its source says: Python's, and Java's beside it."""
    story = bench.story
    measure = story.place.measure
    every = measure.changes(story.start.tree, story.end.tree)
    yield from (
        it.path
        for it in every
        if it.after and it.path.endswith(_OF_JAVA) and not is_test_path(it.path)
    )
    compiled = [it for it in every if it.after and is_bytecode(it.path)]
    contents = measure.contents(it.after or "" for it in compiled)
    yield from (it.path for it in compiled if hides_its_source(contents.get(it.after or "", b"")))


def _handed_out(bench: Bench, texts: StoryTexts) -> tuple[str, ...]:
    """What of the product are answers as a whole; tests are read only where it has documents."""
    if not has_documents(texts.code):
        return ()
    tests = [text.new for text in texts.tests]
    return handed_out(texts.code, (*tests, *_beside_tests(bench)))


def _beside_tests(bench: Bench) -> list[bytes]:
    """Everything that lies with the tests, or is expected by a command, as far as it is small."""
    story = bench.story
    measure = story.place.measure
    listed = measure.git().run("ls-tree", "-r", "-z", "--full-tree", story.end.tree, "--")
    names = list[str]()
    for entry in filter(None, listed.split(b"\0")):
        told, _, path = entry.decode("utf-8", "replace").partition("\t")
        if not path.startswith(story.prefix) or len(names) >= _MOST_BESIDE:
            continue
        inside = path.removeprefix(story.prefix)
        if is_test_path(inside) or inside in bench.expected_files:
            names.append(told.split(" ")[2])
    return list(measure.contents(names).values())


def _text(content: bytes | None) -> str | None:
    return None if content is None else content.decode("utf-8", "replace")
