"""A missing status block is asked for where the conversation is."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.fleet.machines import machine, over_ssh, shared
from tests.loop.guards import claude_sandbox, told
from tests.loop.test_asking import BLOCK

FORGETS = """
asked = "--resume" in sys.argv
with (STATE / "turns").open("a") as log:
    log.write(("asked " if asked else "worked ") + os.getcwd() + "\\n")
if asked:
    says(BLOCK); result(BLOCK, cost=0.30); sys.exit()
write("src/one.py", "x = 1")
says("I looked at it."); result("I looked at it.", cost=0.25)
"""


def test_the_machine_that_worked_is_asked(tmp_path: Path) -> None:
    """The question goes to the work tree of the start, both answers are paid once."""
    box = claude_sandbox(tmp_path, f"BLOCK = {BLOCK!r}\n{FORGETS}")
    shared(box, tmp_path)
    for name in ("one", "two"):
        machine(tmp_path, name)

    done = box.run("--json", "--fleet", "ssh:one,two", env=over_ssh(box, tmp_path))

    assert done.code == 0, told(done)
    worked, asked = (box.state / "turns").read_text().splitlines()
    assert [worked.split()[0], asked.split()[0]] == ["worked", "asked"]
    assert worked.split()[1] == asked.split()[1]
    (ended,) = done.events("iteration_finished")
    assert ended["passed"]
    assert ended["cost_usd"] == pytest.approx(0.30)
    assert "identical" in box.ralph("replay").out
