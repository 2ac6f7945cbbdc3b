"""The promises of `guarantees.toml`, held against what tests measure, and the page about them.

A test says what it saw by the fixture `measured`: so many starts, dollars, things lost.  More than
was promised fails the test.  With `pytest --guarantees` only tests that keep a promise run, and what
they measured is written to `docs/guarantees.md`; a row whose test did not run keeps what was
measured last.  A test with several cases shows its worst.
"""

from __future__ import annotations

import re
import tomllib
from collections import defaultdict
from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "guarantees.md"
Measured = Callable[[float], None]

HEAD = """\
# Guarantees

What a night may burn or lose, the bound we promise, and what was measured when the test beside it last ran. Every test is a
run of the real command with an agent that behaves so. Written by `make guarantees` from `tests/guarantees.toml`; not by hand.
"""
BURN = """
## Ways to burn or lose

| way | bound | measured | test |
|---|---|---|---|
"""
HONEST = """
## Honest agents

Each works in its own way, and no guard may stop it.

| agent | iterations it was given | test |
|---|---|---|
"""


class Promise(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A way to burn or lose with its bound, or an honest agent without one."""

    way: str
    test: str  # below tests/; without a case in brackets all its cases count
    bound: str = ""  # a number first

    @property
    def most(self) -> float:
        """The number of the bound."""
        found = re.search(r"[\d.]+", self.bound)
        return float(found[0]) if found else float("inf")

    def hold(self, value: float) -> None:
        """Fail where more was measured than is promised."""
        assert value <= self.most, f"{self.way}: {value} measured, {self.bound} promised"

    def shown(self, values: list[float]) -> str:
        """What was measured, in the form of the bound."""
        worst = f"${max(values):.2f}" if self.bound.startswith("$") else f"{max(values):g}"
        return worst if len(values) == 1 else f"{worst}, worst of {len(values)}"

    def line(self, value: str) -> str:
        """Its row in the page."""
        cells = [self.way, *([self.bound] if self.bound else []), value, f"`{self.test}`"]
        return f"| {' | '.join(cells)} |"


class Promises(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Both sides."""

    burn: list[Promise]
    honest: list[Promise]


def promises() -> Promises:
    """What `guarantees.toml` says."""
    text = Path(__file__).with_suffix(".toml").read_text(encoding="utf-8")
    return msgspec.convert(tomllib.loads(text), Promises)


def kept_by(nodeid: str, rows: Iterable[Promise]) -> list[Promise]:
    """The rows that this test keeps."""
    name = nodeid.removeprefix("tests/")
    return [row for row in rows if row.test in (name, name.partition("[")[0])]


def page(said: Promises, value: Callable[[Promise], str]) -> str:
    """The page with a value for each row."""
    burn, honest = (
        "".join(row.line(value(row)) + "\n" for row in rows) for rows in (said.burn, said.honest)
    )
    return HEAD + BURN + burn + HONEST + honest


def last_value(row: Promise, text: str) -> str:
    """What the page says was measured for just this row; nothing if it does not have it."""
    before, after = re.escape(row.line("\0")).split("\0")
    found = re.search(f"^{before}(.+){after}$", text, re.MULTILINE)
    return found[1] if found else ""


@pytest.fixture
def measured(
    request: pytest.FixtureRequest, record_property: Callable[[str, object], None]
) -> Measured:
    """Say what this test measured; more than its rows promise is a failure."""
    said = promises()

    def record(value: float) -> None:
        for row in kept_by(request.node.nodeid, [*said.burn, *said.honest]):
            row.hold(value)
        record_property("measured", value)

    return record


class Writer:
    """Collects what tests measured and writes the page."""

    def __init__(self) -> None:
        self.values: dict[Promise, list[float]] = defaultdict(list)
        self.said = promises()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Keep what a passed test measured."""
        if report.when != "call" or not report.passed:
            return
        for row in kept_by(report.nodeid, [*self.said.burn, *self.said.honest]):
            self.values[row] += [
                float(str(value)) for name, value in report.user_properties if name == "measured"
            ]

    def pytest_sessionfinish(self, exitstatus: int) -> None:
        """Write the page, if everything held."""
        if exitstatus == 0 and self.values:
            old = PAGE.read_text(encoding="utf-8") if PAGE.exists() else ""
            PAGE.write_text(page(self.said, lambda row: self.value(row, old)), encoding="utf-8")

    def value(self, row: Promise, old: str) -> str:
        """What is new, else what is known."""
        values = self.values.get(row)
        return row.shown(values) if values else last_value(row, old) or "?"


def pytest_addoption(parser: pytest.Parser) -> None:
    """Make the switch known."""
    parser.addoption(
        "--guarantees",
        action="store_true",
        help="run the tests of tests/guarantees.toml alone and write docs/guarantees.md",
    )


def pytest_configure(config: pytest.Config) -> None:
    """Write where results come together: not in a worker."""
    if config.getoption("guarantees") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(Writer())


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Leave out what keeps no promise."""
    if config.getoption("guarantees"):
        said = promises()
        items[:] = [item for item in items if kept_by(item.nodeid, [*said.burn, *said.honest])]
