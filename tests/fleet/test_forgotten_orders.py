"""What lies on the shared remote: it goes once nobody asks for it any more, and no sooner."""

from __future__ import annotations

from pathlib import Path

from ralphloop.fleet.parcels import SharedRemote
from ralphloop.fleet.run_in_fleet import forget_what_is_over
from ralphloop.journal.journal import Journal
from ralphloop.project import Project
from ralphloop.repo.work_tree import Repository
from tests.fleet.machines import fleet_yard, machine, over_ssh
from tests.journal.support import finished, new_iteration, new_run
from tests.lanes.yards import landed_once


def _lying(tmp_path: Path, *names: str) -> None:
    """Refs on the remote, as orders and reports are."""
    bare = tmp_path / "app.git"
    commit = (bare / "refs/heads/main").read_text()
    for name in names:
        path = bare / "refs/ralph" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(commit)


def test_the_next_run_removes_what_an_interrupted_one_left(tmp_path: Path) -> None:
    """Of this project's runs alone: what another checkout's run gave away is its own business."""
    box = fleet_yard(tmp_path, names=("A",))
    machine(tmp_path, "one")
    env = over_ssh(box, tmp_path)
    with Journal.open(Project(box.root).journal) as journal:
        journal.begin_run(new_run("20260101-000000-aaaaaa"))
        journal.start_iteration(new_iteration(1, "20260101-000000-aaaaaa"))
        journal.finish_iteration(finished(1, "20260101-000000-aaaaaa"))
        journal.mark_applied("20260101-000000-aaaaaa", 1, now=0.0)
    _lying(
        tmp_path,
        "orders/20260101-000000-aaaaaa/1",
        "reports/20260101-000000-aaaaaa/1",
        "reports/20260101-000000-aaaaaa/1.status",
        "orders/20260101-000000-bbbbbb/1",
    )
    done = box.run("--fleet", "ssh:one", env=env)

    assert done.code == 0, done.text
    left = box.git("ls-remote", "origin", "refs/ralph/*").split("\n")
    assert [line.split("\t")[1] for line in left] == ["refs/ralph/orders/20260101-000000-bbbbbb/1"]
    landed_once(box, "main", "A")


def test_a_report_that_is_still_to_be_taken_up_stays(tmp_path: Path) -> None:
    """The time of a run was over before it could be brought: `--continue` asks for it."""
    box = fleet_yard(tmp_path, names=("A",))
    with Journal.open(Project(box.root).journal) as journal:
        journal.begin_run(new_run("r1"))
        for number in (1, 2):
            journal.start_iteration(new_iteration(number, "r1"))
        journal.finish_iteration(finished(1, "r1"))
    _lying(tmp_path, "orders/r1/1", "orders/r1/2", "reports/r1/1", "reports/r1/2.status")
    forget_what_is_over(SharedRemote(Repository.open(box.root), "origin"), Project(box.root))

    left = box.git("ls-remote", "origin", "refs/ralph/*").split("\n")
    assert [line.split("\t")[1] for line in left] == [
        "refs/ralph/orders/r1/2",
        "refs/ralph/reports/r1/2.status",
    ]
