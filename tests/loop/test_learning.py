"""What a run publishes of what it learned, and what it leaves alone, through the real command."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from ralphloop.learning import store
from ralphloop.project import Project
from tests.loop.guards import told
from tests.loop.projects import Sandbox, sandbox, story

SKILL = ".claude/skills/api-learned/SKILL.md"
SAID = "src/api/a.txt keeps one line for each story"
# Each story adds a feature and lists it in three files: that is what can be measured.
WORKS = f"""
write(f"src/api/{{STORY}}.txt", STORY)
for name in "abc":
    write(f"src/api/{{name}}.txt", STORY)
done(words="Added and listed.\\n\\nLEARNED: {SAID}")
"""
ASKED = 'skills = "skills"\nmemory = "CLAUDE.md"\nholdout = 0'


def learning_box(tmp_path: Path, agent: str = WORKS, *, learning: str = "", **more: Any) -> Sandbox:
    """A repository whose runs learn."""
    box = sandbox(tmp_path, agent, **{"stories": 3, "checks": [["true"]], **more})
    path = box.root / "ralph.toml"
    path.write_text(path.read_text().replace("enabled = false", learning))
    box.git("commit", "-qam", "learn")
    return box


def ids(path: Path) -> list[str]:
    """The patterns a published file names."""
    return re.findall(r"^- .* \[([0-9a-f]{8})\]$", path.read_text(), re.M)


def one_more_story(root: Path, title: str = "") -> None:
    """A list with a single open story."""
    (root / "prd.json").write_text(json.dumps({"userStories": [story("NEW-1", title)]}))
    for words in (["add", "-A"], ["commit", "-qm", "next"]):
        subprocess.run(["git", *words], cwd=root, check=True)


@pytest.mark.parametrize("how", ["clone", "worktree"])
def test_elsewhere_nothing_published_is_lost(how: str, tmp_path: Path) -> None:
    """A clone or work tree without `.ralph/` keeps skills and block, and adds what it learns."""
    box = learning_box(tmp_path, learning=ASKED)
    assert box.run().code == 0
    published = {name: ids(box.root / name) for name in (SKILL, "CLAUDE.md")}
    assert all(len(found) >= 3 for found in published.values())
    other = tmp_path / "other"
    words = {"clone": ["clone", "-q", ".", str(other)], "worktree": ["worktree", "add", str(other)]}
    box.git(*words[how])
    one_more_story(other)
    there = Sandbox(other, box.state)
    done = there.run()
    assert done.code == 0, told(done)
    assert "removed" not in done.text
    for name, found in published.items():
        assert ids(other / name) == found
    (other / "prd.json").write_text(
        json.dumps({"userStories": [story(f"NEW-{n}", passes=n == 1) for n in range(1, 4)]})
    )
    script = (tmp_path / "agent.py").read_text()
    (tmp_path / "agent.py").write_text(script.replace('"abc"', '"abcd"'))
    there.git("commit", "-qam", "more")
    done = there.run()
    assert done.code == 0, told(done)
    assert set(published[SKILL]) < set(ids(other / SKILL))


def test_nothing_is_made_unasked(tmp_path: Path) -> None:
    """Without a memory file and a place for skills a run makes neither, and commits stories only."""
    box = learning_box(tmp_path)
    done = box.run()
    assert done.code == 0, told(done)
    assert box.subjects()[-1] == "US-3: Do US-3"
    assert not [
        name for name in ("CLAUDE.md", "AGENTS.md", ".claude") if (box.root / name).exists()
    ]
    box.ralph("learn", "--aggregate")  # a person asks
    assert (box.root / "CLAUDE.md").exists()
    assert (box.root / "learned.jsonl").exists()


def test_what_is_there_is_kept_up_to_date(tmp_path: Path) -> None:
    """A memory file and a directory of skills that are there get what was learned."""
    files = {"AGENTS.md": "# Rules\n", ".claude/skills/mine/SKILL.md": "mine\n"}
    box = learning_box(tmp_path, files=files)
    assert box.run().code == 0
    assert box.subjects()[-1] == "Learned from this run"
    assert len(ids(box.root / SKILL)) >= 3
    assert len(ids(box.root / "AGENTS.md")) >= 3
    assert not (box.root / "CLAUDE.md").exists()


@pytest.mark.parametrize("decisions", ["", "- [broken"])
def test_what_was_learned_is_known_at_the_next_start(tmp_path: Path, decisions: str) -> None:
    """What was said last is known at the next start; where no index can be made the run goes on."""
    agent = """
index = pathlib.Path(".ralph/learnings/index.json")
write(f"seen-{START}.txt", str(json.loads(index.read_text())["learnings"] if index.exists() else 0))
"""
    box = learning_box(tmp_path, agent + WORKS, stories=5, learning="every = 2")
    if decisions:
        place = store.directory(Project(box.root))
        place.mkdir(parents=True)
        (place / "decisions.yaml").write_text(decisions)
    done = box.run()
    assert done.code == 0, told(done)
    seen = [(box.root / f"seen-{start}.txt").read_text() for start in range(1, 6)]
    assert seen == (["0"] * 5 if decisions else ["0", "1", "2", "3", "4"])


def test_a_learning_cites_the_commit_of_its_own_story(tmp_path: Path) -> None:
    """What passed names the commit that was made for it; a failed attempt names none."""
    agent = 'if START % 2: write("x"); done(); sys.exit()\npathlib.Path("x").unlink()\n' + WORKS
    red = "test ! -f x || { echo error: there is an x; exit 1; }"
    box = learning_box(tmp_path, agent, checks=[["sh", "-c", red]])
    done = box.run()
    assert done.code == 0, told(done)
    learnings, _ = store.load_all(Project(box.root))
    passed = [one for one in learnings if one.outcome == "passed"]
    subjects = [box.git("log", "-1", "--format=%s", one.commit) for one in passed]
    assert subjects == [f"{one.task_id}: Do {one.task_id}" for one in passed]
    assert len(subjects) == 3
    failed = [one for one in learnings if one.outcome == "failed"]
    assert [one.commit for one in failed] == [""] * 3


def test_the_words_of_agents_are_not_published(tmp_path: Path) -> None:
    """Said by three stories they reach prompts, and files only once a person approves them."""
    box = learning_box(tmp_path, learning=ASKED)
    assert box.run().code == 0
    assert SAID not in (box.root / SKILL).read_text() + (box.root / "CLAUDE.md").read_text()
    (found,) = json.loads(box.ralph("learnings", "search", "keeps", "line", "--json").out)
    assert box.ralph("learnings", "approve", found["id"]).code == 0
    box.ralph("learn", "--aggregate")
    assert SAID in (box.root / SKILL).read_text()
    assert SAID in (box.root / "CLAUDE.md").read_text()


def test_what_agents_said_is_told_to_later_ones(tmp_path: Path) -> None:
    """Not being published keeps nobody from quoting it in a prompt that it fits."""
    box = learning_box(tmp_path, learning="holdout = 0")
    assert box.run().code == 0
    one_more_story(box.root, title="Add one line to src/api/a.txt")
    assert box.run().code == 0
    assert SAID in box.prompt(4)


def test_an_outage_teaches_nothing(tmp_path: Path) -> None:
    """An overloaded service is no bug that the story's change repaired."""
    agent = """
    if START == 1: result("API Error: 529 the service is overloaded", is_error=True, api_error_status=529)
    else: write("mail.py"); write("test_mail.py"); result("Done.\\n---RALPH_STATUS---\\nSTATUS: COMPLETE\\n"
        "EXIT_SIGNAL: true\\nRECOMMENDATION: none\\n---END_RALPH_STATUS---")
    """
    box = learning_box(tmp_path, agent, stories=1, output="claude")
    done = box.run()
    assert done.code == 0, told(done)
    assert box.records()[0].analysis.outcome == "transient"
    kept = "".join(path.read_text() for path in (box.root / ".ralph/learnings").iterdir())
    assert "mail.py" in kept
    assert "overloaded" not in kept


def test_another_feature_begins_its_own_progress(tmp_path: Path) -> None:
    """A list of other stories does not read the last one's log; the same list goes on with it."""
    box = learning_box(tmp_path, stories=2)
    box.run("--story", "US-1")
    progress = box.root / "progress.txt"
    first = progress.read_text()
    assert box.run().code == 0
    assert progress.read_text().startswith(first)
    assert not (box.root / ".ralph/archive").exists()
    both = progress.read_text()
    one_more_story(box.root, title="Something else")
    done = box.run()
    assert done.code == 0, told(done)
    assert "told of another feature" in done.text
    assert "US-1" not in progress.read_text()
    (kept,) = (box.root / ".ralph/archive").iterdir()
    assert kept.read_text() == both
    assert "Do US-1" not in box.prompt(3).partition("# Recent progress")[2]
    assert not list((box.root / ".ralph").glob("git-index-*"))


def test_a_new_branch_begins_its_own_progress(tmp_path: Path) -> None:
    """The same stories on another branch are another feature."""
    box = learning_box(tmp_path, stories=1)
    assert box.run().code == 0
    listed = {"branchName": "feature/next", "userStories": [story("US-1"), story("US-2")]}
    (box.root / "prd.json").write_text(json.dumps(listed))
    box.git("commit", "-qam", "next")
    assert box.run().code == 0
    assert len(list((box.root / ".ralph/archive").iterdir())) == 1


def test_progress_says_what_was_done(tmp_path: Path) -> None:
    """The agent's own words and the files it changed, not only what it recommends."""
    box = learning_box(tmp_path, stories=1)
    assert box.run().code == 0
    (summary,) = re.findall("^Summary: (.*)$", (box.root / "progress.txt").read_text(), re.M)
    assert "Added and listed." in summary
    assert "src/api/US-1.txt" in summary
