"""One origin: console, status, monitor and report show the same numbers of the same moment."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ralphloop.project import Project
from tests.loop.projects import Sandbox, sandbox
from tests.ui.page_visits import Elements, Visits

AGENT = """
if START > 1:
    write(STATE / "begun")
    while not (STATE / "go").exists():
        time.sleep(0.05)
write(f"src/{START}.txt", START)
result("I am still at it.", cost=0.4)
"""


class Terminal:
    """What a command draws on a terminal, as it comes."""

    def __init__(self, master: int) -> None:
        self._master = master
        self._drawn = b""
        threading.Thread(target=self._read, daemon=True).start()

    def _read(self) -> None:
        try:
            while piece := os.read(self._master, 4096):
                self._drawn += piece
        except OSError:
            pass  # nobody draws any more

    @property
    def words(self) -> str:
        """All that was ever drawn, without colours and movements."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self._drawn.decode("utf-8", "replace"))


@contextmanager
def on_a_terminal(box: Sandbox, *arguments: str) -> Iterator[Terminal]:
    """`ralph run` on a terminal of its own, let go and waited for at the end."""
    master, slave = pty.openpty()
    env = box.environment({"TERM": "xterm", "COLUMNS": "160", "LINES": "40"})
    started = subprocess.Popen(
        box.argv("run", *arguments), cwd=box.root, env=env, stdin=slave, stdout=slave, stderr=slave
    )
    os.close(slave)
    try:
        yield Terminal(master)
    finally:
        (box.state / "go").write_text("")
        started.wait(60)
        os.close(master)


def eventually(holds: Callable[[], object]) -> bool:
    """Whether it is so within a while."""
    deadline = time.monotonic() + 40
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.1)
    return bool(holds())


def test_a_continued_run_with_a_raised_budget_has_the_same_numbers_everywhere(
    tmp_path: Path,
) -> None:
    """Money, time and limits are the session's, with what a person added, on every screen."""
    box = sandbox(tmp_path, AGENT, output="claude", limits="max_cost_usd = 8.0")
    first = box.run("--max-iterations", "1")
    assert first.code == 3, first.text
    with on_a_terminal(box, "--continue", "--max-iterations", "2") as console:
        assert eventually((box.state / "begun").exists), console.words
        assert eventually(lambda: "$0.40 of $8.00" in console.words), console.words
        raised = box.ralph("budget", "--cost", "2.5", "--time", "2h")
        assert raised.code == 0, raised.text
        status = json.loads(box.ralph("status", "--json").out)
        monitor = box.ralph("monitor", "--once").out
        report = json.loads(box.ralph("report", "--json").out)
        with Visits(Project(box.root), tmp_path / "pages") as visits:
            page = " ".join(Elements(visits.get("", visits.known()).text).words.split())
        assert eventually(lambda: "of 12h 00m  $0.40 of $10.50" in console.words), console.words
    spending, limits = report["spending"], status["limits"]
    assert limits == {
        "max_iterations": 2, "max_cost_usd": 10.5, "max_tokens": 0, "max_time_s": 12 * 3600.0,
        "reserve": 0.0, "until": None,
    }  # fmt: skip
    assert (spending["max_iterations"], spending["max_cost_usd"]) == (2, 10.5)
    assert report["times"]["max_s"] == limits["max_time_s"]
    assert spending["totals"]["cost_usd"] == status["cost_usd"] == 0.4
    assert spending["totals"]["iterations"] == len(status["iterations"]) - 1 == 1
    assert "1 of 2 iterations" in monitor
    assert "cost$0.40 of $10.50 iterations1 of 2 time" in page
    assert "of 12h 00m" in page
    assert "$0.40 of $10.50" in monitor
    assert "of 12h 00m" in monitor
    ended = json.loads(box.ralph("status", "--json").out)
    assert (ended["cost_usd"], ended["limits"]) == (0.8, limits)


def test_the_beginning_of_a_continued_run_names_the_raised_limits(tmp_path: Path) -> None:
    """What was added before the run was interrupted still counts, and is said at once."""
    box = sandbox(tmp_path, AGENT, output="claude", limits="max_cost_usd = 8.0")
    (box.state / "starts").write_text("1")
    with on_a_terminal(box, "--max-iterations", "1") as console:
        assert eventually((box.state / "begun").exists), console.words
        assert box.ralph("budget", "--time", "2h").code == 0
    done = box.run("--continue", "--max-iterations", "2")
    assert "limits: 2 iterations, $8.00, 12h 00m" in done.out
    told = box.run("--continue", "--max-iterations", "3", "--json").events("run_started")[0]
    assert (told["cost_usd"], told["max_cost_usd"], told["max_time_s"]) == (0.8, 8.0, 12 * 3600.0)
    assert told["active_s"] > 0
