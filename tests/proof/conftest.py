"""All cheats run where this directory is asked for; elsewhere a few, as each is a whole run."""

from __future__ import annotations

from pathlib import Path

import pytest

HERE = Path(__file__).parent
_EVERY = 11


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep every eleventh unless they are asked for by path."""
    paths = [Path(argument.partition("::")[0]).resolve() for argument in config.args]
    if any(path.is_relative_to(HERE) for path in paths):
        return
    ours = [item for item in items if item.path.is_relative_to(HERE)]
    left_out = [item for number, item in enumerate(ours) if number % _EVERY]
    config.hook.pytest_deselected(items=left_out)
    items[:] = [item for item in items if item not in left_out]
