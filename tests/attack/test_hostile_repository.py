"""Every command in a hostile repository: nothing of it runs, nothing hangs, nothing is written outside."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests import sentences
from tests.cli.test_looking import Trapped
from tests.conftest import RunRalph

pytestmark = pytest.mark.attack

COMMAND_LINES = [
    "", "analyze out.txt", "answer US-1 yes", "budget --cost 1", "circuit status", "circuit reset",
    "clean --dry-run", "clean", "lanes", "lanes clean", "completion bash", "config show", "config validate", "do x --verify true",
    "docs", "docs first-night", "doctor",
    "eval cases.jsonl", "fleet status", "hook stop", "hook session-start", "init --yes", "learn --aggregate",
    "learnings list", "log", "mcp", "monitor --once", "note x", "pause", "plan prd.json --yes --try", "plan idea --yes",
    "plan --split US-1 --yes", "plugin path", "pr", "prices",
    "reject US-1 no", "replay", "report", "resume", "retry US-1", "review", "run", "run --dry-run",
    "run --detach", "simulate --scenario complete", "skip US-1", "stats", "status", "stop",
    "seal --list", "seal test_it.py", "unseal test_it.py", "uninstall --dry-run", "uninstall --yes",
    "serve --revoke", "stories", "trust", "trust --show", "trust --journal", "trust --revoke",
]  # fmt: skip
ACTING = {"demo"}  # in a repository of its own making
PIPES = [
    "ralph.toml", "PROMPT.md", "prd.json", ".gitignore", "progress.txt", "agents.d/agents-d.toml",
    ".ralph/holder.json", ".ralph/journal.db", ".ralph/learnings/index.json", ".gitattributes",
]  # fmt: skip
READING = ["status", "stories", "doctor", "run --dry-run", "config show", "init --yes", "hook stop"]


class Hostile(Trapped):
    """The same for somebody who has agreed to nothing."""

    @property
    def env(self) -> Mapping[str, str]:
        """No yes, and a state of its own."""
        homes = {f"XDG_{name}_HOME": str(self.marks) + name for name in ("STATE", "DATA")}
        return {**super().env, "RALPH_TRUST": "", **homes}


@pytest.fixture
def trapped(tmp_path: Path) -> Hostile:
    """A repository in which everything that can name a program names a trap."""
    place = Hostile(tmp_path)
    place.settings('binary = "./tools/trap"\nfallback = ["agents-d"]\n')
    for name in ("post-checkout", "pre-commit", "post-index-change", "reference-transaction"):
        hook = place.root / ".git" / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.symlink_to(place.trap)
    for key in ("core.pager", "core.editor", "diff.external", "core.sshCommand"):
        place.git("config", key, place.trap)
    return place


@pytest.mark.parametrize("words", COMMAND_LINES)
def test_no_command_runs_what_nobody_trusts(
    words: str, trapped: Hostile, run_ralph: RunRalph
) -> None:
    """Agents, checks, filters, hooks, signing, pagers: all of them stay where they are."""
    done = run_ralph(*words.split(), cwd=trapped.root, env=trapped.env, stdin="{}")
    assert sentences.INTERNAL not in done.stderr, done.stderr
    assert not trapped.marks.exists(), trapped.marks.read_text()
    if words in ("run", "run --detach", "trust"):
        assert done.returncode == 77, done


@pytest.mark.parametrize("name", PIPES)
def test_a_pipe_in_place_of_a_file_hangs_nothing(
    name: str, trapped: Hostile, run_ralph: RunRalph
) -> None:
    """Each command ends by itself, whichever file nobody will ever write to."""
    path = trapped.root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.unlink(missing_ok=True)
    os.mkfifo(path)
    for words in READING:
        given = '{"session_id": "x", "cwd": "."}'
        done = run_ralph(*words.split(), cwd=trapped.root, env=trapped.env, stdin=given)
        assert sentences.INTERNAL not in done.stderr, (words, done.stderr)
        path.unlink(missing_ok=True)
        os.mkfifo(path)
    assert not trapped.marks.exists()


@pytest.mark.parametrize("name", ["PROMPT.md", "ralph.toml"])
def test_a_link_out_of_the_repository_is_not_read(
    name: str, trapped: Hostile, run_ralph: RunRalph, tmp_path: Path
) -> None:
    """A clone does not choose which of the user's files a model is shown."""
    secret = tmp_path / "secret"
    secret.write_text("# the user's own words\n")
    (trapped.root / name).unlink(missing_ok=True)
    (trapped.root / name).symlink_to(secret)
    done = run_ralph("run", "--dry-run", cwd=trapped.root, env=trapped.env)
    assert (done.returncode, "leads out of the repository" in done.stderr) == (65, True), done
    assert "the user's own words" not in done.stdout + done.stderr


def test_a_link_inside_of_the_repository_is_read(trapped: Hostile, run_ralph: RunRalph) -> None:
    """People share a prompt between the projects of one repository."""
    trapped.write("shared.md", "Be kind.\n")
    (trapped.root / "PROMPT.md").unlink(missing_ok=True)
    (trapped.root / "PROMPT.md").symlink_to("shared.md")
    done = run_ralph("run", "--dry-run", cwd=trapped.root, env=trapped.env)
    assert "Be kind." in done.stdout, done.stderr
