"""A person commits in the checkout, or stops a run that is paused: nobody waits for nothing."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from ralphloop.journal.queries import JournalReader
from tests.lanes.yards import stories_of, yard
from tests.loop.projects import CALC, IGNORED, TESTS, UNITTEST, Sandbox, sandbox, story

MEANWHILE = """
if START == {start}:
    (STATE / "asks").touch()
    while not (STATE / "paused").exists(): time.sleep(0.02)
"""


def wait_until(is_so: Callable[[], bool], words: str, timeout: float = 60) -> None:
    """Until it is so."""
    deadline = time.monotonic() + timeout
    while not is_so():
        assert time.monotonic() < deadline, words
        time.sleep(0.05)


def is_waiting(box: Sandbox, reason: str = "") -> bool:
    """Whether the run waits, for this reason."""
    with JournalReader.open(box.root / ".ralph/journal.db") as journal:
        run = journal.latest_run()
        wait = journal.open_wait(run.id) if run else None
    return wait is not None and reason in wait.reason


def with_a_pause(box: Sandbox, meanwhile: Callable[[], object], *arguments: str) -> str:
    """Run; at its pause a person does this and resumes, once; everything that was said."""
    process = box.start(*arguments)
    wait_until((box.state / "asks").exists, "the agent never started")
    assert box.ralph("pause").code == 0
    (box.state / "paused").touch()
    wait_until(lambda: is_waiting(box, "paused by a person"), "it never paused")
    meanwhile()
    assert box.ralph("resume").code == 0
    out, err = process.communicate(timeout=100)
    assert process.returncode == 0, out + err
    return str(out)


def commit(box: Sandbox, subject: str, **files: str) -> str:
    """A person's commit of these files; its short name."""
    for name, text in files.items():
        path = box.root / name.replace("__", "/").replace("_py", ".py")
        path.write_text(text)
        box.git("add", str(path))
    box.git("commit", "-qm", subject)
    return box.git("rev-parse", "--short", "HEAD")


def test_the_run_goes_on_by_itself_after_a_commit_that_it_does_not_need(tmp_path: Path) -> None:
    """Whose and which is said; their commit stays below ours."""
    agent = MEANWHILE.format(start=1) + 'write(f"{STORY}.txt"); done()'
    box = sandbox(tmp_path, agent, stories=2)
    name = []
    out = with_a_pause(box, lambda: name.append(commit(box, "Mend our agent", theirs_py="x = 1\n")))
    assert f'You committed {name[0]} "Mend our agent" meanwhile' in out
    assert "on hold: HEAD" not in out
    assert box.subjects() == ["start", "US-1: Do US-1", "Mend our agent", "US-2: Do US-2"]
    assert box.starts == 2


def test_somebody_elses_commit_has_their_name(tmp_path: Path) -> None:
    """A colleague's, pulled in meanwhile; several are counted."""
    agent = MEANWHILE.format(start=1) + 'write(f"{STORY}.txt"); done()'
    box = sandbox(tmp_path, agent, stories=2)

    def pull() -> None:
        commit(box, "First", a_py="1")
        box.git("config", "user.email", "me@example.org")
        (box.root / "b.py").write_text("2")
        box.git("add", "b.py")
        box.git("-c", "user.name=Ada", "-c", "user.email=ada@x.org", "commit", "-qm", "Second")

    out = with_a_pause(box, pull)
    assert "Ada committed " in out
    assert '"Second" and 1 more meanwhile' in out


STORY_WITH_HALF = [story("US-1", "Add a file")]
IN_TWO = (
    MEANWHILE.format(start=1)
    + """
if START == 1: write("half.py", "x = 1\\n"); status()
else: write("whole.py", "y = 1\\n"); done()
"""
)
PERSONS_TEST = (
    TESTS
    + """\
    def test_trebles(self):
        self.assertEqual(calc.treble(2), 6)
"""
)


def in_progress(tmp_path: Path) -> Sandbox:
    """A story that takes two starts, with the pause between them."""
    files = {**IGNORED, "calc.py": CALC, "tests/__init__.py": "", "tests/test_calc.py": TESTS}
    return sandbox(tmp_path, IN_TWO, stories=STORY_WITH_HALF, checks=UNITTEST, files=files)


def test_a_persons_commit_is_no_work_of_the_story_that_is_under_way(tmp_path: Path) -> None:
    """Their code and their test prove nothing for a story that brings no test."""
    box = in_progress(tmp_path)
    treble = CALC + "def treble(x):\n    return 3 * x\n"
    out = with_a_pause(
        box, lambda: commit(box, "Treble", calc_py=treble, tests__test_calc_py=PERSONS_TEST)
    )
    assert '"Treble" meanwhile' in out
    assert "test_trebles" not in out
    assert "US-1 passed (checked)" in out, out
    shown = box.git("show", "--name-only", "--format=", "HEAD").split()
    assert {"half.py", "whole.py"} <= set(shown)
    assert "calc.py" not in shown
    assert box.ralph("replay").code == 0


def test_a_story_that_is_set_aside_leaves_a_persons_commit_alone(tmp_path: Path) -> None:
    """What they committed is part of what it began with."""
    agent = (
        MEANWHILE.format(start=1)
        + """
if STORY == "US-1": write(f"bad-{START}.py", "x"); status() if START == 1 else done()
else: write("US-2.txt"); done()
"""
    )
    box = sandbox(
        tmp_path, agent, stories=[story("US-1", verify=["false"]), story("US-2")],
        limits="max_attempts = 1\nmax_iterations = 3",
    )  # fmt: skip
    process = box.start()
    wait_until((box.state / "asks").exists, "the agent never started")
    box.ralph("pause")
    (box.state / "paused").touch()
    wait_until(lambda: is_waiting(box), "it never paused")
    commit(box, "Mine", mine_py="1\n")
    box.ralph("resume")
    out, err = process.communicate(timeout=100)
    assert "US-1 is set aside" in out, out + err
    assert (box.root / "mine.py").read_text() == "1\n"
    assert "mine.py" in box.git("ls-files")
    assert not [*box.root.glob("bad-*")]
    assert box.git("status", "--porcelain") == ""


@pytest.mark.parametrize("how", ["overlap", "taken along", "reset", "amend"])
def test_what_the_run_needs_has_moved(tmp_path: Path, how: str) -> None:
    """It holds with who did what, and a person's resume goes on from there."""
    if how in ("overlap", "taken along"):
        box = in_progress(tmp_path)
    else:
        agent = MEANWHILE.format(start=1) + 'write(f"{STORY}.txt"); done()'
        box = sandbox(tmp_path, agent, stories=2)
    notes = tmp_path / "notes"
    told = ["sh", "-c", f"cat >> {notes}"]
    toml = (box.root / "ralph.toml").read_text() + f"[notify]\ncommand = {json.dumps(told)}\n"
    (box.root / "ralph.toml").write_text(toml)
    box.git("commit", "-qam", "settings")
    process = box.start()
    wait_until((box.state / "asks").exists, "the agent never started")
    box.ralph("pause")
    (box.state / "paused").touch()
    wait_until(lambda: is_waiting(box, "paused by a person"), "it never paused")
    if how == "overlap":
        box.git("stash", "-q", "-u", "--", "half.py")
        commit(box, "My half", half_py="z = 1\n")
        words = '"My half" meanwhile, and half.py is what US-1 is at work on'
    elif how == "taken along":
        box.git("add", "half.py")
        commit(box, "All of it", mine_py="z = 1\n")
        words = '"All of it" meanwhile, and half.py is what US-1 is at work on'
    elif how == "reset":
        box.git("reset", "-q", "--hard", "HEAD~1")
        words = "moved to"
    else:
        box.git("commit", "-q", "--amend", "-m", "Reworded")
        words = "moved to"
    assert box.ralph("resume").code == 0
    wait_until(lambda: is_waiting(box, "ralph resume"), "it never held")
    assert box.ralph("resume").code == 0
    out, err = process.communicate(timeout=100)
    assert "on hold: " in out
    assert words in out, out + err
    assert "`ralph resume` goes on from there" in out
    assert "--lanes 1" in out
    assert "on_hold" in notes.read_text()


@pytest.mark.parametrize("lanes", [(), ("--lanes", "2")], ids=["checkout", "lanes"])
def test_a_stop_ends_a_pause(tmp_path: Path, lanes: tuple[str, ...]) -> None:
    """Who stops a paused run and goes on later does not wait for the old pause."""
    say = 'pathlib.Path(os.environ["TEST_STATE"] + "/asks").touch()\n'
    agent = f'{say}write(f"{{STORY}}.txt"); time.sleep(0.5); done()'
    names = ("A", "B", "C", "D", "E", "F")
    box = (
        yard(tmp_path, agent, stories=stories_of(*names))
        if lanes
        else sandbox(tmp_path, agent, stories=[story(name) for name in names])
    )
    process = box.start(*lanes)
    wait_until((box.state / "asks").exists, "the agent never started")
    assert box.ralph("pause").code == 0
    wait_until(lambda: is_waiting(box, "paused by a person"), "it never paused")
    assert box.ralph("stop").code == 0
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    began = time.monotonic()
    done = box.run("--continue", timeout=60)
    assert done.code == 0, done.text
    assert time.monotonic() - began < 60
    assert "paused" not in done.out
