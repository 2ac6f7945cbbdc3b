"""Rules no linter sees: modules that can be read, and pins that name no place on the network."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
LONGEST_MODULE = 500


def test_no_module_grows_too_long() -> None:
    """A module that cannot be read in one sitting is split."""
    too_long = {
        str(path.relative_to(ROOT)): lines
        for path in (ROOT / "src").rglob("*.py")
        if (lines := path.read_text(encoding="utf-8").count("\n")) > LONGEST_MODULE
    }
    assert not too_long


@pytest.mark.parametrize("name", ["requirements.txt", "requirements-dev.txt"])
def test_pins_are_exact_hashed_and_name_no_host(name: str) -> None:
    """Every dependency is one version with hashes, whatever index a machine uses."""
    entries = (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ").splitlines()
    pin = re.compile(r"[a-z0-9-]+==[^ ;]+( ; [^#]+?)?( +--hash=sha256:[0-9a-f]{64})+")
    assert [entry for entry in entries if not pin.fullmatch(entry.rstrip())] == []


def test_development_pins_agree_with_runtime_pins() -> None:
    """What is tested is what is installed."""
    runtime, development = (
        set(re.findall(r"^\S+==\S+", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE))
        for name in ("requirements.txt", "requirements-dev.txt")
    )
    assert runtime <= development
