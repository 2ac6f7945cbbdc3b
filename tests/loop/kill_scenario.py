"""A night with everything in it that a kill could fall into, and what it must leave behind.

The agent does the same for a story however often it is started, and it is paid ten cents for each
answer.  An answer that a dead supervisor left in the pipe was paid and cannot be known; one that
was read must be in the journal, once.

The full night: a story passes, one fails its proof and is set aside, one meets an outage first, and
the one set aside passes at its second chance.  The short night is its first story.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from pathlib import Path

from ralphloop.journal.queries import JournalReader
from tests.loop.projects import CALC, IGNORED, TESTS, UNITTEST, Done, Sandbox, sandbox, story

AGENT = """
import fcntl, sqlite3, struct, termios

SUPERVISOR = os.getppid()

def asked_once():
    db = sqlite3.connect(".ralph/journal.db", timeout=10)
    with db:
        if db.execute("SELECT COUNT(*) FROM requests").fetchone() == (0,):
            db.execute("INSERT INTO requests (run, at, kind, payload) VALUES (?, ?, 'note', ?)",
                       (os.environ["RALPH_RUN_ID"], time.time(), '{"text": "go on", "by": [0, 0]}'))
    db.close()

def book(name):
    with (STATE / name).open("a") as log: log.write(STORY + "\\n")

def is_read():
    return not struct.unpack("i", fcntl.ioctl(1, termios.FIONREAD, b"1234"))[0]

def paid(text):
    book("answered")
    says(text)
    result(f"{text}\\n\\n---RALPH_STATUS---\\nSTATUS: COMPLETE\\n---END_RALPH_STATUS---", cost=0.1)
    while os.getppid() == SUPERVISOR and not is_read(): time.sleep(0.002)
    time.sleep(0.02)
    if os.getppid() == SUPERVISOR: book("delivered")

if STORY == "first":
    asked_once()
if STORY == "third" and not (STATE / "outage").exists():
    (STATE / "outage").write_text("")
    print("API Error: 529 Overloaded", flush=True); sys.exit(1)
good = STORY != "second" or pathlib.Path("src/third.txt").exists()
write(f"src/{STORY}.txt", "good" if good else "bad")
write(f"tests/test_{STORY}.py", f"def test_{STORY}(): assert True\\n")
paid(f"Worked on {STORY}.")
"""
VIEWS = (".ralph-session.json", ".ralph-circuit-state.json")


def full(tmp_path: Path) -> Sandbox:
    """The whole night."""
    stories = [
        story("first", priority=1),
        story("second", priority=2, verify=["grep", "-q", "good", "src/second.txt"]),
        story("third", priority=3),
    ]
    return _night(tmp_path, stories)


def short(tmp_path: Path) -> Sandbox:
    """Its first story alone."""
    return _night(tmp_path, [story("first")])


PROVING = (
    AGENT.rpartition("good = STORY")[0]
    + """
write("calc.py", CALC + "def halve(x):\\n    return x // 2\\n")
tests = pathlib.Path("tests/test_calc.py")
if "halves" not in tests.read_text():
    tests.write_text(tests.read_text() + "    def test_halves(self):\\n        self.assertEqual(calc.halve(4), 2)\\n")
pathlib.Path("old.py").unlink(missing_ok=True)
paid(f"Worked on {STORY}.")
"""
)


def proof(tmp_path: Path) -> Sandbox:
    """A story whose tests are run crosswise: files change, come and go on both sides."""
    box = sandbox(
        tmp_path,
        f"CALC = {CALC!r}\n" + PROVING,
        stories=[story("first")],
        checks=UNITTEST,
        output="claude",
        files={
            "calc.py": CALC,
            "old.py": "x = 1\n",
            "tests/__init__.py": "",
            "tests/test_calc.py": TESTS,
            **IGNORED,
        },
        toml='[proof]\nexperiments = "always"\n',
    )
    box.env["RALPH_LIMITS_BACKOFF"] = "1ms"
    return box


def _night(tmp_path: Path, stories: list[dict[str, object]]) -> Sandbox:
    box = sandbox(
        tmp_path,
        AGENT,
        stories=stories,
        checks=[["true"]],
        limits="max_attempts = 1",
        output="claude",
        files={"src/old.txt": "old\n"},
    )
    box.env["RALPH_LIMITS_BACKOFF"] = "1ms"
    return box


@dataclass(frozen=True)
class Remains:
    """What a run leaves behind, without what differs from night to night."""

    subjects: list[str]
    trees: list[str]
    prd: str
    progress: list[tuple[str, str]]
    set_aside: int
    cost: float
    iterations: int


def remains(box: Sandbox) -> Remains:
    """Look at everything a run left in the repository and in the journal."""
    commits = box.git("rev-list", "--reverse", "HEAD").split()
    cost, iterations = totals(box)
    return Remains(
        subjects=box.subjects(),
        trees=[_tree(box, commit) for commit in commits],
        prd=(box.root / "prd.json").read_text(),
        progress=[entry for entry in progress(box) if entry[1] != "interrupted"],
        set_aside=len(box.git("for-each-ref", "refs/ralph/set-aside").splitlines()),
        cost=cost,
        iterations=iterations,
    )


def _tree(box: Sandbox, commit: str) -> str:
    """The content of a commit without the two files that name times and places."""
    lines = box.git("ls-tree", "-r", commit).splitlines()
    return "\n".join(
        line for line in lines if not line.endswith(("\tprogress.txt", "\tralph.toml"))
    )


def progress(box: Sandbox) -> list[tuple[str, str]]:
    """Tasks and outcomes as progress.txt tells them."""
    text = (box.root / "progress.txt").read_text()
    assert text.count("## Iteration") == len(set(re.findall(r"## Iteration \S+ (\S+)", text)))
    return re.findall(r"^Task: (\w+).*\nOutcome: (\w+)$", text, re.MULTILINE)


def totals(box: Sandbox) -> tuple[float, int]:
    """Money and iterations of all sessions together."""
    with JournalReader.open(box.root / ".ralph/journal.db") as journal:
        assert journal.unfinished_iterations() == []
        assert journal.owed_effects() == []
        runs = journal.runs(100)
    cost = sum(run.totals.cost_usd for run in runs)
    return round(cost, 6), sum(run.totals.iterations for run in runs)


def paid(box: Sandbox, book: str) -> float:
    """What the agent was paid, by its own book."""
    path = box.state / book
    return round(0.1 * len(path.read_text().split()), 6) if path.exists() else 0.0


def assert_views_are_whole(box: Sandbox) -> None:
    """A view is there as a whole or not at all."""
    for name in VIEWS:
        path = box.root / name
        if path.exists():
            json.loads(path.read_text())
    json.loads((box.root / "prd.json").read_text())


def assert_as_if_never_killed(box: Sandbox, done: Done, untouched: Remains) -> None:
    """Everything but the money is as it would have been."""
    assert done.code == 0, done.text
    left = remains(box)
    for name in ("subjects", "trees", "prd", "progress", "set_aside"):
        found, expected = getattr(left, name), getattr(untouched, name)
        assert found == expected, f"{name}: {found}\nnot: {expected}\n{done.text}"
    assert_views_are_whole(box)
    assert box.git("status", "--porcelain") == ""
    assert box.leftovers() == []
    assert not list(box.root.rglob("*.tmp"))
    least, most = paid(box, "delivered"), paid(box, "answered")
    assert least <= left.cost <= most, f"{left.cost} in the journal, {least} to {most} were paid"
