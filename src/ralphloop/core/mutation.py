"""What the tests notice of a story's own change, and what may be concluded from it.

The new code stays, and its behaviour is taken away piece by piece.  A **piece** is a function or a
statement that the story added or changed; a **mutant** is a piece that does something else: its
real result *bent*, its body *emptied*, or the piece *undone*, put back as it was.  A mutant is
noticed where a test that is green with the story fails by what it asserts.  Where the test only
falls over (an error out of the product, a name that is missing, a time that runs out) the mutant
was reached, and nothing is proven.

A story is proven by one piece whose bent or undone form is noticed; an emptied one counts only
where there is no result to bend.  An added function that the story's own new tests reach and never
notice speaks against that.  So does work that is a table of the answers its own tests expect.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from enum import StrEnum
from typing import Protocol

import msgspec

from ralphloop.core import Value, sentences

MOST_NAMED = 20
UNRUN = "no test runs it"  # why a mutant was not tried
MOST_MUTANTS = 60  # of one story, where single lines are among them
MOST_WHOLE_MUTANTS = 300  # of whole functions


class Operator(StrEnum):
    BEND = "bend"  # the real result, altered
    EMPTY = "empty"  # the body does nothing
    UNDO = "undo"  # the piece as it was before
    RAISE = "raise"  # an error of ours: shows reach, and never more
    PROBE = "probe"  # the same, where a result is anything: shows that tests are given nothing


class Edit(Value, kw_only=True):
    """A span of a file, and what stands there instead; columns count bytes."""

    line: int
    column: int
    last_line: int
    last_column: int
    text: str


class Mutant(Value, kw_only=True):
    """One piece of a file that does something else."""

    operator: Operator
    what: str  # is different, in words behind the name of the piece
    edits: tuple[Edit, ...]
    line: int  # where it is different
    when_loaded: bool = False  # it makes a difference while its file is loaded, not later
    is_detail: bool = False  # one line alone: it tells what is watched, and decides nothing


class Probe(Value, kw_only=True):
    """A place that says when it is run; nothing else is different there."""

    line: int
    edits: tuple[Edit, ...]


class ChangedPiece(Value, kw_only=True):
    """A function, or a statement outside of all functions, that a story added or changed."""

    path: str
    name: str
    line: int
    last_line: int
    is_function: bool = True
    is_added: bool = True
    returns: bool = True  # a result that can be bent
    lines: tuple[int, ...] = ()  # statements that are new or different
    acts: tuple[int, ...] = ()  # those of them that do something themselves
    easy: tuple[int, ...] = ()  # those that hand on a constant or an argument, no more
    mutants: tuple[Mutant, ...] = ()
    probes: tuple[Probe, ...] = ()

    @property
    def place(self) -> str:
        return f"{self.path}:{self.line}"


class Came(StrEnum):
    """What became of a mutant."""

    NOTICED = "noticed"  # a test asserted otherwise
    BROKE = "broke"  # a test fell over it
    SURVIVED = "survived"  # the tests that reach it pass
    VOID = "void"  # the same, and what it returned to them was nothing
    UNTRIED = "untried"


class TriedMutant(Value, kw_only=True):
    piece: int  # by its number among the pieces
    mutant: int  # and of the mutant among those of the piece
    came: Came
    test: str = ""  # which noticed it, or fell over it
    said: str = ""
    why: str = ""  # it was not tried


class AlwaysSays(Value, kw_only=True):
    """A function that could say the same to whatever its tests ask, and none would notice."""

    piece: int
    answer: bool

    @property
    def words(self) -> str:
        return f"always says {'yes' if self.answer else 'no'}"


class NamedResults(Protocol):
    """What is known of a run by the names of its tests."""

    @property
    def passed(self) -> dict[str, int]: ...
    @property
    def failed(self) -> dict[str, int]: ...
    @property
    def said(self) -> dict[str, str]: ...


class TriedCame(Value, kw_only=True):
    came: Came
    test: str = ""
    said: str = ""
    why: str = ""


class Reach(Value, kw_only=True):
    """What the tests ran with the story as it is."""

    tests: dict[str, tuple[int, ...]] = msgspec.field(default_factory=dict)  # pieces, by test
    lines: dict[str, tuple[int, ...]] = msgspec.field(default_factory=dict)  # tests, by path:line
    names: tuple[str, ...] = ()  # of the tests, by number


class Watched(Value, kw_only=True):
    """A piece that a test watches."""

    name: str
    place: str
    test: str
    what: str  # the test notices


class Survivor(Value, kw_only=True):
    """A piece that could be wrong, and no test would notice."""

    name: str
    place: str
    what: str
    is_own: bool = False  # added by the story and reached by its own new tests

    @property
    def words(self) -> str:
        return sentences.unnoticed(self.name, self.what, self.place)


class Mutation(Value, kw_only=True):
    """What a story's tests notice of its change."""

    watched: tuple[Watched, ...] = ()  # proof, but for what speaks against it
    survivors: tuple[Survivor, ...] = ()
    untried: tuple[str, ...] = ()  # pieces or all, and why, in words
    too_many: int = 0  # functions that came with it and were not tried, because there are so many
    is_cut: bool = False  # some were not tried though a test runs them, or nobody knows
    literal: tuple[str, ...] = ()  # functions that hand out the answers of their own tests
    soft: tuple[str, ...] = ()  # what agrees with whatever it is compared with, in words
    lines: int = 0  # that the story changed and that do something
    unwatched: tuple[str, ...] = ()  # those of them that no test watches, as path:line
    starts: int = 0  # of a runner
    took_s: float = 0.0

    @property
    def is_tried(self) -> bool:
        """Tests ran against mutants."""
        return self.starts > 0

    @property
    def is_proof(self) -> bool:
        """One piece is watched, and no function of the story is run in vain by its own tests."""
        is_doubtful = bool(self.literal or self.soft or self.in_vain or self.too_many)
        return bool(self.watched) and not is_doubtful

    @property
    def is_unnoticed(self) -> bool:
        """Tests ran the story's code in vain, or all of it could be something else."""
        return bool(self.in_vain or (self.survivors and not self.watched and not self.untried))

    @property
    def in_vain(self) -> tuple[Survivor, ...]:
        return tuple(one for one in self.survivors if one.is_own)

    @property
    def reason(self) -> str:
        """Why the story is proven, or is not; empty where nothing was found out."""
        if self.literal:
            return sentences.answers(self.literal)
        if self.too_many:
            return sentences.too_many(self.too_many)
        if self.watched and not self.in_vain:
            first = self.watched[0]
            return sentences.noticed(first.test, first.name, first.what)
        if self.survivors:  # those that its own tests run in vain come first
            return f"{sentences.NOT_PROVEN}{self.survivors[0].words}"
        return ""

    @property
    def remarks(self) -> tuple[str, ...]:
        """For the report: what is watched by no test, and what was not tried."""
        told = list[str]()
        if self.unwatched and self.lines:
            told.append(sentences.unwatched(self.unwatched, self.lines))
        told += (one.words for one in self.survivors)
        told += self.untried
        return tuple(dict.fromkeys(told))

    def joined(self, other: "Mutation") -> "Mutation":
        """Both together: those of two checks, or of two ways to look."""
        best = other if other.starts and not self.is_proof else self
        return msgspec.structs.replace(
            best,
            literal=self.literal or other.literal,
            soft=tuple(dict.fromkeys((*self.soft, *other.soft))),
            untried=tuple(dict.fromkeys((*self.untried, *other.untried))),
            too_many=max(self.too_many, other.too_many),
            is_cut=self.is_cut or other.is_cut,
            starts=self.starts + other.starts,
            took_s=self.took_s + other.took_s,
        )


def concluded_from(
    pieces: Sequence[ChangedPiece],
    reach: Reach,
    tried: Iterable[TriedMutant],
    own_tests: frozenset[str] = frozenset(),
    always: Sequence[AlwaysSays] = (),
) -> Mutation:
    """What came out of it all; `own_tests` came with the story."""
    by_piece: dict[int, list[TriedMutant]] = {}
    for one in tried:
        by_piece.setdefault(one.piece, []).append(one)
    watched = list[Watched]()
    survivors = list[Survivor]()
    untried = list[str]()
    is_cut = False
    is_work_unrun = _is_work_unrun(pieces, by_piece)
    one_sided = {one.piece: one.words for one in always}
    for number, piece in enumerate(pieces):
        came = by_piece.get(number, [])
        if words := one_sided.get(number):
            survivors.append(Survivor(name=piece.name, place=piece.place, what=words, is_own=True))
            continue
        if proof := next(_proofs(piece, reach, came), None):
            if is_work_unrun and piece.is_added and not piece.is_function:
                continue
            mutant = piece.mutants[proof.mutant]
            place = f"{piece.path}:{mutant.line}"
            watched.append(Watched(name=piece.name, place=place, test=proof.test, what=mutant.what))
            continue
        if survived := next(_survived(piece, came), None):
            mutant = piece.mutants[survived.mutant]
            tests = {test for test, reached in reach.tests.items() if number in reached}
            survivors.append(
                Survivor(
                    name=piece.name,
                    place=f"{piece.path}:{mutant.line}",
                    what=mutant.what,
                    is_own=piece.is_function and piece.is_added and bool(tests & own_tests),
                )
            )
        elif why := next(_why_untried(piece, came), ""):
            untried.append(f"{piece.name} was not tried: {why}")
            is_cut = is_cut or why != UNRUN
    known = [
        piece for number, piece in enumerate(pieces) if not _is_unknown(by_piece.get(number, ()))
    ]
    lines = {f"{piece.path}:{line}" for piece in known for line in piece.acts}
    unwatched = lines - set(_watched_lines(pieces, reach, by_piece))
    return Mutation(
        watched=tuple(watched)[:MOST_NAMED],
        survivors=tuple(sorted(survivors, key=lambda one: not one.is_own))[:MOST_NAMED],
        untried=tuple(untried)[:MOST_NAMED],
        is_cut=is_cut,
        lines=len(lines),
        unwatched=tuple(sorted(unwatched, key=_by_line))[:MOST_NAMED],
    )


def _is_work_unrun(
    pieces: Sequence[ChangedPiece], by_piece: Mapping[int, Sequence[TriedMutant]]
) -> bool:
    """Whether functions came with the story and no test runs any: no constant proves it then."""
    work = [number for number, piece in enumerate(pieces) if piece.is_function]
    came = [one for number in work for one in by_piece.get(number, ())]
    is_added = any(pieces[number].is_added for number in work)
    return is_added and bool(came) and all(one.why == UNRUN for one in came)


_ASSERTED = re.compile(
    r"assert|expect|should|must|mismatch|not equal|to (?:be|equal|match|throw)|did not",
    re.IGNORECASE,
)
_FELL = re.compile(r"^(?:E +)?(?:Type|Reference|Range|Syntax|URI|Name|Attribute|Key|Index)Error")
_PANIC = re.compile(r"^panic:|panicked at", re.MULTILINE)


def came_of(end: NamedResults, ran: NamedResults | None, mutant: Mutant, output: str) -> TriedCame:
    """What became of a mutant whose tests ran as a whole; `end` are those with the story as it is.

    `output` is what the runner printed, for those that name no reason with a test.
    """
    if ran is None or not (ran.passed or ran.failed):
        return TriedCame(came=Came.UNTRIED, why="it does not compile")
    failing = [name for name in end.passed if name in ran.failed]
    for name in failing:
        said = ran.said.get(name, "")
        is_asserted = bool(_ASSERTED.search(said)) and not _FELL.search(said)
        if not said:  # a panic of Rust says what it asserted
            is_asserted = not _PANIC.search(output) or "assertion" in output
        if is_asserted or (mutant.operator is Operator.UNDO and not _FELL.search(said)):
            return TriedCame(came=Came.NOTICED, test=name, said=said)
    if failing:
        return TriedCame(came=Came.BROKE, test=failing[0], said=ran.said.get(failing[0], ""))
    return TriedCame(came=Came.SURVIVED)


def _by_line(place: str) -> tuple[str, int]:
    path, _, line = place.rpartition(":")
    return path, int(line)


def _proofs(
    piece: ChangedPiece, reach: Reach, came: Iterable[TriedMutant]
) -> Iterator[TriedMutant]:
    """Mutants that were noticed, and whose noticing proves something."""
    came = list(came)
    has_result = piece.returns and not any(one.came is Came.VOID for one in came)
    for one in came:
        mutant = piece.mutants[one.mutant]
        if one.came is not Came.NOTICED or mutant.is_detail or mutant.operator is Operator.RAISE:
            continue
        if mutant.operator is Operator.EMPTY and has_result:
            continue
        if mutant.operator is Operator.UNDO or _is_run(piece, reach, one.test):
            yield one


def _is_run(piece: ChangedPiece, reach: Reach, test: str) -> bool:
    """Whether the test ran something of this piece that the story did, and not just what is easy.

    A switch that is off leaves the work behind it unrun: what is noticed then is the old way.
    """
    if not piece.is_function or not piece.acts:
        return True
    run = _lines_of(piece, reach, test)
    anybody = {line for line in piece.acts if f"{piece.path}:{line}" in reach.lines}
    if not run.intersection(piece.acts):
        return False
    has_only_easy = run.intersection(piece.acts) <= set(piece.easy)
    is_work_unrun = any(line not in anybody and line not in piece.easy for line in piece.acts)
    return not (has_only_easy and is_work_unrun)


def _lines_of(piece: ChangedPiece, reach: Reach, test: str) -> set[int]:
    found = set[int]()
    for line in piece.acts:
        tests = reach.lines.get(f"{piece.path}:{line}", ())
        if any(reach.names[number] == test for number in tests):
            found.add(line)
    return found


def _survived(piece: ChangedPiece, came: Iterable[TriedMutant]) -> Iterator[TriedMutant]:
    """What nobody noticed of a piece as a whole; nothing where a test fell over one of them."""
    whole = [one for one in came if not piece.mutants[one.mutant].is_detail]
    if any(one.came in (Came.NOTICED, Came.BROKE) for one in whole):
        return
    yield from (one for one in whole if one.came is Came.SURVIVED)


def _why_untried(piece: ChangedPiece, came: Iterable[TriedMutant]) -> Iterator[str]:
    """Why the piece as a whole was not tried; that a line alone was not decides nothing."""
    for one in came:
        is_whole = not piece.mutants[one.mutant].is_detail
        if is_whole and one.came is Came.UNTRIED and one.why:
            yield one.why


def _is_unknown(came: Sequence[TriedMutant]) -> bool:
    """Whether nobody found out if tests watch a piece: what no test runs is watched by none."""
    return bool(came) and all(one.came is Came.UNTRIED and one.why != UNRUN for one in came)


def _watched_lines(
    pieces: Sequence[ChangedPiece], reach: Reach, by_piece: Mapping[int, Sequence[TriedMutant]]
) -> Iterator[str]:
    """Lines of the change whose going wrong some test notices.

    A line that was tried alone is watched where that was noticed, another one where a test that
    notices its piece has run it.
    """
    for number, piece in enumerate(pieces):
        came = by_piece.get(number, ())
        alone = dict[int, bool]()
        noticing = set[str]()
        for one in came:
            mutant = piece.mutants[one.mutant]
            is_seen = one.came in (Came.NOTICED, Came.BROKE)
            if mutant.is_detail and one.came is not Came.UNTRIED:
                alone[mutant.line] = alone.get(mutant.line, False) or is_seen
            elif one.came is Came.NOTICED:
                noticing.add(one.test)
        for line in piece.acts:
            place = f"{piece.path}:{line}"
            tests = {reach.names[test] for test in reach.lines.get(place, ())}
            is_watched = bool(tests & noticing) if piece.is_function else bool(noticing)
            if alone.get(line, is_watched):
                yield place
