"""What experiments cost: the checking of a story with them, against its check alone.

A short suite, where starting the runner weighs most: 60 tests in ten files, less than two seconds
together.  A scripted agent brings the mix that real histories have, half of the stories tests with
code: a feature, a repaired bug, a changed expectation; then code alone, tests alone, prose alone.
In the first run the runner is told which files changed, goal at most 2 times the check; in the
second `conftest.py` changes with each test, so that all old tests run, goal at most 3.5 times.

Wall time is what the journal says of the stories, check and experiments one after the other, so
that a busy machine slows both.  CPU time is that of the whole run with experiments, less that of
one without them, against that of as many checks.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from ralphloop.journal.queries import JournalReader

FILES, TESTS, STORIES = 10, 6, 6
WORK = 800_000  # numbers that each test adds up: about a fortieth of a second
GOALS = {"changed files alone": 2.0, "all tests": 3.5}

AGENT = """\
import os, sys
from pathlib import Path
sys.stdin.read()
n = int(os.environ["RALPH_STORY_ID"].rpartition("-")[2])
def add(path, text): Path(path).open("a").write(text)
def replace(path, old, new): Path(path).write_text(Path(path).read_text().replace(old, new))
code, tests = f"part_{n}.py", f"tests/test_{n}.py"
if n in (0, 3):
    add(code, "\\n\\ndef twice(x):\\n    return 2 * x\\n")
if n == 0:
    add(tests, f"\\n\\ndef test_twice():\\n    assert part_{n}.twice(3) == 6\\n")
if n == 1:
    replace(code, "return x", "return abs(x)")
    add(tests, f"\\n\\ndef test_below():\\n    assert part_{n}.size(-3) == 3\\n")
if n == 2:
    replace(code, "return 2\\n", "return 20\\n")
    replace(tests, "value() == 2", "value() == 20")
if n == 4:
    add(tests, f"\\n\\ndef test_size():\\n    assert part_{n}.size(3) == 3\\n")
if n == 5:
    Path("README.md").write_text("Parts, and how big they are.\\n")
if CONFIGURES and n in (0, 1, 2):
    add("conftest.py", f"# story {n}\\n")
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
[proof]
experiments = "{wanted}"
"""
CHECK = [sys.executable, "-m", "pytest", "-q"]


def project(place: Path, *, configures: bool, wanted: str) -> Path:
    """A repository with green tests and a story for some of its files."""
    tests = place / "tests"
    tests.mkdir(parents=True)
    (place / "conftest.py").write_text("# finds the parts beside it\n")
    (place / ".gitignore").write_text("__pycache__/\n")
    for n in range(FILES):
        sizes = "def size(x):\n    return x\n"
        (place / f"part_{n}.py").write_text(f"def value():\n    return {n}\n\n\n{sizes}")
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
    words = {"agent": json.dumps([sys.executable, str(agent)]), "check": json.dumps(CHECK)}
    (place / "ralph.toml").write_text(CONFIG.format(**words, wanted=wanted))
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
        subprocess.run(["git", *args], cwd=place, check=True, env=environment())
    return place


def environment() -> dict[str, str]:
    """Ours, with an identity for git, and pytest without the plugins that only we have."""
    names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
    identity = {f"GIT_{name}": "bench@example.com" for name in names}
    plain = {"RALPH_TRUST": "1", "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return {**os.environ, **plain, **identity}


def cpu_s(argv: list[str], place: Path) -> float:
    """The seconds of a processor that a command and all it started took."""
    nothing = subprocess.DEVNULL
    process = subprocess.Popen(
        argv, cwd=place, env=environment(), stdin=nothing, stdout=nothing, stderr=nothing
    )
    _, status, used = os.wait4(process.pid, 0)
    process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"{argv} ended with {process.returncode} in {place}")
    return used.ru_utime + used.ru_stime


def ratios(root: Path, name: str) -> tuple[float, float]:
    """How many times the check's own time the checking of the stories took: wall, and CPU."""
    run, took = [sys.executable, "-m", "ralphloop", "run", "-q"], {}
    for wanted in ("off", "auto"):
        place = root / f"{name.replace(' ', '-')}-{wanted}"
        project(place, configures=name == "all tests", wanted=wanted)
        took[wanted] = cpu_s(run, place)
    with JournalReader.open(place / ".ralph" / "journal.db") as journal:
        latest = journal.latest_run()
        assert latest is not None
        passed = [it for it in journal.every_iteration(latest.id) if it.record.verdict.passed]
    if len(passed) != STORIES:
        raise SystemExit(f"{len(passed)} stories passed")
    plain = sum(check.duration_s for it in passed for check in it.checks)
    trials = [trial for it in passed if (trial := it.record.evidence.trial)]
    spent = [trial.took_s + trial.mutation.took_s for trial in trials]
    each = zip(spent, (str(it.record.verdict.grade) for it in passed), strict=True)
    told = ", ".join(f"{seconds:.2f} ({grade})" for seconds, grade in each)
    print(f"{name}: check {plain / STORIES:.2f} s, experiments {told}")
    alone = sum(cpu_s(CHECK, place) for _ in range(3)) / 3
    used = took["auto"] - took["off"]
    return 1 + sum(spent) / plain, 1 + used / (STORIES * alone)


def main() -> int:
    """Both ways; the exit code says whether both goals were reached."""
    reached = True
    with tempfile.TemporaryDirectory(prefix="ralph-bench-") as root:
        for name, goal in GOALS.items():
            wall, cpu = ratios(Path(root), name)
            reached &= min(wall, cpu) <= goal
            print(f"{name}: ratio {wall:.2f} by the clock, {cpu:.2f} of CPU time, goal {goal:.1f}")
    return 0 if reached else 1


if __name__ == "__main__":
    sys.exit(main())
