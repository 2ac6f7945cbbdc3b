"""A wait is written down before it begins; who waits no more has ended it, unless it was killed."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import cast

import pytest

from ralphloop.core.run_state import Session
from ralphloop.errors import InputError, JournalError
from ralphloop.journal.journal import Journal
from ralphloop.loop.prepare import Setup
from ralphloop.loop.run import Run
from ralphloop.proc.threads import StopSignal
from tests.journal.support import NOON, new_run


@pytest.fixture
def run(tmp_path: Path) -> Iterator[Run]:
    """A run at noon, for which a minute passes with every look at the clock."""
    minutes = iter(range(100))
    with Journal.open(tmp_path / "journal.db") as journal:
        journal.begin_run(new_run())
        clock = lambda: NOON + 60 * next(minutes)  # noqa: E731 - it is one of a kind
        yield Run(cast(Setup, None), Session(run="r1"), journal, StopSignal(), clock=clock)


def _meet_an_error(run: Run) -> None:
    with run.waiting("outage", "the start failed", NOON + 6000, aloud=False):
        assert run.journal.open_wait("r1") is not None
        raise InputError("unreadable")


def test_a_wait_that_an_error_ends_is_over(run: Run) -> None:
    """Whoever goes on after the error does not sit out the rest of an outage; the error is said."""
    with pytest.raises(InputError, match="unreadable"):
        _meet_an_error(run)

    assert run.journal.open_wait("r1") is None
    assert run.journal.totals("r1").waited_s == 60


def test_an_error_is_said_also_where_its_wait_cannot_be_ended(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What went wrong first is what a person hears."""

    def full(*_: object, **__: object) -> None:
        raise JournalError("database or disk is full")

    monkeypatch.setattr(run.journal, "end_wait", full)
    with pytest.raises(InputError, match="unreadable"):
        _meet_an_error(run)


def test_an_ordinary_wait_is_over_once(run: Run) -> None:
    """Its end is told, and nothing is left open."""
    with run.waiting("outage", "the start failed", NOON + 6000):
        pass

    assert run.journal.open_wait("r1") is None
