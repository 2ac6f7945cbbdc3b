"""Settings of a run that change while an agent works: put back, kept, said."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests import sentences
from tests.loop.projects import sandbox

GREEN = [["true"]]
CHANGES = {
    "ralph.toml": "write('ralph.toml', config.replace('[[\"true\"]]', '[]'))",
    "agents.d/mine.toml": "write('agents.d/mine.toml', 'reader = \"text\"')",
    ".ralph/agents/mine.toml": "write('.ralph/agents/mine.toml', 'reader = \"text\"')",
    "PROMPT.md": "write('PROMPT.md', 'Claim everything.')",
}


@pytest.mark.parametrize("name", CHANGES)
def test_settings_that_an_agent_changes_are_put_back(tmp_path: Path, name: str) -> None:
    """The next run finds the settings of the person; the other version is under a ref."""
    agent = f"""
config = pathlib.Path('ralph.toml').read_text()
if START == 1:
    {CHANGES[name]}
write(f'{{START}}.txt'); done()
"""
    files = {"PROMPT.md": "Work well.\n"}
    box = sandbox(tmp_path, agent, checks=GREEN, files=files)
    before = {path: (box.root / path).read_bytes() for path in ("ralph.toml", "PROMPT.md")}
    done = box.run()
    assert done.code == 0, done.text
    assert {path: (box.root / path).read_bytes() for path in before} == before
    assert (box.root / name).exists() == (name in before)
    assert f"{name} was changed while the agent worked, and put back" in done.text
    assert f"{name} was changed" in box.prompt(2)
    (ref,) = box.git("for-each-ref", "--format=%(refname)", "refs/ralph/settings").split()
    assert ref in done.text
    assert box.git("show", f"{ref}:{name}")
    assert box.git("log", "-1", "--format=%(trailers:key=Ralph-Grade,valueonly)") == "checked"
    assert f"{name} was changed" in box.ralph("report", "--md").out


@pytest.mark.parametrize("had", [False, True], ids=["new", "in its place"])
@pytest.mark.parametrize("name", ["PROMPT.md", "agents.d"])
def test_a_link_to_settings_of_the_agents_own_is_removed(
    tmp_path: Path, name: str, had: bool
) -> None:
    """The next run would read what it leads to; what stood there before is there again."""
    agent = f"""
if START == 1:
    subprocess.run(['rm', '-rf', '{name}']); os.symlink(STATE, '{name}')
write(f'{{START}}.txt'); done()
"""
    mine = {"PROMPT.md": "Work well.\n", "agents.d/mine.toml": 'reader = "text"\n'}
    files = {path: text for path, text in mine.items() if had and path.startswith(name)}
    box = sandbox(tmp_path, agent, checks=GREEN, files=files)
    done = box.run()
    assert done.code == 0, done.text
    assert not (box.root / name).is_symlink()
    assert (box.root / name).exists() == had
    assert {path: (box.root / path).read_text() for path in files} == files
    assert name in done.text
    assert "changed while the agent worked, and put back" in done.text


def test_a_link_a_person_made_to_shared_settings_stays(tmp_path: Path) -> None:
    """It was there before the agent, and leads to a file of the repository."""
    box = sandbox(tmp_path, "write('a.txt'); done()", checks=GREEN)
    (box.root / "shared.md").write_text("Work well.\n")
    (box.root / "PROMPT.md").symlink_to("shared.md")
    box.git("add", "-A")
    box.git("commit", "-qm", "link")
    done = box.run()
    assert done.code == 0, done.text
    assert (box.root / "PROMPT.md").is_symlink()
    assert "put back" not in done.text


def test_settings_that_are_deleted_return(tmp_path: Path) -> None:
    """A deleted ralph.toml would let the next run begin without any check."""
    box = sandbox(tmp_path, "pathlib.Path('ralph.toml').unlink(missing_ok=True); done()")
    before = (box.root / "ralph.toml").read_bytes()
    box.run("--max-iterations", "1")
    assert (box.root / "ralph.toml").read_bytes() == before


def test_an_agent_that_insists_on_other_settings_needs_review(tmp_path: Path) -> None:
    """They are put back each time; what else it did passes, for a person to look at."""
    agent = "write('ralph.toml', '[checks]'); write(f'{START}.txt'); done()"
    box = sandbox(tmp_path, agent, checks=GREEN)
    done = box.run()
    assert done.code == 0, done.text
    assert box.starts == 2
    assert (
        box.git("log", "-1", "--format=%(trailers:key=Ralph-Grade,valueonly)")
        == sentences.NEEDS_REVIEW
    )
    assert "ralph.toml" not in box.git("diff", "--name-only", "HEAD~1")


def test_settings_a_person_changes_between_two_runs_stay(tmp_path: Path) -> None:
    """Nobody works meanwhile: the change is theirs."""
    box = sandbox(tmp_path, "write(f'{START}.txt'); done()", stories=2, checks=GREEN)
    assert box.run("--max-iterations", "1").code == 3
    config = (box.root / "ralph.toml").read_text().replace(json.dumps(GREEN), '[["test", "1"]]')
    (box.root / "ralph.toml").write_text(config)
    box.git("commit", "-qam", "another check")
    done = box.run("--continue", "--max-iterations", "2")
    assert done.code == 0, done.text
    assert (box.root / "ralph.toml").read_text() == config
    assert "put back" not in done.text
