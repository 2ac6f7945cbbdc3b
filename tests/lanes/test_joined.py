"""Two stories that only add lines at one place land without a second start, and it is said."""

from __future__ import annotations

import sys
from pathlib import Path

from tests.lanes.yards import prompt, starts, stories_of, yard

FILES = {"CHANGELOG.md": "# Changes\n\n- The first one.\n", "registry.py": "NAMES = []\n"}
# Both begin before the first lands, and `a` lands first.
AGENT = """
say(f"begun-{STORY}")
until("begun-a")
until("begun-b")
if START == 1:
    with open("CHANGELOG.md", "a") as file:
        file.write(f"- What {STORY} did.\\n")
    with open("registry.py", "a") as file:
        file.write(f"NAMES.append({STORY!r})\\n")
if STORY == "b":
    end = time.monotonic() + 30
    while b"a: Do a" not in log() and time.monotonic() < end:
        time.sleep(0.05)
SOLVE
done()
"""
LOG = """
def log():
    return subprocess.run(["git", "log", "--all", "--format=%s"], capture_output=True).stdout
"""


def agent(solve: str = "") -> str:
    """The agent of both stories, and what its second start does."""
    return LOG + AGENT.replace("SOLVE", solve)


def test_lines_that_both_only_added_land_in_the_order_of_landing(tmp_path: Path) -> None:
    """No second start; the story that came second says so in events and in the report."""
    box = yard(tmp_path, agent(), stories=stories_of("a", "b"), files=FILES)

    done = box.run("--lanes", "2", "--json")

    assert done.code == 0, done.text
    assert (starts(box, "a"), starts(box, "b")) == (1, 1)
    landed = (box.root / "CHANGELOG.md").read_text()
    assert landed == f"{FILES['CHANGELOG.md']}- What a did.\n- What b did.\n"
    names = (box.root / "registry.py").read_text()
    assert names == "NAMES = []\nNAMES.append('a')\nNAMES.append('b')\n"
    words = "in CHANGELOG.md, registry.py both this story and what landed added lines at one place"
    assert words in done.out
    report = next((box.root / ".ralph" / "reports").glob("*.html")).read_text()
    assert words in report


def test_the_checks_decide_whether_both_work_together(tmp_path: Path) -> None:
    """Red with both is a return as ever: the agent is told which lines of both were taken."""
    code = "import registry, sys; sys.exit(len(registry.NAMES) > 1 and registry.NAMES[-1] == 'b')"
    check = [sys.executable, "-B", "-c", code]
    solve = """
if START == 2:
    write("registry.py", "NAMES = ['b', 'a']\\n")
"""
    stories = stories_of("a", "b")
    box = yard(tmp_path, agent(solve), stories=stories, checks=[check], files=FILES)

    done = box.run("--lanes", "2")

    assert done.code == 0, done.text
    assert (starts(box, "a"), starts(box, "b")) == (1, 2)
    assert "both were taken, this story's after those that had landed" in prompt(box, "b", 2)
    assert (box.root / "registry.py").read_text() == "NAMES = ['b', 'a']\n"
