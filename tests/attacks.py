"""The table of `make attack`: every test that is marked so, and every way it tried."""

from __future__ import annotations

import inspect

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that prints the table."""
    parser.addoption("--attacks", action="store_true", help="only attacks, and a table of them")


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep the attacks alone where they are asked for, each with what it says of itself."""
    if not config.getoption("--attacks"):
        return
    chosen = [item for item in items if item.get_closest_marker("attack")]
    config.hook.pytest_deselected(items=[item for item in items if item not in chosen])
    items[:] = chosen
    for item in items:
        said = inspect.getdoc(getattr(item, "obj", None)) or item.name
        item.user_properties.append(("title", said.splitlines()[0]))


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """One line an attack: what was tried, what should happen, what did."""
    if not terminalreporter.config.getoption("--attacks"):
        return
    rows: list[tuple[str, str, str]] = []
    for outcome in ("passed", "failed", "error", "skipped"):
        for report in terminalreporter.stats.get(outcome, ()):
            known = list(getattr(report, "user_properties", ()))
            tried = [tuple(map(str, value)) for name, value in known if name == "attack"]
            titles = [str(value) for name, value in known if name == "title"]
            rows += [(row[0], row[1], row[2]) for row in tried]
            rows += [
                (title, "held", "held" if outcome == "passed" else outcome) for title in titles
            ]
    terminalreporter.section("attacks")
    for what, expected, happened in dict.fromkeys(rows):
        mark = " " if expected == happened else "!"
        terminalreporter.write_line(f"{mark} {what[:96]:<96}  {expected:<8}  {happened}")
    open_doors = sum(expected != happened for _, expected, happened in dict.fromkeys(rows))
    terminalreporter.write_line(f"{len(dict.fromkeys(rows))} attacks, {open_doors} that got past")
