"""`ralph run --prompt FILE`: one prompt, no stories, the exit gate alone decides."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.loop.guards import told
from tests.loop.projects import Sandbox, sandbox

GREEN = [["true"]]


def plain(tmp_path: Path, agent: str, **more: object) -> Sandbox:
    """A repository without stories, with a prompt."""
    box = sandbox(tmp_path, agent, **more)  # type: ignore[arg-type]
    (box.root / "prd.json").unlink()
    (box.root / "task.md").write_text("Make it faster.\n")
    box.git("add", "-A")
    box.git("commit", "-qm", "prompt")
    return box


def test_it_ends_when_signal_and_indicators_agree(tmp_path: Path) -> None:
    """EXIT_SIGNAL alone goes on, EXIT_SIGNAL with two indicators is complete."""
    agent = """
    write(f"src/{START}.py")
    if START == 1: status(signal="true", words="Part one.")
    elif START == 2: done(signal="false", words="Part two.")
    else: done(signal="true", words="All done.")
    """
    box = plain(tmp_path, agent, checks=GREEN)
    done = box.run("--prompt", "task.md", "--json")
    assert done.code == 0, told(done)
    assert box.starts == 3
    assert "Make it faster." in box.prompt(1)
    assert "RALPH_STATUS" in box.prompt(1)


def test_failed_checks_veto_the_end(tmp_path: Path) -> None:
    """A project whose checks are red is not complete, whatever it says."""
    agent = """
    write(f"src/{START}.py")
    if START == 2: write("a.txt")
    done(signal="true")
    """
    box = plain(tmp_path, agent, checks=[["test", "-f", "a.txt"]])
    done = box.run("--prompt", "task.md", "--allow-red", "--json")
    assert done.code == 0, told(done)
    assert box.starts == 2
    assert "$ test -f a.txt" in box.prompt(2)


def test_the_guards_hold_without_stories_too(tmp_path: Path) -> None:
    """An agent that only talks opens the circuit."""
    box = plain(tmp_path, "status(files=0, words=f'Looked at {START}.')")
    done = box.run("--prompt", "task.md")
    assert done.code == 1, done.text
    assert box.starts == 4


def test_blocked_ends_with_its_reason(tmp_path: Path) -> None:
    """Nothing else can run: 2 with the recommendation."""
    box = plain(tmp_path, "status('BLOCKED', files=0, recommendation='Need a key')")
    done = box.run("--prompt", "task.md")
    assert done.code == 2, done.text
    assert "Need a key" in done.out
    assert box.starts == 1


def test_a_plain_loop_is_continued(tmp_path: Path) -> None:
    """Interrupted by its limit, it goes on with its count."""
    agent = "write(f'src/{START}.py')\nif START < 3: status()\nelse: done(signal='true')"
    box = plain(tmp_path, agent)
    assert box.run("--prompt", "task.md", "--max-iterations", "2").code == 3
    done = box.run("--prompt", "task.md", "--continue", "--max-iterations", "9")
    assert done.code == 0, done.text
    assert box.starts == 3


@pytest.mark.parametrize("extra", [["--prd", "x.json"], ["--story", "US-1"], ["."]])
def test_stories_and_a_prompt_do_not_go_together(tmp_path: Path, extra: list[str]) -> None:
    """A plain loop has no stories: 64."""
    box = plain(tmp_path, "done()")
    done = box.run("--prompt", "task.md", *extra)
    assert done.code == 64
    assert box.starts == 0


def test_without_stories_and_without_a_prompt_the_way_out_is_named(tmp_path: Path) -> None:
    """No prd.json: 65, and how to go on."""
    box = plain(tmp_path, "done()")
    done = box.run()
    assert done.code == 65
    assert "--prompt" in done.err


def test_the_agent_is_looked_at_where_it_works_also_beside_a_fleet(tmp_path: Path) -> None:
    """A prompt goes to no other machine, whatever the settings say: what lacks is said before."""
    box = sandbox(tmp_path, "done()", files={"note.md": "Do it."})
    away = {"RALPH_AGENT_NAME": "codex", "RALPH_AGENT_BINARY": "/nowhere/codex"}
    done = box.run("--prompt", "note.md", env={**away, "RALPH_FLEET_SERVER": "ssh:one"})
    assert done.code == 69, done.text
    assert "error: /nowhere/codex does not exist" in done.err
    assert "starts:" not in done.out
