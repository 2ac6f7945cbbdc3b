"""A story that asks for something to go takes the tests of just that along."""

from __future__ import annotations

import pytest

from ralphloop.core.proof import Fate, OldTest, Trial
from ralphloop.core.removals import with_removals_asked_for


@pytest.mark.parametrize(
    ("words", "test", "fate"),
    [
        ("Drop support for `info` as a positional parameter", "t.py::test_lock_info", Fate.GONE),
        ("Drop support for a cache that is None", "t.py::test_nocache", Fate.GONE),
        ("The legacy header is no longer sent", "T.test_legacy_header", Fate.GONE),
        ("Drop support for a cache that is None", "t.py::test_total", Fate.REMOVED),
        ("Export the info of an order", "t.py::test_lock_info", Fate.REMOVED),
        ("Remove deprecated values", "t.py::test_values_should_raise", Fate.REMOVED),
    ],
)
def test_only_what_was_asked_for_goes_without_a_question(words: str, test: str, fate: Fate) -> None:
    """The story has to ask for a removal, and the test to speak of what is removed."""
    trial = Trial(old=(OldTest(name=test, fate=Fate.REMOVED),))
    (one,) = with_removals_asked_for(trial, words).old
    assert one.fate is fate


@pytest.mark.parametrize("fate", [it for it in Fate if it is not Fate.REMOVED])
def test_what_was_not_removed_is_judged_as_ever(fate: Fate) -> None:
    """A weakened, skipped or emptied test has no part in it."""
    trial = Trial(old=(OldTest(name="t.py::test_lock_info", fate=fate),))
    assert with_removals_asked_for(trial, "Drop support for info") == trial
