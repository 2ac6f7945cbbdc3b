"""What experiments cost: the checking of a story with them, against its check alone.

A toy project of 60 tests in ten files, each computing for about a tenth of a second, and a scripted
agent that adds a function and its test with a story, and with every third story code alone, which
is rarer than in real histories.  In the first run the runner is told which files changed, goal at
most 1.7 times the check; in the second `conftest.py` changes with each test, so that all tests run
crosswise, goal at most 3 times.  Check and experiments of a story follow each other, and their sums
are compared, so that a busy machine slows both.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ralphloop.journal.queries import JournalReader

FILES, TESTS, STORIES = 10, 6, 3
WORK = 3_000_000  # numbers that each test adds up: about a tenth of a second
GOALS = {"changed files alone": 1.7, "all tests": 3.0}

AGENT = """\
import os, sys
from pathlib import Path
sys.stdin.read()
n = int(os.environ["RALPH_STORY_ID"].rpartition("-")[2])
with Path(f"part_{n}.py").open("a") as code:
    code.write(f"\\n\\ndef twice(x):\\n    return 2 * x + 0 * {n}\\n")
if n % 3 < 2:
    with Path(f"tests/test_{n}.py").open("a") as tests:
        tests.write(f"\\n\\ndef test_twice():\\n    assert part_{n}.twice(3) == 6\\n")
if n % 3 < 2 and CONFIGURES:
    with Path("conftest.py").open("a") as settings:
        settings.write(f"# story {n}\\n")
print("---RALPH_STATUS---\\nSTATUS: COMPLETE\\nEXIT_SIGNAL: true\\n---END_RALPH_STATUS---")
"""
CONFIG = """\
[agent]
name = "command"
command = {agent}
[checks]
commands = [{check}]
[learning]
enabled = false
[session]
keep_awake = false
"""


def project(place: Path, *, configures: bool) -> Path:
    """A repository with green tests and a story for some of its files."""
    tests = place / "tests"
    tests.mkdir(parents=True)
    (place / "conftest.py").write_text("# finds the parts beside it\n")
    (place / ".gitignore").write_text("__pycache__/\n")
    for n in range(FILES):
        (place / f"part_{n}.py").write_text(f"def value():\n    return {n}\n")
        body = f"    sum(range({WORK}))\n    assert part_{n}.value() == {n}\n"
        rows = "\n\n".join(f"def test_{t}():\n{body}" for t in range(TESTS))
        (tests / f"test_{n}.py").write_text(f"import part_{n}\n\n\n{rows}")
    stories = [
        {"id": f"US-{n}", "title": f"Twice {n}", "passes": False, "priority": n + 1}
        for n in range(STORIES)
    ]
    (place / "prd.json").write_text(json.dumps({"userStories": stories}, indent=2))
    agent = place.with_suffix(".py")
    agent.write_text(AGENT.replace("CONFIGURES", str(configures)))
    check = [sys.executable, "-m", "pytest", "-q"]
    words = {"agent": json.dumps([sys.executable, str(agent)]), "check": json.dumps(check)}
    (place / "ralph.toml").write_text(CONFIG.format(**words))
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
        subprocess.run(["git", *args], cwd=place, check=True, env=environment())
    return place


def environment() -> dict[str, str]:
    """Ours, with an identity for git, and pytest without the plugins that only we have."""
    names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
    identity = {f"GIT_{name}": "bench@example.com" for name in names}
    plain = {"RALPH_TRUST": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return {**os.environ, **plain, **identity}


def measured(place: Path) -> float:
    """How many times the check's own time the checking of the stories took."""
    argv = [sys.executable, "-m", "ralphloop", "run", "-q"]
    done = subprocess.run(
        argv,
        cwd=place,
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        check=False,
    )
    with JournalReader.open(place / ".ralph" / "journal.db") as journal:
        run = journal.latest_run()
        assert run is not None
        passed = [it for it in journal.every_iteration(run.id) if it.record.verdict.passed]
    if done.returncode or len(passed) != STORIES:
        raise SystemExit(f"{len(passed)} stories passed, {done.stderr.decode()[-500:]}")
    grades = sorted({str(it.record.verdict.grade) for it in passed})
    plain = sum(check.duration_s for it in passed for check in it.checks)
    tried = sum(it.record.evidence.trial.took_s for it in passed if it.record.evidence.trial)
    each = f"check {plain / STORIES:.2f} s, experiments {tried / STORIES:.2f} s"
    print(f"{each} a story, {' and '.join(grades)}", end="; ")
    return (plain + tried) / plain


def main() -> int:
    """Both ways; the exit code says whether both goals were reached."""
    reached = True
    with tempfile.TemporaryDirectory(prefix="ralph-bench-") as root:
        for name, goal in GOALS.items():
            print(name, end=": ", flush=True)
            place = project(Path(root) / name.replace(" ", "-"), configures=name == "all tests")
            ratio = measured(place)
            reached &= ratio <= goal
            print(f"ratio {ratio:.2f}, goal {goal:.1f}")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
