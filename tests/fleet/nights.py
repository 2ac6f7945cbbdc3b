"""A night on other machines in which everything is counted, and what has to hold after it.

Each agent keeps a bill of its own outside of the repository, by the number of its start, and says
what it uses as it goes along: so what the run counted can be compared with what was used.
"""

from __future__ import annotations

import json
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import ralphloop
from ralphloop import __version__
from ralphloop.journal.journal import Journal
from ralphloop.journal.records import IterationRecord
from tests.fleet.machines import Server, ended_everywhere, eventually, fleet_yard
from tests.lanes.yards import landed_once
from tests.loop.projects import Sandbox

# One step is 10,000 tokens, and that is one cent.
PAID = '''
NUMBER = os.environ["RALPH_ITERATION"]
HERE = os.environ.get("MACHINE", "")
(STATE / f"where-{STORY}-{START}").write_text(HERE + " " + os.getcwd())
try:
    (STATE / f"begun-{NUMBER}").open("x").close()
except FileExistsError:
    (STATE / f"twice-{NUMBER}").touch()
used = 0

def event(**fields):
    print(json.dumps(fields), flush=True)

def step(tokens=10_000):
    """Use so many tokens, on the bill first."""
    global used
    used += tokens
    with (STATE / f"bill-{NUMBER}").open("a") as bill:
        bill.write(f"{tokens}\\n")
    event(type="assistant", session_id="s-1", parent_tool_use_id=None, message={
        "id": f"m{used}", "role": "assistant", "model": "made-up-9",
        "content": [{"type": "text", "text": "Working."}],
        "usage": {"input_tokens": tokens - 100, "output_tokens": 100}})

def status(word="IN_PROGRESS", words="Worked on it.", recommendation="go on"):
    block = f"STATUS: {word}\\nTASKS_COMPLETED_THIS_LOOP: 1\\nEXIT_SIGNAL: false"
    text = f"{words}\\n\\n---RALPH_STATUS---\\n{block}\\n---END_RALPH_STATUS---"
    event(type="result", subtype="success", is_error=False, result=text, session_id="s-1",
        num_turns=1, total_cost_usd=used / 1e6, permission_denials=[],
        usage={"input_tokens": max(0, used - 100), "output_tokens": min(used, 100)})
'''
PRICES = '[prices."made-up-*"]\ninput = 1.0\noutput = 1.0\n'
OTHER_VERSION = "0.0.9"
LEASE = {"RALPH_FLEET_LEASE": "6s"}
_CENT = 0.01


def paid_yard(tmp_path: Path, agent: str, **more: Any) -> Sandbox:
    """A repository with a shared remote, whose agents say what they use and keep a bill."""
    toml = PRICES + more.pop("toml", "")
    return fleet_yard(tmp_path, PAID + agent, output="claude", toml=toml, **more)


def other_version(tmp_path: Path) -> dict[str, str]:
    """The environment in which `ralph` is one of another version."""
    own = Path(ralphloop.__file__).parent
    copy = tmp_path / "other" / "ralphloop"
    shutil.copytree(own, copy, ignore=shutil.ignore_patterns("__pycache__"))
    text = (own / "__init__.py").read_text()
    (copy / "__init__.py").write_text(text.replace(__version__, OTHER_VERSION))
    return {"PYTHONPATH": str(copy.parent)}


def begun(
    box: Sandbox, server: Server, *arguments: str, env: dict[str, str] | None = None
) -> subprocess.Popen[str]:
    """A run of which some agent says that it is at work (`works`)."""
    run = box.start("--fleet", server.address, *arguments, env=LEASE if env is None else env)
    works = box.state / "works"
    eventually(lambda: works.exists() or run.poll() is not None)
    assert works.exists(), ended(run)
    return run


def ended(run: subprocess.Popen[str], seconds: float = 200) -> str:
    """What a run has said, once it has ended."""
    out, err = run.communicate(timeout=seconds)
    return out + err


def works_on(box: Sandbox) -> str:
    """The machine on which that agent works."""
    eventually(lambda: bool((box.state / "works").read_text()))
    return (box.state / "works").read_text()


def iterations(box: Sandbox) -> list[IterationRecord]:
    """What the journal has of each start, in the order of their numbers."""
    with Journal.open(box.root / ".ralph/journal.db", check=False) as journal:
        latest = journal.latest_run()
        assert latest is not None
        return sorted(journal.iterations(latest.id), key=lambda one: one.n)


def billed(box: Sandbox, number: int) -> float:
    """What the agent of a start has really used, in dollars."""
    path = box.state / f"bill-{number}"
    return sum(int(it) for it in path.read_text().split()) / 1e6 if path.exists() else 0.0


def held_to_the_end(box: Sandbox, *names: str) -> None:
    """Everything that has to hold after a night, whatever broke in it; its workers have gone.

    One commit for each story in a line, the marks right, money counted once, no number started
    twice, no process left on any machine, and the night decided the same again.
    """
    ended_everywhere(box)
    _money_once(box)
    landed_once(box, "main", *names)
    listed = json.loads(box.git("show", "main:prd.json"))["userStories"]
    assert {it["id"] for it in listed if it["passes"]} == set(names), listed
    replayed = box.ralph("replay")
    assert "identical" in replayed.out, replayed.text


def at_work(box: Sandbox) -> list[str]:
    """Agents and hands that are still there."""
    return [line for line in box.leftovers() if "agent.py" in line or "fleet hand" in line]


def _money_once(box: Sandbox) -> None:
    """Each number was given to one agent, and counts what that has used and said."""
    assert list(box.state.glob("twice-*")) == []
    found = iterations(box)
    assert len({one.n for one in found}) == len(found)
    begun = {int(path.name.partition("-")[2]) for path in box.state.glob("begun-*")}
    assert begun <= {one.n for one in found}, "a start that nobody has written down"
    for one in found:
        cost = max(0.0, one.cost_usd or 0.0)
        if one.outcome in ("killed", "interrupted"):  # what was heard of it
            assert cost <= billed(box, one.n) + _CENT / 100, one
        else:
            assert cost == pytest.approx(billed(box, one.n)), one
    total = sum(max(0.0, one.cost_usd or 0.0) for one in found)
    assert box.status()["cost_usd"] == pytest.approx(total)
