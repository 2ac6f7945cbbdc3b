"""What benchmarks compare with is brought by one command, at the commits that were measured."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from benchmarks import nights, peers
from benchmarks.nights.supervisors import SUPERVISORS


def _somebodys(root: Path) -> str:
    """A repository with two commits; the first one's name."""

    def git(*arguments: str) -> str:
        named = ("-c", "user.name=Ada", "-c", "user.email=ada@example.com")
        command = ["git", *named, *arguments]
        return subprocess.run(
            command, cwd=root, check=True, capture_output=True, text=True
        ).stdout.strip()

    root.mkdir()
    git("init", "-q")
    for name in ("old", "new"):
        (root / name).write_text(name)
        git("add", "-A")
        git("commit", "-qm", name)
    return git("rev-parse", "--short", "HEAD~1")


def _only(monkeypatch: pytest.MonkeyPatch, *wanted: peers.Peer) -> None:
    monkeypatch.setattr(peers, "peers_in", lambda _: list(wanted))


def test_a_clone_is_what_was_measured_and_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Not what its owner has made of it since; what is there already is left alone."""
    first = _somebodys(tmp_path / "theirs")
    place = tmp_path / "peers" / "loop"
    build = ("cp", "old", "loop-bin")
    _only(monkeypatch, peers.Peer(str(tmp_path / "theirs"), place, first, "loop-bin", build))
    assert peers.main([]) == 0
    assert (place / "loop-bin").read_text() == "old"
    assert not (place / "new").exists()
    assert f"{first} of" in capsys.readouterr().out
    (place / "mine").write_text("mine")
    assert peers.main([]) == 0
    assert capsys.readouterr().out == f"{place}: is there\n"
    assert (place / "mine").exists()


def test_the_newest_is_brought_where_it_is_asked_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """To see whether they have become better."""
    first = _somebodys(tmp_path / "theirs")
    _only(monkeypatch, peers.Peer(str(tmp_path / "theirs"), tmp_path / "loop", first))
    assert peers.main(["--newest"]) == 0
    assert (tmp_path / "loop" / "new").exists()


def test_one_that_cannot_be_had_keeps_nobody_else_away(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """It is said which and why; half a clone is never taken for a whole one."""
    first = _somebodys(tmp_path / "theirs")
    theirs = str(tmp_path / "theirs")
    tool = ("ralph-no-such-tool", "build")
    _only(
        monkeypatch,
        peers.Peer(str(tmp_path / "nothing"), tmp_path / "gone", first),
        peers.Peer(theirs, tmp_path / "unknown", "0000000"),
        peers.Peer(theirs, tmp_path / "unbuilt", first, "bin", tool),
        peers.Peer(theirs, tmp_path / "fine", first),
    )
    assert peers.main([]) == 1
    told = capsys.readouterr()
    assert "gone: not made: git clone" in told.out
    assert "unbuilt: not made: ralph-no-such-tool is not installed" in told.out
    assert "3 could not be made; the others can be run without them" in told.err
    assert not (tmp_path / "unknown").exists()
    assert (tmp_path / "fine" / "old").exists()


def test_the_pinned_commits_are_those_of_the_published_results() -> None:
    """Whoever runs it again runs what the page is about."""
    published = json.loads((Path(nights.__path__[0]) / "results.json").read_text())["versions"]
    pinned = {kind.name: kind.commit for kind in SUPERVISORS if kind.home}
    assert pinned == {name: published[name].split(" of ")[0] for name in pinned}
