"""A story's own change with its behaviour taken away piece by piece: which test notices?

Asked where running crosswise proves nothing by behaviour: the new tests cannot be loaded on the old
code, or fail there because a name is missing, or nothing but code changed.  The tests that belong
to the change run first, all of them only where those prove nothing and there is time.  Whether the
story is a table of answers that its own tests repeat is asked of every story: that costs nothing.
"""

import re
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import chain
from pathlib import PurePosixPath

import msgspec

from ralphloop.core.model import CheckResult, CheckStatus, Value
from ralphloop.core.mutation import (
    MOST_MUTANTS,
    MOST_WHOLE_MUTANTS,
    Came,
    ChangedPiece,
    Mutant,
    Mutation,
    Operator,
    Reach,
    TriedCame,
    TriedMutant,
    came_of,
    concluded_from,
)
from ralphloop.core.proof import TestReport
from ralphloop.loop.bench import Bench
from ralphloop.loop.exchanging import Impossible, OldSide, Stopped, exchanged
from ralphloop.proc.slowness import slowness
from ralphloop.proc.threads import in_thread
from ralphloop.proof.answers import ChangedText, answer_tables
from ralphloop.proof.answers_elsewhere import answer_tables_elsewhere, is_known_language
from ralphloop.proof.plumbing import carried_answers
from ralphloop.proof.python import NotPython, pieces_of
from ralphloop.proof.spans import edited
from ralphloop.proof.trees import NoGrammar, pieces_of_tree
from ralphloop.repo.checks import check_of
from ralphloop.repo.judges import is_source
from ralphloop.repo.mutant_runs import MutantJob, MutantRun, can_be_mutated, run_mutants
from ralphloop.repo.named import file_of
from ralphloop.repo.snapshot import Change
from ralphloop.text.definitions import added_lines, words_of
from ralphloop.text.renames import stands_in

_SHARE = 1.5  # of the check's own time, for all mutants of a story
_LEAST_S = 10.0
_SHARE_IF_FREE = 5.0  # where experiments are always made
_LEAST_IF_FREE_S = 60.0
_SHARE_OF_DETAILS = 0.25
_LEAST_OF_DETAILS_S = 1.0
_SHARE_OF_STARTS = 2.0  # where each mutant needs a start of its own
_LEAST_OF_STARTS_S = 15.0
_MOST_STARTS = 8
_LARGEST_FILE = 400_000
_PYTHON = ".py"
_COMPARING = re.compile(r"__(?:eq|ne|lt|le|gt|ge|contains|cmp)__|\bANY\b|total_ordering")
_BESIDE = frozenset("examples example fuzz benches bench benchmarks docs scripts".split())


class StoryTexts(Value, kw_only=True):
    """The story's change as text, from the project's root."""

    code: tuple[ChangedText, ...] = ()
    tests: tuple[ChangedText, ...] = ()
    left_out: tuple[str, ...] = ()  # files that are too large
    before: tuple[str, ...] = ()  # all code that the story changed or took away, as it was

    @property
    def sources(self) -> tuple[ChangedText, ...]:
        """The code without data beside it, which works nothing out."""
        return tuple(text for text in self.code if is_source(text.path))

    @property
    def compares(self) -> bool:
        """Whether the change may say how something is compared with something else."""
        return any(_COMPARING.search(new_text_of(text)) for text in self.code)

    @property
    def is_python(self) -> bool:
        return bool(self.sources) and all(it.path.endswith(_PYTHON) for it in self.sources)


def new_text_of(text: ChangedText) -> str:
    """The lines of a file that are in it now and were not before."""
    old = None if text.old is None else text.old.decode("utf-8", "replace")
    return added_lines(old, text.new.decode("utf-8", "replace"))


def find_answers(bench: Bench) -> Mutation:
    """Whether all that a story did is to hand out the answers of its own tests."""
    texts = texts_of(bench)
    tests = [text.new for text in texts.tests]
    code = texts.sources
    if not code:
        return Mutation()
    if texts.is_python:
        return Mutation(literal=answer_tables(code, tests) or carried_answers(code, tests))
    if all(is_known_language(text.path) for text in code):
        return Mutation(literal=answer_tables_elsewhere(code, tests))
    return Mutation()


def find_asked_answers(bench: Bench) -> Mutation:
    """Whether all that a story did is to hand out what a person's command or tests ask for."""
    texts = texts_of(bench)
    if texts.is_python:
        return Mutation(literal=answer_tables(texts.sources, bench.asking_texts, of_arguments=True))
    if texts.sources and all(is_known_language(text.path) for text in texts.sources):
        return Mutation(literal=answer_tables_elsewhere(texts.sources, bench.test_texts))
    return Mutation()


async def try_mutants(
    bench: Bench, before: TestReport | None, *, is_old_code_unnoticed: bool = False
) -> Mutation:
    """What the tests notice of the story's change; `before` are those from before it.

    `is_old_code_unnoticed`: they pass with all of the code as it was, and nobody need ask again.
    """
    texts = texts_of(bench)
    trial = _OnTrial(bench, texts, before)
    trial.is_old_code_unnoticed = is_old_code_unnoticed
    try:
        return await trial.tried()
    except Impossible as why:
        return Mutation(untried=(f"no mutants were tried: {why}",) if str(why) else (), is_cut=True)


def texts_of(bench: Bench) -> StoryTexts:
    """Both sides of the change, as far as they are text of the project that is there now."""
    sides = bench.sides
    contents = bench.story.place.measure.sides([*sides.code, *sides.tests])
    left_out = list[str]()
    by_path = {change.path: contents.get(change.before or "") for change in sides.code}
    renamed = {came: by_path[gone] for came, gone in bench.renamed_code().items()}

    def read(changes: Sequence[Change]) -> Iterator[ChangedText]:
        for change in changes:
            if not change.path.startswith(sides.prefix) or change.after is None:
                continue
            path = change.path.removeprefix(sides.prefix)
            new = contents.get(change.after)
            if new is None or len(new) > _LARGEST_FILE:
                left_out.append(path)
                continue
            old = contents.get(change.before or "", renamed.get(change.path))
            yield ChangedText(path, old, new)

    code = tuple(read(sides.code))
    tests = tuple(read(sides.tests))
    before = tuple(old.decode("utf-8", "replace") for old in by_path.values() if old)
    return StoryTexts(code=code, tests=tests, left_out=tuple(left_out), before=before)


class _OnTrial:
    def __init__(self, bench: Bench, texts: StoryTexts, before: TestReport | None) -> None:
        self.bench = bench
        self.texts = texts
        end = bench.now.report or TestReport()
        had = before or TestReport()
        known = {*had.passed, *had.failed, *had.errors, *had.skipped}
        self.end = end
        self.own_tests = frozenset(name for name in end.passed if name not in known)
        self.is_old_code_unnoticed = False

    async def tried(self) -> Mutation:
        bench = self.bench
        found = bench.found
        is_green = bench.now.status is CheckStatus.PASSED
        if found is None or bench.now.report is None or not is_green or not self.texts.code:
            return Mutation()
        if not can_be_mutated(found):
            return await self._tried_in_files()
        every = [piece for piece in self._pieces() if not self._is_moved(piece)]
        every.sort(key=_is_beside)
        pieces = _cut(every)
        if not pieces:
            return Mutation()
        began = time.monotonic()
        only = self._concerned()
        bench.begin(alone=only is not None)
        seconds = self._seconds()
        mutation = await self._start(pieces, only, seconds)
        starts = 1
        left = seconds - (time.monotonic() - began)
        is_open = (
            not mutation.is_proof and not mutation.in_vain and not all(map(_is_unknown, pieces))
        )
        if only is not None and is_open and left > 1.5 * bench.now.duration_s:
            mutation = await self._start(pieces, None, left)
            starts = 2
        took_s = time.monotonic() - began
        too_many = sum(it.is_function and it.is_added for it in every[len(pieces) :])
        return msgspec.structs.replace(mutation, too_many=too_many, starts=starts, took_s=took_s)

    async def _tried_in_files(self) -> Mutation:
        """One start for each mutant, in its file: what makes most difference first."""
        pieces = list[ChangedPiece]()
        why = ""
        for text in self.texts.code:
            try:
                pieces += pieces_of_tree(text.path, text.old, text.new)
            except NoGrammar as missing:
                why = str(missing)
        pieces = [piece for piece in pieces if not self._is_moved(piece)]
        if why:
            return Mutation(untried=(f"no mutants were tried: {why}",), is_cut=True)
        if not pieces:
            return Mutation()
        pieces.sort(key=_is_beside)
        only = self._concerned()
        self.bench.begin(alone=only is not None)
        return await _InFiles(self, pieces, only).tried()

    def _seconds(self) -> float:
        """For all mutants of the story."""
        plain_s = self.bench.now.duration_s
        # The check's own time has grown with what else goes on; what is fixed has to grow as well.
        share_s = max(_LEAST_S * slowness(), _SHARE * plain_s)
        if self.bench.story.run.policy.experiments == "always":
            share_s = max(_LEAST_IF_FREE_S * slowness(), _SHARE_IF_FREE * plain_s)
        return min(self.bench.left_s, share_s)

    def _pieces(self) -> Iterator[ChangedPiece]:
        for text in self.texts.code:
            if text.path.endswith(_PYTHON):
                try:
                    yield from pieces_of(text.path, text.old, text.new)
                except NotPython:
                    continue

    def _is_moved(self, piece: ChangedPiece) -> bool:
        """Whether an added function stood elsewhere before: that tests know it proves nothing."""
        if not (piece.is_added and piece.is_function):
            return False
        new = next(text.new for text in self.texts.code if text.path == piece.path)
        lines = new.decode("utf-8", "replace").splitlines()[piece.line - 1 : piece.last_line]
        return stands_in("\n".join(lines), self.texts.before)

    def _concerned(self) -> list[str] | None:
        """Files whose tests run first: the story's own, and those named after what it changed."""
        if not self.bench.can_be_told:
            return None
        wanted = dict.fromkeys(self._own_files())
        stems = {PurePosixPath(text.path).stem.strip("_") for text in self.texts.code}
        changed = {text.path for text in self.texts.code}
        for file in dict.fromkeys(file_of(name) for name in self.end.passed):
            parts = PurePosixPath(file).stem.replace("-", "_").split("_")
            if file and (file in changed or stems & {"_".join(parts[1:]), *parts} - {"test"}):
                wanted[file] = None
        return list(wanted) or None

    def _own_files(self) -> list[str]:
        sides = self.bench.sides
        paths = (text.path for text in self.texts.tests)
        return [path for path in paths if sides.holds_tests(f"{sides.prefix}{path}")]

    async def _start(
        self, pieces: Sequence[ChangedPiece], only: Sequence[str] | None, seconds: float
    ) -> Mutation:
        bench = self.bench
        run = bench.story.run
        found = bench.found
        if found is None:
            return Mutation()
        place = bench.story.place
        check = check_of(bench.argv, seconds, place.check_box, lane=place.seat)
        root = bench.story.place.root
        job = MutantJob(
            pieces=tuple(pieces),
            first=tuple(self._own_files()),
            only=tuple(only) if only is not None else None,
            seconds=seconds,
            details_s=max(
                _LEAST_OF_DETAILS_S * slowness(), _SHARE_OF_DETAILS * bench.now.duration_s
            ),
            compares=self.texts.compares,
            asked=self._asked(),
        )

        def carry_out(gone: Callable[[], bool]) -> MutantRun | None:
            return run_mutants(check, found, root, job, lambda: gone() or run.stop.requested)

        ran = await in_thread(carry_out)
        if ran is None:
            raise Stopped
        if ran.trouble:
            return Mutation(untried=(f"no mutants were tried: {ran.trouble}",), is_cut=True)
        mutation = concluded_from(pieces, ran.reach, ran.tried, self.own_tests, ran.always)
        return msgspec.structs.replace(mutation, soft=ran.soft)

    def _asked(self) -> frozenset[str]:
        """The names in the story's tests that are nobody's own business."""
        texts = (text.new.decode("utf-8", "replace") for text in self.texts.tests)
        words = frozenset(word for text in texts for word in words_of(text))
        return frozenset(word for word in words if not word.startswith("_"))


class _InFiles:
    """Mutants that are written into their files, one start of the runner each."""

    def __init__(
        self, trial: _OnTrial, pieces: Sequence[ChangedPiece], only: Sequence[str] | None
    ) -> None:
        self.trial = trial
        self.bench = trial.bench
        self.pieces = pieces
        self.only = only
        self.texts = {text.path: text.new for text in trial.texts.code}
        self.tests: dict[str, tuple[int, ...]] = {}
        self.starts = 0
        self.until = 0.0  # by the monotonic clock

    async def tried(self) -> Mutation:
        """Added functions all, since none may be run in vain; changed ones until one is noticed."""
        began = time.monotonic()
        least_s = _LEAST_OF_STARTS_S * slowness()
        self.until = began + max(least_s, _SHARE_OF_STARTS * self.bench.now.duration_s)
        order = sorted(range(len(self.pieces)), key=lambda it: not self.pieces[it].is_added)
        found: dict[int, list[TriedMutant]] = {}
        mutation = await self._tried_until_noticed(order, found)
        is_open = not mutation.is_proof and not mutation.in_vain
        if is_open and self.only is not None and self._has_room():
            # What the story's own tests do not notice, others may: those that know the old name.
            self.only = None
            known = [it for it in order if not _is_unknown(self.pieces[it])]
            survived = [it for it in known if _has_survived(found.get(it, ()))]
            mutation = await self._tried_until_noticed(survived, found)
        took_s = time.monotonic() - began
        return msgspec.structs.replace(mutation, starts=self.starts, took_s=took_s)

    def _has_room(self) -> bool:
        """Whether there is time for all tests once more."""
        return self.until - time.monotonic() > self.bench.now.duration_s

    async def _tried_until_noticed(
        self, order: Sequence[int], found: dict[int, list[TriedMutant]]
    ) -> Mutation:
        """What came of these pieces and of those that were found before; it is added to them."""
        mutation = self._concluded(found)
        for number in order:
            is_decided = mutation.is_proof or bool(mutation.in_vain)
            if is_decided and not self.pieces[number].is_added:
                break
            found[number] = await self._piece(number)
            mutation = self._concluded(found)
        return mutation

    def _concluded(self, found: Mapping[int, list[TriedMutant]]) -> Mutation:
        reach = Reach(tests=self.tests, names=tuple(self.tests))
        tried = chain.from_iterable(found.values())
        return concluded_from(self.pieces, reach, tried, self.trial.own_tests)

    async def _piece(self, number: int) -> list[TriedMutant]:
        """What became of the mutants of one piece, up to the first that is noticed."""
        piece = self.pieces[number]
        came = Came.UNTRIED
        if piece.mutants[0].operator is Operator.RAISE:
            why = "its result cannot be altered"
            return [TriedMutant(piece=number, mutant=0, came=came, why=why)]
        found = list[TriedMutant]()
        is_nothing = False  # what it gave to the tests
        for index, mutant in self._worth_trying(piece):
            if not _is_worth_it(piece, mutant, came, is_nothing=is_nothing):
                continue
            if self.starts >= _MOST_STARTS or time.monotonic() > self.until:
                why = "no time was left"
                found.append(TriedMutant(piece=number, mutant=index, came=Came.UNTRIED, why=why))
                break
            one = await self._run(piece, mutant)
            if mutant.operator is Operator.PROBE:
                is_nothing = one.came is Came.SURVIVED
                if is_nothing:
                    found.append(TriedMutant(piece=number, mutant=index, came=Came.VOID))
                continue
            came = one.came
            if mutant.operator is Operator.RAISE:
                if one.test:
                    self.tests[one.test] = (*self.tests.get(one.test, ()), number)
                continue
            told = msgspec.structs.asdict(one)
            found.append(TriedMutant(piece=number, mutant=index, **told))
            if came is Came.NOTICED:
                break
        return found

    def _worth_trying(self, piece: ChangedPiece) -> list[tuple[int, Mutant]]:
        """Mutants by their number; a function as it was only where it may make a difference."""
        every = list(enumerate(piece.mutants))
        others = [it for it in every if it[1].operator is not Operator.UNDO]
        is_told = any(it[1].operator is not Operator.RAISE for it in others)
        return others if self.trial.is_old_code_unnoticed and is_told else every

    async def _run(self, piece: ChangedPiece, mutant: Mutant) -> TriedCame:
        """The tests with this mutant in its file; noticed only if it is noticed twice."""
        bench = self.bench
        story = bench.story
        measure = story.place.measure
        path = f"{story.prefix}{piece.path}"
        tree = measure.with_texts(
            story.end.tree, {path: edited(self.texts[piece.path], mutant.edits)}
        )
        changes = tuple(it for it in measure.changes(tree, story.end.tree) if it.path == path)
        with exchanged(story, f"{piece.name} {mutant.what}", OldSide(changes=changes, tree=tree)):
            self.starts += 1
            ran = await bench.run_tests(self.only)
            came = self._came(ran, mutant)
            if came.came is Came.NOTICED and bench.now.flaky:
                self.starts += 1
                came = self._came(await bench.run_tests(self.only, [came.test]), mutant)
        return came

    def _came(self, ran: CheckResult | None, mutant: Mutant) -> TriedCame:
        if ran is None:
            return TriedCame(came=Came.UNTRIED, why="no time was left")
        return came_of(self.trial.end, ran.report, mutant, ran.output_tail)


def _is_worth_it(piece: ChangedPiece, mutant: Mutant, came: Came, *, is_nothing: bool) -> bool:
    """Whether a start may tell something, after what came of the mutants before it."""
    is_unnoticed = came is Came.SURVIVED
    if mutant.operator is Operator.RAISE:
        return piece.is_added and is_unnoticed  # of what is new it is worth knowing who runs it
    if mutant.operator is Operator.PROBE:
        return is_unnoticed
    if mutant.operator is Operator.EMPTY:
        return is_nothing or all(it.operator is not Operator.PROBE for it in piece.mutants)
    return True


def _is_unknown(piece: ChangedPiece) -> bool:
    """Whether it is a function that nobody but the story's own tests can know by name."""
    return piece.is_function and piece.is_added and "." not in piece.name


def _has_survived(tried: Iterable[TriedMutant]) -> bool:
    return any(one.came is Came.SURVIVED for one in tried)


def _is_beside(piece: ChangedPiece) -> bool:
    """What tests hardly ever run: to be tried behind the product, in its order."""
    return PurePosixPath(piece.path).parts[0] in _BESIDE


def _cut(pieces: Sequence[ChangedPiece]) -> list[ChangedPiece]:
    """As many as fit: wholes before lines, those of the first pieces before the rest."""
    left = MOST_WHOLE_MUTANTS
    kept = list[ChangedPiece]()
    for piece in pieces:
        whole = [it for it in piece.mutants if not it.is_detail]
        if len(whole) > left:
            break
        left -= len(whole)
        kept.append(piece)
    left = max(0, left - MOST_WHOLE_MUTANTS + MOST_MUTANTS)
    found = list[ChangedPiece]()
    for piece in kept:
        details = [it for it in piece.mutants if it.is_detail][:left]
        left -= len(details)
        whole = [it for it in piece.mutants if not it.is_detail]
        found.append(msgspec.structs.replace(piece, mutants=(*whole, *details)))
    return found
