"""Transcripts and reports of old runs go, those one may still need stay."""

from __future__ import annotations

from pathlib import Path

import click
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.cli.shared.leftovers import Leftovers, tidy, to_remove
from ralphloop.cli.shared.options import size
from ralphloop.project import Project
from tests.cli.nights import Night
from tests.conftest import RunRalph


def name(number: int) -> str:
    """The id of the n-th run, older ones first."""
    return f"20260101-{number:06}-abcdef"


def left_by(root: Path, number: int, *, size: int = 1_000, report: bool = True) -> str:
    """What a run leaves: a directory of transcripts and two reports."""
    run = name(number)
    folder = root / ".ralph" / "transcripts" / run
    folder.mkdir(parents=True)
    (folder / "1.log").write_bytes(b"x" * size)
    if report:
        reports = root / ".ralph" / "reports"
        reports.mkdir(exist_ok=True)
        for kind in ("html", "md"):
            (reports / f"{run}.{kind}").write_text("report")
    return run


def there(root: Path) -> set[str]:
    """Names of the runs whose transcripts are still there."""
    return {path.name for path in (root / ".ralph" / "transcripts").iterdir()}


runs = st.lists(st.integers(0, 1_000), max_size=30).map(
    lambda sizes: [Leftovers(name(99 - n), (), size) for n, size in enumerate(sizes)]
)


@given(found=runs, keep=st.integers(0, 30), most=st.integers(0, 5_000), data=st.data())
def test_the_bounds_hold_and_protected_runs_stay(
    found: list[Leftovers], keep: int, most: int, data: st.DataObject
) -> None:
    """Never too many, never too much, never a protected one, always the newest first."""
    names = [each.run for each in found]
    protected = set(data.draw(st.lists(st.sampled_from(names)) if names else st.just([])))
    going = to_remove(found, protected, keep_runs=keep, max_bytes=most)
    kept = [each for each in found if each not in going]
    free = [each for each in kept if each.run not in protected]
    assert not protected & {each.run for each in going}
    assert len(free) <= keep
    assert sum(each.bytes for each in free[1:]) <= most
    if going and free:
        assert min(each.run for each in free) > max(each.run for each in going)


def test_beyond_twenty_runs_the_oldest_go(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Without options the newest twenty stay; what was freed is said."""
    for number in range(23):
        left_by(tmp_path, number)
    done = run_ralph("clean", cwd=tmp_path)
    assert done.returncode == 0, done.stderr
    assert there(tmp_path) == {name(number) for number in range(3, 23)}
    reports = {path.name for path in (tmp_path / ".ralph" / "reports").iterdir()}
    assert f"{name(2)}.html" not in reports
    assert f"{name(3)}.md" in reports
    assert done.stdout.startswith("Freed 3.0 kB of 3 runs; kept 20 runs, 20.2 kB.\n")
    assert name(2) in done.stdout


def test_a_dry_run_only_says_it(tmp_path: Path, run_ralph: RunRalph) -> None:
    """--dry-run removes nothing."""
    for number in range(3):
        left_by(tmp_path, number)
    done = run_ralph("clean", "--dry-run", "--keep-runs", "1", cwd=tmp_path)
    assert "Would free 2.0 kB of 2 runs; kept 1 run" in done.stdout
    assert len(there(tmp_path)) == 3


def test_a_size_is_kept_but_the_newest_run_stays_whole(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Whoever looks in the morning finds the last night complete, however large it was."""
    for number in range(3):
        left_by(tmp_path, number, size=5_000)
    run_ralph("clean", "--max-size", "1kB", cwd=tmp_path)
    assert there(tmp_path) == {name(2)}


@pytest.mark.parametrize("state", ["stopped", "running", "held"])
def test_a_run_that_can_go_on_keeps_everything(
    state: str, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Unfinished runs are never touched, whatever the bounds."""
    night = Night(tmp_path)
    for number in range(4):
        left_by(tmp_path, number)
    night.begin(name(1))
    if state == "stopped":
        night.end("interrupted")
    if state == "held":
        night.end("project_complete", complete=True)
        with night.held():
            run_ralph("clean", "--keep-runs", "0", cwd=tmp_path)
    else:
        run_ralph("clean", "--keep-runs", "0", cwd=tmp_path)
    assert there(tmp_path) == {name(1)}


def test_zero_runs_means_all_that_are_finished(tmp_path: Path, run_ralph: RunRalph) -> None:
    """--keep-runs 0 clears everything that nobody can continue."""
    night = Night(tmp_path).begin(name(1)).end("project_complete", complete=True)
    left_by(tmp_path, 1)
    run_ralph("clean", "--keep-runs", "0", cwd=tmp_path)
    assert there(tmp_path) == set()
    assert night.journal.find_run(name(1)) is not None, "the journal keeps what it knows"


def test_what_is_not_ours_is_left_alone(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Other names, and links whatever they are called, are nobody's leftovers."""
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("mine")
    left_by(tmp_path, 1)
    transcripts = tmp_path / ".ralph" / "transcripts"
    (transcripts / "notes").mkdir()
    (transcripts / name(5)).symlink_to(precious)
    (transcripts / f"{name(4)}-copy").mkdir()
    (transcripts / name(1) / "link").symlink_to(precious)
    run_ralph("clean", "--keep-runs", "0", cwd=tmp_path)
    assert (precious / "file").read_text() == "mine"
    assert there(tmp_path) == {"notes", name(5), f"{name(4)}-copy"}


def test_a_linked_room_is_not_entered(tmp_path: Path, run_ralph: RunRalph) -> None:
    """A transcripts directory that leads elsewhere is not ours to clean."""
    outside = tmp_path / "outside"
    (outside / name(1)).mkdir(parents=True)
    (tmp_path / ".ralph").mkdir()
    (tmp_path / ".ralph" / "transcripts").symlink_to(outside)
    done = run_ralph("clean", "--keep-runs", "0", cwd=tmp_path)
    assert done.returncode == 0
    assert (outside / name(1)).exists()


def test_nothing_there_is_fine(tmp_path: Path, run_ralph: RunRalph) -> None:
    """A project without runs has nothing to remove, and nothing is made."""
    done = run_ralph("clean", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (0, "Nothing to remove: 0 runs, 0 bytes.\n")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "flags", [["--max-size", "much"], ["--max-size", "-1"], ["--keep-runs", "-1"], ["--nope"]]
)
def test_bad_usage_is_64(flags: list[str], tmp_path: Path, run_ralph: RunRalph) -> None:
    """A bound that is none removes nothing."""
    left_by(tmp_path, 1)
    assert run_ralph("clean", *flags, cwd=tmp_path).returncode == 64
    assert len(there(tmp_path)) == 1


def test_a_damaged_journal_removes_nothing(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Without the journal nobody knows what can still be continued."""
    left_by(tmp_path, 1)
    (tmp_path / ".ralph" / "journal.db").write_text("garbage")
    assert run_ralph("clean", "--keep-runs", "0", cwd=tmp_path).returncode == 70
    assert there(tmp_path) == {name(1)}


def test_the_loop_can_call_it(tmp_path: Path) -> None:
    """As a function it needs a project, and returns what it did."""
    Night(tmp_path).begin(name(30)).end("project_complete", complete=True)
    for number in range(25):
        left_by(tmp_path, number)
    removed, _, problems = tidy(Project(tmp_path))
    assert [each.run for each in removed] == [name(n) for n in (4, 3, 2, 1, 0)]
    assert sum(each.bytes for each in removed) == 5 * 1_012
    assert problems == []


@pytest.mark.parametrize(
    "text, found",
    [("2GB", 2_000_000_000), ("1.5 mb", 1_500_000), ("10", 10), (" 7 B ", 7), ("0", 0)],
)
def test_sizes_are_read(text: str, found: int) -> None:
    """Sizes are numbers with a unit, or bytes."""
    assert size(text) == found


@pytest.mark.parametrize("text", ["", "GB", "1 PB", "1e9", "-1", "9" * 400, "１GB"])
def test_what_is_no_size_is_refused(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(click.BadParameter, match="not a size"):
        size(text)
