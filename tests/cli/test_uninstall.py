"""What is left of ralph is shown, asked about and removed; a person's work is not."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from ralphloop.learning.skills import publish_skills
from tests.conftest import RunRalph
from tests.learning.support import area_notes, index_of, learning
from tests.loop.projects import Sandbox, sandbox

WORKS = "write(f'{STORY}.txt'); done()"


@pytest.fixture
def env(tmp_path: Path) -> Mapping[str, str]:
    """A user of one's own, whose places may be emptied."""
    home = tmp_path / "home"
    (home / ".config" / "ralph").mkdir(parents=True)
    (home / ".config" / "ralph" / "config.toml").write_text("")
    return {"HOME": str(home), "XDG_STATE_HOME": "", "XDG_CONFIG_HOME": "", "XDG_DATA_HOME": ""}


@pytest.fixture
def box(tmp_path: Path, env: Mapping[str, str]) -> Sandbox:
    """A project in which a night has been, with an attempt under a ref and an agent of its own."""
    place = tmp_path / "project"
    place.mkdir()
    made = sandbox(place, WORKS, checks=[["true"]])
    assert made.run(env=dict(env)).code == 0
    made.git("update-ref", "refs/ralph/set-aside/x/1", "HEAD")
    (made.root / ".ralph" / "agents").mkdir()
    (made.root / ".ralph" / "agents" / "mine.toml").write_text("mine")
    return made


def test_skills_that_were_made_go_and_those_of_a_person_stay(
    box: Sandbox, env: Mapping[str, str], run_ralph: RunRalph
) -> None:
    """Wherever they were made; one that somebody edited is theirs."""
    found = index_of(*(learning(f"api-{n}", *area_notes("api")) for n in range(2))).patterns
    publish_skills(box.root, found, "both")
    theirs = box.root / ".agents/skills/api-learned/SKILL.md"
    theirs.write_text(theirs.read_text() + "- mine\n")
    done = run_ralph("uninstall", "--yes", cwd=box.root, env=env)
    assert "a skill made of what was learned" in done.stdout
    assert not (box.root / ".claude/skills/api-learned/SKILL.md").exists()
    assert theirs.exists()


def everything(root: Path) -> set[str]:
    """All files below a directory, git's left out."""
    found = (path for path in root.rglob("*") if path.is_file() and ".git" not in path.parts)
    return {path.relative_to(root).as_posix() for path in found}


@pytest.mark.parametrize("words", [(), ("--dry-run",), ("--dry-run", "--yes")])
def test_nothing_is_removed_unasked(
    words: tuple[str, ...], box: Sandbox, env: Mapping[str, str], run_ralph: RunRalph
) -> None:
    """Without a yes all of it is only shown."""
    before = everything(box.root)
    done = run_ralph("uninstall", *words, cwd=box.root, env=env)
    assert done.returncode == 0, done.stderr
    assert "journal.db" in done.stdout
    assert ".ralph-session.json" in done.stdout
    assert "1 ref below refs/ralph/" in done.stdout
    assert ".config/ralph" in done.stdout
    assert everything(box.root) == before
    assert (Path(env["HOME"]) / ".config" / "ralph").exists()


def test_a_yes_removes_what_is_ours_and_nothing_else(
    box: Sandbox, env: Mapping[str, str], run_ralph: RunRalph
) -> None:
    """Stories, settings, commits, declared agents and refs of attempts stay."""
    commits = box.git("rev-list", "--count", "HEAD")
    done = run_ralph("uninstall", "--yes", cwd=box.root, env=env)
    assert done.returncode == 0, done.stderr
    left = everything(box.root)
    assert {name for name in left if "ralph" in name} == {"ralph.toml", ".ralph/agents/mine.toml"}
    assert {"prd.json", "US-1.txt"} <= left
    assert box.git("rev-list", "--count", "HEAD") == commits
    assert "refs/ralph/set-aside/x/1" in box.git("for-each-ref")
    home = Path(env["HOME"])
    assert not (home / ".local" / "state" / "ralph").exists()
    assert not (home / ".config" / "ralph").exists()


def test_refs_need_a_yes_of_their_own(
    box: Sandbox, env: Mapping[str, str], run_ralph: RunRalph
) -> None:
    """They may be the only copy of work."""
    done = run_ralph("uninstall", "--yes", "--refs", cwd=box.root, env=env)
    assert done.returncode == 0, done.stderr
    assert "refs/ralph/" not in box.git("for-each-ref")


def test_sealed_tests_keep_the_project_as_it_is(
    box: Sandbox, env: Mapping[str, str], run_ralph: RunRalph
) -> None:
    """They are a person's, and their only copy is in the state directory."""
    (box.root / "tests").mkdir(exist_ok=True)
    (box.root / "tests" / "test_secret.py").write_text("def test_it():\n    assert True\n")
    sealed = run_ralph("seal", "tests/test_secret.py", cwd=box.root, env=env)
    assert sealed.returncode == 0, sealed.stderr
    done = run_ralph("uninstall", "--yes", cwd=box.root, env=env)
    assert done.returncode == 64
    assert "sealed" in done.stderr
    assert (box.root / ".ralph" / "journal.db").exists()
    assert any((Path(env["HOME"]) / ".local/state/ralph/sealed").iterdir())


def test_an_agent_uninstalls_nothing(
    box: Sandbox, env: Mapping[str, str], run_ralph: RunRalph
) -> None:
    """What watches it is not its to remove."""
    from ralphloop.proc.process_table import MARK_VARIABLE

    done = run_ralph("uninstall", "--yes", cwd=box.root, env={**env, MARK_VARIABLE: "run:1"})
    assert done.returncode == 64
    assert (box.root / ".ralph" / "journal.db").exists()
    assert (box.root / ".ralph-session.json").exists()
