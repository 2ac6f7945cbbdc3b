"""Filters of git: what is committed is what was checked, unless the person's own filters say so."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.lanes.yards import stories_of, yard
from tests.loop.projects import Sandbox, sandbox

CHECK = [["sh", "-c", "! test -e app.txt || grep -q good app.txt"]]
PLACES = pytest.mark.parametrize("lanes", [False, True], ids=["checkout", "lanes"])
CONFIGURES = """
subprocess.run(["git", "config", "filter.new.clean", "sed s/good/evil/"], check=True)
subprocess.run(["git", "config", "filter.new.smudge", "sed s/evil/good/"], check=True)
write(".gitattributes", "app.txt filter=new\\n")
"""
WORKS = 'write("app.txt", "good\\n")\ndone()\n'


def project(tmp_path: Path, agent: str, *, lanes: bool) -> Sandbox:
    """One story, and a check that looks into a file."""
    if lanes:
        return yard(tmp_path, agent, stories=stories_of("US-1"), checks=CHECK)
    return sandbox(
        tmp_path, f"import subprocess\n{agent}", checks=CHECK, stories=stories_of("US-1")
    )


@PLACES
def test_a_filter_that_came_with_the_work_is_seen(tmp_path: Path, *, lanes: bool) -> None:
    """Without a sandbox an agent can write git's settings: the commit is held against the check."""
    box = project(tmp_path, CONFIGURES + WORKS, lanes=lanes)
    done = box.run(*(("--lanes", "1") if lanes else ()))
    assert "evil" in box.git("show", "HEAD:app.txt")
    assert "committed is not what was checked: app.txt" in done.text
    assert "passed (needs review)" in done.text


def test_a_filter_of_the_tree_that_was_rewritten_is_asked_about(tmp_path: Path) -> None:
    """The settings are the same, but what they name is the agent's now."""
    rewrites = 'write("clean.sh", "sed s/good/evil/\\n")\n'
    box = project(tmp_path, rewrites + WORKS, lanes=False)
    box.git("config", "filter.own.clean", "sh ./clean.sh")
    (box.root / "clean.sh").write_text("cat\n")
    (box.root / ".gitattributes").write_text("app.txt filter=own\n")
    box.git("add", "-A")
    box.git("commit", "-qm", "a filter")
    done = box.run("--max-iterations", "3")
    assert "./clean.sh, a filter through which git commits files, was changed" in done.text


@PLACES
def test_a_filter_that_the_person_changed_the_work_with_before(
    tmp_path: Path, *, lanes: bool
) -> None:
    """A filter of the person's own, such as git-lfs, was there before the run: nothing is said."""
    box = project(tmp_path, WORKS, lanes=lanes)
    box.git("config", "filter.own.clean", "sed s/good/kept/")
    box.git("config", "filter.own.smudge", "sed s/kept/good/")
    (box.root / ".gitattributes").write_text("app.txt filter=own\n")
    box.git("add", "-A")
    box.git("commit", "-qm", "a filter")
    done = box.run(*(("--lanes", "1") if lanes else ()))
    assert done.code == 0, done.text
    assert "kept" in box.git("show", "HEAD:app.txt")
    assert "committed is not what was checked" not in done.text
