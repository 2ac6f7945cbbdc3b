"""What may be concluded from mutants that were noticed, broke something, or survived."""

from __future__ import annotations

from msgspec.structs import replace

from ralphloop.core.mutation import (
    Came,
    ChangedPiece,
    Mutant,
    Mutation,
    Operator,
    Reach,
    TriedMutant,
    concluded_from,
)

BENT = Mutant(operator=Operator.BEND, what="returns something else", edits=(), line=1)
EMPTY = Mutant(operator=Operator.EMPTY, what="does nothing", edits=(), line=1)
UNDONE = Mutant(operator=Operator.UNDO, what="is as it was before", edits=(), line=1)
RAISED = Mutant(operator=Operator.RAISE, what="fails", edits=(), line=1)
PIECE = ChangedPiece(
    path="shop.py", name="total()", line=1, last_line=4, acts=(2, 4), lines=(2, 3, 4)
)
TEST = "tests/test_shop.py::test_total"


def _reach(*lines: int) -> Reach:
    seen: dict[str, tuple[int, ...]] = {f"shop.py:{line}": (0,) for line in lines}
    return Reach(tests={TEST: (0,)}, lines=seen, names=(TEST,))


def _came(piece: ChangedPiece, came: Came, reach: Reach, *, own: bool = True) -> Mutation:
    tried = [TriedMutant(piece=0, mutant=0, came=came, test=TEST)]
    return concluded_from([piece], reach, tried, frozenset([TEST]) if own else frozenset())


def test_a_bent_result_that_a_test_notices_is_proof() -> None:
    """It is told by the test's name and by what it notices."""
    found = _came(replace(PIECE, mutants=(BENT,)), Came.NOTICED, _reach(2, 4))
    assert found.is_proof
    assert found.reason == "proved by test_total: it notices if total() returns something else"
    assert (found.lines, found.unwatched) == (2, ())


def test_an_emptied_body_proves_only_where_there_is_no_result() -> None:
    """Where a result could be bent, doing nothing shows less than that."""
    procedure = replace(PIECE, mutants=(EMPTY,), returns=False)
    assert _came(procedure, Came.NOTICED, _reach(2, 4)).is_proof
    assert not _came(replace(procedure, returns=True), Came.NOTICED, _reach(2, 4)).is_proof


def test_a_raised_error_never_proves() -> None:
    """Whoever only calls dies of it."""
    piece = replace(PIECE, mutants=(RAISED,), returns=False)
    assert not _came(piece, Came.NOTICED, _reach(2, 4)).is_proof


def test_falling_over_is_reach_and_neither_proof_nor_a_survivor() -> None:
    """A test that dies of another result has not looked at it; it has not passed either."""
    found = _came(replace(PIECE, mutants=(BENT,)), Came.BROKE, _reach(2, 4))
    assert not found.is_proof
    assert found.survivors == ()


def test_an_added_function_that_its_own_tests_run_in_vain_speaks_against_the_rest() -> None:
    """One function that is watched does not make up for another that is only called."""
    pieces = [replace(PIECE, mutants=(BENT,)), replace(PIECE, name="half()", mutants=(BENT,))]
    reach = Reach(tests={TEST: (0, 1)}, lines=_reach(2, 4).lines, names=(TEST,))
    tried = [
        TriedMutant(piece=0, mutant=0, came=Came.NOTICED, test=TEST),
        TriedMutant(piece=1, mutant=0, came=Came.SURVIVED),
    ]
    found = concluded_from(pieces, reach, tried, frozenset([TEST]))
    assert not found.is_proof
    assert (
        found.reason == "not proven: no test notices if half() returns something else (shop.py:1)"
    )
    assert concluded_from(pieces, reach, tried).is_proof, "tests that were there may only call it"
    changed = [pieces[0], replace(pieces[1], is_added=False)]
    assert concluded_from(changed, reach, tried, frozenset([TEST])).is_proof


def test_a_switch_that_is_off_proves_nothing() -> None:
    """Where only an argument is handed on and the work behind a branch never runs, it is no proof."""
    piece = replace(PIECE, mutants=(BENT,), easy=(4,))
    assert not _came(piece, Came.NOTICED, _reach(4)).is_proof
    assert _came(piece, Came.NOTICED, _reach(2, 4)).is_proof
    assert _came(replace(piece, acts=(4,)), Came.NOTICED, _reach(4)).is_proof


def test_a_changed_function_is_proven_by_a_test_that_runs_the_change() -> None:
    """An old test that watches the rest of it says nothing about the new line."""
    piece = replace(PIECE, is_added=False, mutants=(BENT,))
    assert not _came(piece, Came.NOTICED, _reach()).is_proof
    assert _came(piece, Came.NOTICED, _reach(2)).is_proof
    undone = replace(piece, mutants=(UNDONE,))
    assert _came(undone, Came.NOTICED, _reach()).is_proof


def test_lines_that_no_test_watches_are_named() -> None:
    """A line is watched where a test that notices its piece ran it, and not where it alone may go wrong."""
    alone = replace(BENT, line=2, is_detail=True)
    piece = replace(PIECE, mutants=(BENT, alone))
    tried = [TriedMutant(piece=0, mutant=0, came=Came.NOTICED, test=TEST)]
    assert concluded_from([piece], _reach(4), tried).unwatched == ("shop.py:2",)
    assert concluded_from([piece], _reach(2, 4), tried).unwatched == ()
    tried += [TriedMutant(piece=0, mutant=1, came=Came.SURVIVED)]
    found = concluded_from([piece], _reach(2, 4), tried)
    assert found.unwatched == ("shop.py:2",)
    assert found.remarks == ("1 of 2 changed lines is watched by no test: shop.py:2",)


def test_answers_that_tests_repeat_are_no_proof() -> None:
    """However well they are watched."""
    found = _came(replace(PIECE, mutants=(BENT,)), Came.NOTICED, _reach(2, 4))
    told = replace(found, literal=("price()",))
    assert not told.is_proof
    assert told.reason == "not proven: price() only hands out answers that its own tests repeat"


def test_what_was_not_tried_says_why() -> None:
    """Silence would read as survival."""
    tried = [TriedMutant(piece=0, mutant=0, came=Came.UNTRIED, why="no time was left")]
    found = concluded_from([replace(PIECE, mutants=(BENT,))], _reach(2, 4), tried)
    assert found.untried == ("total() was not tried: no time was left",)
    assert found.unwatched == ()  # nobody knows
    unrun = [replace(tried[0], why="no test runs it")]
    found = concluded_from([replace(PIECE, mutants=(BENT,))], _reach(), unrun)
    assert found.unwatched == ("shop.py:2", "shop.py:4")
