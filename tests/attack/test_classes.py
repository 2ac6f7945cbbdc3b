"""Every way a child is started and every way a file is read is listed here, with its reason.

Whoever adds one has to say why a hostile repository cannot make something of it.
"""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from ralphloop.cli.main import COMMANDS, OLDER
from tests.attack.test_hostile_repository import ACTING, COMMAND_LINES

pytestmark = pytest.mark.attack

PACKAGE = Path(__file__).parents[2] / "src" / "ralphloop"
STARTERS = {
    "run_command", "run_in_front", "spawn", "Popen", "create_subprocess_exec", "fork", "execv",
    "execve", "execvp", "system", "popen", "posix_spawn", "startfile", "run_path", "exec", "eval",
}  # fmt: skip
STARTS = {
    "agents/environment.py": "an agent's own --version and login, on PATH or after a yes",
    "loop/probing.py": "an agent's own sandbox, tried before a run that somebody said yes to",
    "agents/process.py": "the agent, after a yes",
    "agents/scripted_main.py": "a program of its own, run as an agent",
    "cli/demo.py": "ourselves, in a repository of our own making",
    "cli/hook.py": "ourselves",
    "cli/plugin.py": "claude of the user's PATH",
    "cli/shared/detach.py": "ourselves, after a yes",
    "cli/shared/tmux.py": "tmux of the user's PATH, ourselves, after a yes",
    "ui/monitor/app.py": "ourselves, or git as our own advice says, at a person's key; their words behind --",
    "forge/queues.py": "stories.queue, a grant, or typed behind --from",
    "fleet/machine.py": "git clone of an address on the worker's own list",
    "lanes/worktrees.py": "cp on the user's PATH; lanes.setup, a grant",
    "loop/confine.py": "bubblewrap, to see whether it works",
    "loop/judging.py": "checks.doubt, a grant",
    "loop/open.py": "session.on_end, a grant",
    "loop/signals.py": "what keeps the machine awake, on the user's PATH",
    "notify/notifier.py": "notify.command, a grant",
    "proc/child.py": "the one way to start",
    "proc/relay.py": "ourselves, in the sandbox",
    "proc/run.py": "the one way to start",
    "repo/checks.py": "checks and verify, grants",
    "repo/data/mutants/ralph_mutants.py": "copies of the check it runs in, in the check's own box",
    "repo/data/mutants/ralph_programs.py": "nothing itself: it watches what a check starts, in its box",
    "repo/github.py": "gh of the user's PATH",
    "repo/git.py": "git, which runs no hook or filter where it only looks",
}
READS = {
    "agents/claude.py": "our own settings file",
    "agents/environment.py": "the system's time zone",
    "agents/prices.py": "ours, the user's own, and what the agents of the user keep at home",
    "agents/script.py": "the script of the scripted agent, named on the command line or granted",
    "agents/scripted_main.py": "a program of its own",
    "agents/transcript.py": "our own transcripts, opened by `own_opener`",
    "cli/demo.py": "ours",
    "cli/docs.py": "our guides and references",
    "cli/shared/doc_pages.py": "our guides and references",
    "cli/doctor.py": "a program on the user's PATH",
    "cli/init.py": "our templates, and a file that is named on the command line",
    "cli/plugin.py": "ours",
    "cli/shared/claude_commands.py": "the user's own commands",
    "cli/shared/story_schema.py": "our schema",
    "cli/shared/tmux.py": "our own exit code",
    "fleet/machine.py": "our own note, in a directory of our own",
    "fleet/temporal.py": "keys and certificates that the user's own settings name",
    "hook/sessions.py": "our own prompt, a regular file",
    "hook/stop.py": "the session's transcript, whose place the session says",
    "hook/turn.py": "our own copy of the story file",
    "journal/database.py": "our own statements",
    "learning/publish.py": "the memory file, a regular file",
    "plan/acceptance.py": "our template",
    "plan/conversation.py": "our templates",
    "lanes/clean_tree.py": "our own note, in git's directory of a clone of ours",
    "loop/probing.py": "what the user's own claude keeps at home",
    "loop/reviewing.py": "our own prompt",
    "loop/begin.py": "the story file, read as a regular file just before",
    "project.py": "git's own file, a regular one",
    "replay/cases.py": "ours",
    "repo/commit.py": "git's trace, in a directory of our own",
    "repo/github.py": "ours",
    "repo/experiment.py": "paths of a story's change, as git lists them",
    "repo/mutant_runs.py": "what a check wrote, in a directory of our own",
    "repo/named.py": "what a check wrote, and test files that git lists",
    "repo/private_git.py": "our own index",
    "repo/reports.py": "what a check wrote, in a directory of our own",
    "repo/runners.py": "ours",
    "repo/set_aside.py": "git's HEAD",
    "stories/lint.py": "our words",
    "stories/sample.py": "our template",
    "ui/page/files.py": "ours",
}
READERS = {"read_text", "read_bytes"}


def calls(names: set[str]) -> set[str]:
    """The modules that call something of these names."""
    found = set()
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_bytes())):
            if isinstance(node, ast.Call):
                func = node.func
                name = func.attr if isinstance(func, ast.Attribute) else getattr(func, "id", "")
                if name in names:
                    found.add(path.relative_to(PACKAGE).as_posix())
    return found


def test_every_place_that_starts_a_process_is_known() -> None:
    """A new one is listed with the reason why a repository cannot misuse it."""
    assert calls(STARTERS) <= set(STARTS)


def test_every_place_that_reads_a_file_in_one_go_is_known() -> None:
    """What may stand in a repository is read by `read_regular` and `open_regular` of the room."""
    assert calls(READERS) <= set(READS)


def test_settings_are_read_in_one_place() -> None:
    """No module but `config` reads ralph.toml or parses settings of its own."""
    parsing = {
        path.relative_to(PACKAGE).as_posix()
        for path in PACKAGE.rglob("*.py")
        if "tomllib.load" in path.read_text(encoding="utf-8")
    }
    known = {
        "agents/declared.py", "agents/foresight.py", "agents/prices.py", "config/load.py",
        "replay/cases.py", "repo/github.py", "repo/runners.py",
        "stacks/detect.py", "stacks/lane_setup.py",
        "text/setting_parts.py",  # only whether a text of ours can still be read
    }  # fmt: skip
    assert parsing <= known


def test_every_command_is_tried_in_a_hostile_repository() -> None:
    """A new command is added to those that are tried, or to the few that act by design."""
    tried = {words.split()[0] for words in COMMAND_LINES if words}
    assert tried | ACTING == {*COMMANDS, *OLDER}
