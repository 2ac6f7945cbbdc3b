"""One origin: every screen names the machine that an agent works or worked on."""

from __future__ import annotations

import json
from pathlib import Path

from ralphloop.project import Project
from tests.fleet.machines import eventually, fleet_yard, machine, over_ssh
from tests.loop.projects import Sandbox, sandbox
from tests.ui.page_visits import Elements, Visits

AGENT = """
if STORY == "B":
    (STATE / "works").write_text(os.environ["MACHINE"])
    until("go", 60)
write(f"{STORY}.txt", STORY)
done()
"""


def _page(visits: Visits, address: str) -> str:
    return " ".join(Elements(visits.get(address, visits.known()).text).words.split())


def _named_afterwards(box: Sandbox, tmp_path: Path) -> None:
    """Whatever is read of the run once it has ended."""
    assert [it["machine"] for it in box.status()["iterations"]] == ["far-box", "far-box"]
    assert box.status()["lanes"] == []
    report = json.loads(box.ralph("report", "--json").out)
    (used,) = report["machines"]
    assert (used["name"], used["passed"], used["iterations"]) == ("far-box", 2, 2)
    stories = [it for group in report["groups"] for it in group["stories"]]
    assert [it["machines"] for it in stories] == [["far-box"], ["far-box"]]
    working = [it["reason"] for it in report["series"]["lanes"] if it["kind"] == "working"]
    assert working == ["A, iteration 1 on far-box", "B, iteration 2 on far-box"]
    text = box.ralph("report").out
    assert "machine far-box: 2 stories passed in 2 iterations" in text
    assert text.count("agents worked on: far-box") == 2
    html = " ".join(Elements(box.ralph("report", "--html").out).words.split())
    assert "machine far-box2 stories passed in 2 iterations" in html
    assert html.count("agents worked on far-box") == 2
    assert "far-box" not in box.ralph("report", "--share", str(tmp_path / "shared.html")).text
    assert "far-box" not in (tmp_path / "shared.html").read_text()
    replayed = json.loads(box.ralph("replay", "--json").out)
    assert [it["machine"] for it in replayed["starts"]] == ["far-box", "far-box"]
    tried = box.ralph("replay", "--set", "max_iterations=1").out
    assert "[2] B on far-box: not paid" in tried
    with Visits(Project(box.root), tmp_path / "pages") as visits:
        assert _page(visits, "").count(" on far-box, ") == 4  # in its log, and in its list


def test_every_screen_names_the_machine_of_each_start(tmp_path: Path) -> None:
    """While an agent works on it, and afterwards, in words and as data."""
    box = fleet_yard(tmp_path, AGENT, names=("A", "B"))
    machine(tmp_path, "far-box")
    env = over_ssh(box, tmp_path)
    run = box.start("--fleet", "ssh:far-box", "--lanes", "1", env=env)
    try:
        eventually((box.state / "works").exists)
        eventually(lambda: box.status()["current"]["machine"] == "far-box")
        live = box.status()
        status = box.ralph("status").out
        log = box.ralph("log", "--iteration", "1").out
        monitor = box.ralph("monitor", "--once").out
        with Visits(Project(box.root), tmp_path / "pages") as visits:
            page = _page(visits, "")
    finally:
        (box.state / "go").touch()
        out, err = run.communicate(timeout=100)

    assert run.returncode == 0, out + err
    (lane,) = live["lanes"]
    assert lane == {
        "lane": 1, "story": "B", "doing": "works on far-box", "iteration": 2, "machine": "far-box",
    }  # fmt: skip
    assert live["last"]["machine"] == "far-box"
    assert [it["machine"] for it in live["iterations"]] == ["far-box", None]
    assert "it works on far-box" in status
    assert "iteration 1, A on far-box: passed" in status
    assert "works on far-box" in monitor
    assert "lane 1 works on far-box" in page
    assert "on far-box, " in log
    assert f"{out}{err}".count(" on far-box, ") == 2, out + err
    _named_afterwards(box, tmp_path)


def test_a_run_on_this_machine_names_none(tmp_path: Path) -> None:
    """Where nothing travels no screen speaks of machines."""
    box = sandbox(tmp_path, 'write("src/1.txt", 1)\nresult("done", cost=0.1)', output="claude")
    done = box.run("--max-iterations", "1", "--json")
    assert [it["machine"] for it in done.events("iteration_finished")] == [None]
    report = json.loads(box.ralph("report", "--json").out)
    assert report["machines"] == []
    assert [it["machines"] for group in report["groups"] for it in group["stories"]] == [[]]
    assert "machine" not in box.ralph("report").out
