"""What a first try of a fleet tells its workers."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralphloop.fleet.up import from_anywhere


def test_a_remote_beside_the_checkout_is_found_from_elsewhere(tmp_path: Path) -> None:
    """Workers stand in a directory of their own: what is named from the checkout gets its whole name."""
    (tmp_path / "app.git").mkdir()
    (root := tmp_path / "project").mkdir()
    assert from_anywhere("../app.git", root) == str(tmp_path / "app.git")
    assert from_anywhere(str(tmp_path / "app.git"), root) == str(tmp_path / "app.git")


@pytest.mark.parametrize("address", ["git@example.com:me/app.git", "https://example.com/app.git"])
def test_an_address_stays_as_it_is(tmp_path: Path, address: str) -> None:
    """What is no directory here means the same everywhere."""
    assert from_anywhere(address, tmp_path) == address
