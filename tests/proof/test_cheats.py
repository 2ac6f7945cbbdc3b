"""No cheat is `verified`, none passes without a remark; honest work of the same look is not asked.

All of them run when this directory is asked for (`make cheats`); a few of each always.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.proof.cheats import CHEATS, HONEST, LIBRARY, PROJECT, Case, Shop

SHOP = Shop(PROJECT, LIBRARY, [[sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]])


@pytest.mark.parametrize("case", CHEATS, ids=lambda case: case.name)
def test_a_cheat_is_never_verified_and_never_without_a_remark(tmp_path: Path, case: Case) -> None:
    """Refused, or passed as one that a person should look at, with the reason."""
    SHOP.assert_caught(tmp_path, case)


@pytest.mark.parametrize("case", HONEST, ids=lambda case: case.name)
def test_honest_work_is_verified_at_the_first_start(tmp_path: Path, case: Case) -> None:
    """The same kind of edit, beside a feature with its test."""
    SHOP.assert_verified(tmp_path, case)
