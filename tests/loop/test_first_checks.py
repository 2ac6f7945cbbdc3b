"""The first run of the checks: a red or impossible one says why, with the advice that helps."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.loop.projects import sandbox

WORKS = "write(f'{STORY}.txt'); done()"
IMPOSSIBLE = {
    "a program that is not there": (
        ["pytset", "-q"],
        "pytset was not found",
        "nstall pytset, put it on PATH",
    ),
    "a shell's builtin": (["cd", "x"], "no shell is used here", '["sh", "-c", "cd x"]'),
    "connected commands": (
        ["true", "&&", "true"],
        "no shell is used here, so `&&` is only a word",
        "an entry of its own",
    ),
}
RED = {
    "a pipe": (["false", "|", "tee", "log"], "no shell is used here, so `|` is only a word"),
    "a module that is not installed": (
        [sys.executable, "-m", "no_such_linter", "check", "."],
        "No module named no_such_linter",
    ),
}


@pytest.mark.parametrize(("argv", "why", "fix"), IMPOSSIBLE.values(), ids=IMPOSSIBLE.keys())
@pytest.mark.parametrize("allowed", [(), ("--allow-red",)], ids=["plain", "allowed"])
def test_a_check_that_can_never_start_is_66(
    tmp_path: Path, argv: list[str], why: str, fix: str, allowed: tuple[str, ...]
) -> None:
    """Nothing is started, the reason and what helps are said, --allow-red is not advised."""
    box = sandbox(tmp_path, WORKS, checks=[["sh", "-c", "touch ran"], argv])
    done = box.run(*allowed)
    assert done.code == 66
    assert why in done.err
    assert fix in done.err
    assert "--allow-red" not in done.err
    assert box.starts == 0
    assert not (box.root / "ran").exists()
    doctor = box.ralph("doctor")
    assert doctor.code == 66
    assert why in doctor.out
    assert fix in doctor.out


@pytest.mark.parametrize(("argv", "why"), RED.values(), ids=RED.keys())
def test_a_check_that_is_red_for_a_reason_of_its_own_says_it(
    tmp_path: Path, argv: list[str], why: str
) -> None:
    """What is wrong with the command is said, and that no story will make it green is not hidden."""
    box = sandbox(tmp_path, WORKS, checks=[argv])
    done = box.run()
    assert done.code == 66
    assert why in done.err
    assert "--allow-red" not in done.err
    assert box.starts == 0


def test_a_red_suite_shows_its_last_lines_without_secrets(tmp_path: Path) -> None:
    """The end of the output is there, long output and secrets are not."""
    noisy = (
        "for n in range(5000): print('noise', n)\nprint('key', __import__('os').environ['A_KEY'])"
    )
    last = "print('FAILED test_sum: assert 3 == 4'); raise SystemExit(1)"
    box = sandbox(tmp_path, WORKS, checks=[[sys.executable, "-c", f"{noisy}\n{last}"]])
    done = box.run(env={"A_KEY": "sk-ant-api03-verysecretindeed-123456"})
    assert done.code == 66
    assert "FAILED test_sum: assert 3 == 4" in done.err
    assert "--allow-red" in done.err
    assert "verysecretindeed" not in done.err
    assert len(done.err) < 6_000


def test_words_that_only_look_like_a_shells_are_left_alone(tmp_path: Path) -> None:
    """`find … ;` and a script for a shell are honest commands, and so is one a story is to make."""
    honest = [["find", ".", "-name", "x", "-exec", "true", ";"], ["sh", "-c", "true && true | cat"]]
    box = sandbox(tmp_path, WORKS, checks=honest)
    assert box.run().code == 0
    assert box.ralph("doctor").out.count("no shell") == 0
    made = (
        "pathlib.Path('check.sh').write_text('#!/bin/sh\\n'); os.chmod('check.sh', 0o755); done()"
    )
    (tmp_path / "second").mkdir()
    later = sandbox(tmp_path / "second", made, checks=[["./check.sh"]])
    refused = later.run()
    assert refused.code == 66
    assert "./check.sh was not found" in refused.err
    assert "--allow-red if a story is to make it" in refused.err
    assert later.run("--allow-red").code == 0
