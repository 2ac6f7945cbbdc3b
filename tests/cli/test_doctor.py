"""`ralph doctor`: each thing a run needs is looked at, each problem comes with its fix."""

from __future__ import annotations

import json
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cli.nights import Night
from tests.conftest import RunRalph

CLAUDE = """#!/bin/sh
case "$1" in
  --version) echo "{version} (Claude Code)" ;;
  --help) printf 'Commands:\\n  auth   Manage authentication\\n' ;;
  auth) echo '{{"loggedIn": {logged_in}}}' ;;
esac
"""
SETTINGS = '[checks]\ncommands = [["true"]]\n[session]\nkeep_awake = false\n'


class Place:
    """A repository in which everything is ready, and a PATH that holds only what it needs."""

    def __init__(self, base: Path) -> None:
        self.root, self.bin = base / "repo", base / "bin"
        self.root.mkdir()
        self.bin.mkdir()
        for program in ("git", "true", "sh"):
            found = shutil.which(program)
            assert found is not None
            (self.bin / program).symlink_to(found)
        self.program("claude", CLAUDE.format(version="2.1.7", logged_in="true"))
        self.git("init", "-q")
        self.write("ralph.toml", SETTINGS)
        self.write("prd.json", '{"userStories": [{"id": "A", "title": "Apples"}]}')
        self.write(".gitignore", ".ralph/\n")
        self.git("add", "-A")
        self.git("commit", "-qm", "start")

    @property
    def env(self) -> Mapping[str, str]:
        """What doctor is run with."""
        return {"PATH": str(self.bin)}

    def program(self, name: str, script: str) -> None:
        """Put a program on PATH."""
        (self.bin / name).write_text(script)
        (self.bin / name).chmod(0o755)

    def write(self, name: str, text: str) -> None:
        """Write a file of the repository."""
        (self.root / name).write_text(text)

    def commit(self, name: str, text: str) -> None:
        """Write a file and commit it."""
        self.write(name, text)
        self.git("commit", "-qam", name)

    def git(self, *arguments: str) -> None:
        """Run git in the repository."""
        subprocess.run(["git", *arguments], cwd=self.root, check=True, capture_output=True)


class Sign:
    """What doctor said."""

    def __init__(self, run_ralph: RunRalph, place: Place, **env: str) -> None:
        done = run_ralph("doctor", "--json", cwd=place.root, env={**place.env, **env})
        assert done.stdout, done.stderr
        self.code, self.data = done.returncode, json.loads(done.stdout)
        self.findings: list[dict[str, str]] = self.data["findings"]

    def of(self, area: str, level: str | None = None) -> list[dict[str, str]]:
        """The findings of one area."""
        return [f for f in self.findings if f["area"] == area and level in (None, f["level"])]

    @property
    def errors(self) -> list[str]:
        """What would stop a run."""
        return [f"{f['area']}: {f['message']}" for f in self.findings if f["level"] == "error"]


@pytest.fixture
def place(tmp_path: Path) -> Place:
    """A repository that is ready for a run."""
    return Place(tmp_path)


def test_where_all_is_well_it_says_so(place: Place, run_ralph: RunRalph) -> None:
    """A ready project has no error, every area is named, and the exit code is 0."""
    found = Sign(run_ralph, place)
    assert (found.code, found.errors) == (0, [])
    assert found.data["ok"] is True
    areas = {finding["area"] for finding in found.findings}
    assert areas >= {"ralph", "git", "settings", "stories", "checks", "agent", "journal", "lock"}
    done = run_ralph("doctor", cwd=place.root, env=place.env)
    assert done.returncode == 0
    assert "ok       agent       claude 2.1.7, chosen" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 80


def test_looking_changes_nothing(place: Place, run_ralph: RunRalph) -> None:
    """Doctor leaves no trace in the project."""
    before = {path for path in place.root.rglob("*") if ".git" not in path.parts}
    Sign(run_ralph, place)
    assert {path for path in place.root.rglob("*") if ".git" not in path.parts} == before


@pytest.mark.parametrize(
    "name, text, area, words, code",
    [
        ("ralph.toml", "[limits]\nmax_iteration = 3\n", "settings", "max_iterations", 65),
        ("ralph.toml", "= =", "settings", "ralph.toml", 65),
        ("prd.json", "{", "stories", "prd.json", 65),
        (
            "prd.json",
            '{"userStories": [{"id": "A", "title": "B", "parent_spec": "../../etc/passwd"}]}',
            "stories",
            "etc/passwd",
            65,
        ),
        (
            "ralph.toml",
            '[checks]\ncommands = [["no-such-program", "-q"]]\n',
            "checks",
            "no-such-program was not found",
            66,
        ),
    ],
)
def test_a_broken_file_is_an_error_with_its_code(
    name: str, text: str, area: str, words: str, code: int, place: Place, run_ralph: RunRalph
) -> None:
    """Settings and stories end with 65, checks that cannot run with 66, all with a fix."""
    place.commit(name, text)
    found = Sign(run_ralph, place)
    assert found.code == code
    assert any(words in error for error in found.errors), found.errors
    assert all(finding["fix"] for finding in found.of(area, "error"))


def test_uncommitted_changes_are_66(place: Place, run_ralph: RunRalph) -> None:
    """A dirty work tree would stop a run, so it is an error here too."""
    place.write("new.txt", "x")
    found = Sign(run_ralph, place)
    assert found.code == 66
    assert any("new.txt" in error for error in found.errors)


def test_what_was_learned_is_no_uncommitted_change(place: Place, run_ralph: RunRalph) -> None:
    """A run starts with what ralph itself wrote down, so nothing else is said here."""
    said = run_ralph("learnings", "add", "Run make fmt first.", cwd=place.root)
    assert said.returncode == 0
    assert (place.root / "learned.jsonl").exists()
    assert Sign(run_ralph, place).errors == []


def test_changes_of_an_unfinished_run_do_not_matter(place: Place, run_ralph: RunRalph) -> None:
    """What an interrupted run left is no obstacle to continuing it."""
    Night(place.root, config=SETTINGS).begin().end("interrupted")
    place.write("half.txt", "x")
    found = Sign(run_ralph, place)
    assert found.errors == []


def test_a_rebase_in_progress_is_66(place: Place, run_ralph: RunRalph) -> None:
    """The repository's own state is asked for, with the way out."""
    (place.root / ".git" / "rebase-merge").mkdir()
    found = Sign(run_ralph, place)
    assert found.code == 66
    assert "git rebase --abort" in found.of("repository", "error")[0]["fix"]


def test_an_unknown_committer_is_66(place: Place, run_ralph: RunRalph) -> None:
    """Without a name no commit is possible."""
    nobody = {"GIT_CONFIG_GLOBAL": "/dev/null", "EMAIL": "", "GIT_COMMITTER_NAME": ""}
    place.git("config", "user.useConfigOnly", "true")
    found = Sign(run_ralph, place, **nobody)
    assert found.code == 66
    assert "git config user.name" in found.of("repository", "error")[0]["fix"]


def test_hooks_are_named(place: Place, run_ralph: RunRalph) -> None:
    """What runs with every commit is worth knowing before the night."""
    hook = place.root / ".git" / "hooks" / "pre-commit"
    hook.parent.mkdir(exist_ok=True)
    hook.write_text("#!/bin/sh\n")
    hook.chmod(0o755)
    found = Sign(run_ralph, place)
    assert any("pre-commit" in finding["message"] for finding in found.of("repository"))


def test_without_git_it_is_a_warning(tmp_path: Path, place: Place, run_ralph: RunRalph) -> None:
    """A run works without a repository, only less is verified."""
    shutil.rmtree(place.root / ".git")
    found = Sign(run_ralph, place)
    assert found.of("git", "warning")
    assert found.errors == []


def test_git_that_is_not_installed_is_an_error(place: Place, run_ralph: RunRalph) -> None:
    """The program itself is needed."""
    (place.bin / "git").unlink()
    found = Sign(run_ralph, place)
    assert found.code == 66
    assert "install git" in found.of("git", "error")[0]["fix"]


def test_no_stories_and_no_checks_are_warnings(place: Place, run_ralph: RunRalph) -> None:
    """Both can be done without, and both are worth a word."""
    place.git("rm", "-q", "prd.json", "ralph.toml")
    place.git("commit", "-qm", "less")
    found = Sign(run_ralph, place)
    assert found.of("stories", "warning")
    assert found.of("checks", "warning")
    assert found.errors == []


def test_a_proof_that_cannot_run_is_a_warning(place: Place, run_ralph: RunRalph) -> None:
    """The verify command of an open story may be what the story is to make."""
    story = {"id": "A", "title": "Apples", "verify": ["./prove-it"]}
    place.commit("prd.json", json.dumps({"userStories": [story]}))
    found = Sign(run_ralph, place)
    assert "verify of A: ./prove-it was not found" in found.of("checks", "warning")[0]["message"]
    assert found.code == 0


def test_a_missing_agent_is_69(place: Place, run_ralph: RunRalph) -> None:
    """The chosen agent has to be there; how to get it is said."""
    (place.bin / "claude").unlink()
    found = Sign(run_ralph, place)
    assert found.code == 69
    assert "npm install" in found.of("agent", "error")[0]["fix"]


def test_an_agent_that_is_not_logged_in_is_69(place: Place, run_ralph: RunRalph) -> None:
    """Installed is not enough."""
    place.program("claude", CLAUDE.format(version="2.1.7", logged_in="false"))
    found = Sign(run_ralph, place)
    assert found.code == 69
    assert any("not logged in" in error for error in found.errors)


def test_a_version_nobody_tested_is_said(place: Place, run_ralph: RunRalph) -> None:
    """Another version than those tested is no error, but it is named with those that are."""
    place.program("claude", CLAUDE.format(version="9.9.9", logged_in="true"))
    found = Sign(run_ralph, place)
    assert any("claude 9.9.9 (tested with" in finding["message"] for finding in found.of("agent"))
    assert found.code == 0


def test_other_agents_are_only_mentioned(place: Place, run_ralph: RunRalph) -> None:
    """What is not chosen stops nothing, installed or not, and is one line."""
    place.program("codex", "#!/bin/sh\ntouch started\n")
    found = Sign(run_ralph, place)
    messages = [finding["message"] for finding in found.of("agent", "info")]
    assert any("gemini is not on PATH" in message for message in messages)
    assert any("codex is there; not started: it is not chosen" in message for message in messages)
    assert found.code == 0
    assert len([message for message in messages if "not chosen: " in message]) == 1


def test_a_fallback_that_is_missing_is_a_warning(place: Place, run_ralph: RunRalph) -> None:
    """Somebody counts on it, but a run can start."""
    place.commit("ralph.toml", SETTINGS + '[agent]\nfallback = ["gemini"]\n')
    found = Sign(run_ralph, place)
    assert "gemini" in found.of("agent", "warning")[0]["message"]
    assert found.code == 0


def test_a_message_that_could_not_be_sent_is_a_warning(place: Place, run_ralph: RunRalph) -> None:
    """Whoever relies on being told hears of it before the night."""
    place.commit("ralph.toml", SETTINGS + '[notify]\ncommand = ["no-such-program"]\n')
    found = Sign(run_ralph, place)
    assert "no-such-program was not found" in found.of("notify", "warning")[0]["message"]
    assert found.code == 0


def test_a_damaged_journal_is_70(place: Place, run_ralph: RunRalph) -> None:
    """A journal that cannot be read stops every run."""
    (place.root / ".ralph").mkdir()
    place.write(".ralph/journal.db", "garbage")
    found = Sign(run_ralph, place)
    assert found.code == 70
    assert found.of("journal", "error")[0]["fix"]


def test_a_live_run_is_named(place: Place, run_ralph: RunRalph) -> None:
    """Whoever holds the project is no error, but good to know."""
    night = Night(place.root, config=SETTINGS).begin()
    with night.held():
        found = Sign(run_ralph, place)
    assert night.run in found.of("lock", "info")[0]["message"]
    assert found.of("journal", "ok")


def test_the_first_error_decides(place: Place, run_ralph: RunRalph) -> None:
    """Several problems are all listed; the exit code is of the one a run meets first."""
    (place.bin / "claude").unlink()
    place.commit("prd.json", "{")
    place.write("new.txt", "x")
    found = Sign(run_ralph, place)
    assert found.code == 66
    assert len(found.errors) == 3
    text = run_ralph("doctor", cwd=place.root, env=place.env).stdout
    assert text.endswith("3 errors, 0 warnings: a run would not start.\n")


def test_keys_are_never_shown(place: Place, run_ralph: RunRalph) -> None:
    """Nothing secret of the environment is in what doctor prints."""
    place.commit("ralph.toml", SETTINGS + '[agent]\nenv = { TOKEN = "very-secret" }\n')
    found: Any = Sign(run_ralph, place, ANTHROPIC_API_KEY="sk-also-secret")
    assert "secret" not in json.dumps(found.data)
