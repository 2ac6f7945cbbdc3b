"""How each agent is started: command line, environment, prompt; and what is found out before."""

from __future__ import annotations

import json
import os
import subprocess
import uuid
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import pytest

from ralphloop.agents.base import AgentRequest, Inquiry, Launch, load_agent, mark_of
from ralphloop.agents.declared import declared_names, load_declared
from ralphloop.config.known_agents import shipped_agents
from ralphloop.config.model import AgentSection, Safety
from ralphloop.errors import AgentUnavailable, Finding, InputError, Level
from ralphloop.proc.process_table import MARK_VARIABLE
from ralphloop.proc.sandbox import BOXED

SESSION = str(uuid.UUID(int=7))


def _request(tmp_path: Path, config: AgentSection, **fields: Any) -> AgentRequest:
    inherited = fields.pop("inherited", {"PATH": os.environ["PATH"], "HOME": "/home/me"})
    defaults: dict[str, Any] = {
        "prompt": "the prompt",
        "run_id": "run-1",
        "iteration": 3,
        "story_id": "US-1",
    }
    return AgentRequest(
        config=config,
        settings_dir=tmp_path / ".ralph" / "agent",
        cwd=tmp_path,
        inherited=inherited,
        **{**defaults, **fields},
    )


def _section(name: str, **fields: Any) -> AgentSection:
    return AgentSection(name=name, **fields)


def _claude(tmp_path: Path, *, config: Mapping[str, Any] | None = None, **fields: Any) -> Launch:
    section = _section("claude", **(config or {}))
    return load_agent("claude").launch(_request(tmp_path, section, **fields))


def _value(argv: tuple[str, ...], flag: str) -> str:
    return argv[argv.index(flag) + 1]


# --- the environment -------------------------------------------------------------------------

PARENT = {
    "CLAUDECODE": "1",
    "CLAUDE_CODE_ENTRYPOINT": "cli",
    "CLAUDE_CODE_SSE_PORT": "1234",
    "CLAUDE_CODE_SESSION_ID": "abc",
    "CLAUDE_CODE_CHILD_SESSION": "1",
    "CLAUDE_PID": "77",
    "GIT_DIR": "/elsewhere/.git",
    "GIT_INDEX_FILE": "/elsewhere/index",
    "GIT_WORK_TREE": "/elsewhere",
}
KEYS = {"ANTHROPIC_API_KEY": "k1", "OPENAI_API_KEY": "k2", "GEMINI_API_KEY": "k3"}
KEPT = {
    "PATH": os.environ["PATH"],
    "HOME": "/home/me",
    "CLAUDE_CODE_USE_BEDROCK": "1",
    "CLAUDE_CODE_OAUTH_TOKEN": "t",
    "CLAUDE_CONFIG_DIR": "/home/me/.claude",
    "ANTHROPIC_BASE_URL": "http://gateway",
    "GIT_AUTHOR_NAME": "Me",
}


def test_a_parent_session_another_repository_and_keys_are_not_passed_on(tmp_path: Path) -> None:
    """What would mislead the agent, or bill another account, is taken out; the rest stays."""
    launch = _claude(tmp_path, inherited={**PARENT, **KEYS, **KEPT})
    assert not {*PARENT, *KEYS} & set(launch.env)
    assert KEPT.items() <= launch.env.items()


def test_keys_are_passed_on_where_they_are_named(tmp_path: Path) -> None:
    """`pass_env` lets a variable through, and only that one."""
    config = {"pass_env": ("ANTHROPIC_API_KEY", "CLAUDE_PID")}
    launch = _claude(tmp_path, config=config, inherited={**PARENT, **KEYS, **KEPT})
    assert launch.env["ANTHROPIC_API_KEY"] == "k1"
    assert launch.env["CLAUDE_PID"] == "77"
    assert "OPENAI_API_KEY" not in launch.env


def test_every_start_says_who_it_is(tmp_path: Path) -> None:
    """Story, iteration and run are in the environment, and the mark cannot be configured away."""
    config = {"env": {"EXTRA": "1", "RALPH_STORY_ID": "mine", MARK_VARIABLE: "forged"}}
    env = _claude(tmp_path, config=config).env
    assert env["RALPH_RUN_ID"] == "run-1"
    assert env["RALPH_ITERATION"] == "3"
    assert env["EXTRA"] == "1"
    assert env["RALPH_STORY_ID"] == "mine"
    assert env[MARK_VARIABLE] == mark_of("run-1", 3)


@pytest.mark.parametrize("story", ["a\0b", "\ud800", "$(rm -rf /)\n", "--flag", "x" * 300])
def test_any_story_id_makes_a_valid_environment(tmp_path: Path, story: str) -> None:
    """Story ids may hold anything; a process can still be started."""
    launch = _claude(tmp_path, story_id=story)
    done = subprocess.run(
        ["printenv", "RALPH_STORY_ID"], env=launch.env, capture_output=True, check=True
    )
    assert done.stdout


# --- claude ----------------------------------------------------------------------------------


def test_claude_is_started_for_unattended_work(tmp_path: Path) -> None:
    """Streaming output, our session, project memory on, the prompt on stdin and nowhere else."""
    launch = _claude(tmp_path, session_id=SESSION, prompt="--dangerous ümlaut")
    assert launch.argv[:2] == ("claude", "-p")
    assert _value(launch.argv, "--output-format") == "stream-json"
    assert {"--verbose", "--include-partial-messages"} <= set(launch.argv)
    assert _value(launch.argv, "--session-id") == SESSION
    assert _value(launch.argv, "--setting-sources") == "user,project"
    assert launch.stdin == "--dangerous ümlaut".encode()
    assert not any("ümlaut" in word for word in launch.argv)
    assert launch.reader == "claude"
    assert launch.env["CLAUDE_CODE_STARTUP_FAILURE_RESULTS"] == "1"
    assert "--max-turns" not in launch.argv
    assert "--max-budget-usd" not in launch.argv
    assert "--model" not in launch.argv


def test_claude_is_told_its_limits(tmp_path: Path) -> None:
    """Model, turns and what is left of the budget become flags; a budget is never zero."""
    config = {"model": "opus", "args": ("--plugin-dir", "p"), "binary": "/opt/claude"}
    argv = _claude(tmp_path, config=config, max_turns=40, budget_usd=1.5).argv
    assert argv[0] == "/opt/claude"
    assert _value(argv, "--model") == "opus"
    assert _value(argv, "--max-turns") == "40"
    assert _value(argv, "--max-budget-usd") == "1.5000"
    assert argv[-2:] == ("--plugin-dir", "p")
    assert _value(_claude(tmp_path, budget_usd=0.0).argv, "--max-budget-usd") == "0.0100"


def test_claude_resumes_by_id_only(tmp_path: Path) -> None:
    """A conversation is resumed by its id, never by being the latest."""
    argv = _claude(tmp_path, session_id=SESSION, resume="earlier").argv
    assert _value(argv, "--resume") == "earlier"
    assert "--session-id" not in argv
    assert "--continue" not in argv


def test_a_question_is_asked_without_tools_where_the_agent_can_be_started_so(
    tmp_path: Path,
) -> None:
    """Claude has none, Codex may write nothing, Gemini may neither write nor run anything."""
    assert _value(_claude(tmp_path, resume=SESSION, tools=False).argv, "--tools") == ""
    assert "--tools" not in _claude(tmp_path).argv
    for name, flag in (
        ("codex", 'sandbox_mode="read-only"'),
        ("gemini", "default"),
    ):
        request = _request(tmp_path, _section(name), resume=SESSION, tools=False)
        with_tools = msgspec.structs.replace(request, tools=True)
        assert flag in load_agent(name).launch(request).argv
        assert flag not in load_agent(name).launch(with_tools).argv


def test_the_users_own_variables_come_before_our_defaults(tmp_path: Path) -> None:
    """Switches we set are defaults."""
    name = "CLAUDE_BYTE_STREAM_IDLE_TIMEOUT_MS"
    inherited = {"PATH": "/bin", name: "5000"}
    assert _claude(tmp_path, inherited=inherited).env[name] == "5000"
    assert (
        _claude(tmp_path, config={"env": {name: "6000"}}, inherited=inherited).env[name] == "6000"
    )


@pytest.mark.parametrize("safety", ["moderate", "strict"])
def test_rules_go_by_a_settings_file_of_ours(tmp_path: Path, safety: Safety) -> None:
    """Permissions are allowed by a file under `.ralph/`; nobody is asked."""
    argv = _claude(tmp_path, config={"safety": safety}).argv
    settings = Path(_value(argv, "--settings"))
    assert settings.is_relative_to(tmp_path / ".ralph")
    rules = json.loads(settings.read_text())
    assert {"Edit", "Write", "Read"} <= set(rules["permissions"]["allow"])
    assert _value(argv, "--permission-prompts") == "none"
    assert "--dangerously-skip-permissions" not in argv
    strict = safety == "strict"
    assert ("Bash(git push:*)" in rules["permissions"].get("deny", [])) is strict
    assert "sandbox" not in rules  # it is ours, around all of it


def test_more_tools_are_allowed_where_the_agent_can_be_told(tmp_path: Path) -> None:
    """By the settings file, by flags, or said to be left out."""
    allow = ("mcp__good__ping", "WebFetch")
    argv = _claude(tmp_path, config={"allow": allow}).argv
    rules = json.loads(Path(argv[argv.index("--settings") + 1]).read_text())
    assert set(allow) <= set(rules["permissions"]["allow"])
    codex = _section("codex", allow=allow)
    words = load_agent("codex").launch(_request(tmp_path, codex)).argv
    assert 'mcp_servers.good.tools.ping.approval_mode="approve"' in words
    assert not any("WebFetch" in word for word in words)


def test_a_weakened_settings_file_is_put_back(tmp_path: Path) -> None:
    """What an agent did to its own rules does not last to the next start."""
    path = Path(_value(_claude(tmp_path, config={"safety": "strict"}).argv, "--settings"))
    good = path.read_bytes()
    path.write_text("{}")
    _claude(tmp_path, config={"safety": "strict"})
    assert path.read_bytes() == good
    untouched = path.stat().st_mtime_ns
    _claude(tmp_path, config={"safety": "strict"})
    assert path.stat().st_mtime_ns == untouched


def test_skipping_all_prompts_is_said_and_refused_to_root(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """`minimal` is announced; as root it takes an explicit yes."""
    minimal = {"safety": "minimal"}
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    launch = _claude(tmp_path, config=minimal)
    assert "--dangerously-skip-permissions" in launch.argv
    assert "--settings" not in launch.argv
    assert "IS_SANDBOX" not in launch.env
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    with pytest.raises(AgentUnavailable, match="root") as caught:
        _claude(tmp_path, config=minimal)
    assert "IS_SANDBOX" in caught.value.next_step
    sure = {**minimal, "env": {"IS_SANDBOX": "1"}}
    assert "--dangerously-skip-permissions" in _claude(tmp_path, config=sure).argv


# --- found, executable, version, logged in ---------------------------------------------------

FAKE_CLAUDE = """#!/bin/sh
case "$*" in
  --version) echo "{version} (Claude Code)";;
  --help) echo "Commands:"; echo "  {auth}    Manage authentication";;
  "auth status") echo '{{"loggedIn": {logged_in}, "authMethod": "none"}}';;
  *) echo "unexpected: $*" >> {log}; exit 9;;
esac
"""


def _fake_claude(
    tmp_path: Path, *, version: str = "2.1.325", auth: str = "auth", logged_in: str = "true"
) -> Path:
    path = tmp_path / "bin" / "claude"
    path.parent.mkdir(exist_ok=True)
    log = tmp_path / "unexpected"
    path.write_text(FAKE_CLAUDE.format(version=version, auth=auth, logged_in=logged_in, log=log))
    path.chmod(0o755)
    return path


def _check(name: str, tmp_path: Path, **fields: Any) -> list[Finding]:
    inherited = {
        "PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin",
        **fields.pop("inherited", {}),
    }
    return load_agent(name).check(Inquiry(_section(name, **fields), tmp_path, inherited))


def test_a_healthy_claude_has_no_problem(tmp_path: Path) -> None:
    """Found and logged in: its version is all there is to tell."""
    _fake_claude(tmp_path)
    [info] = _check("claude", tmp_path)
    assert info == Finding(level=Level.INFO, message="claude 2.1.325")


def test_what_is_withheld_and_what_is_skipped_is_said_aloud(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A key that is not passed on is named unless it is asked for; `minimal` is a warning."""
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    _fake_claude(tmp_path)
    _, withheld = _check("claude", tmp_path, inherited=KEYS)
    assert withheld.message == "ANTHROPIC_API_KEY is set but not passed on"
    passed = {"inherited": KEYS, "pass_env": ("ANTHROPIC_API_KEY",)}
    assert len(_check("claude", tmp_path, **passed)) == 1
    _, minimal = _check("claude", tmp_path, safety="minimal")
    assert minimal.level is Level.WARNING
    assert "permission prompts skipped" in minimal.message


def test_a_version_we_did_not_test_with_is_told(tmp_path: Path) -> None:
    """Another version is no error, but said."""
    _fake_claude(tmp_path, version="3.0.1")
    [info] = _check("claude", tmp_path)
    assert info.message == "claude 3.0.1 (tested with 2.0.76, 2.1)"


def test_a_claude_that_is_not_logged_in_is_found_out(tmp_path: Path) -> None:
    """Not logged in at 22:00 is better known at 22:00; a key that would help is named."""
    _fake_claude(tmp_path, logged_in="false")
    problem = _check("claude", tmp_path)[-1]
    assert problem.level is Level.ERROR
    assert "not logged in" in problem.message
    problem = _check("claude", tmp_path, inherited=KEYS)[-1]
    assert 'pass_env = ["ANTHROPIC_API_KEY"]' in problem.fix


def test_an_old_claude_is_never_asked_what_it_would_take_for_a_prompt(tmp_path: Path) -> None:
    """Without an `auth` command the question would be a paid prompt."""
    _fake_claude(tmp_path, auth="config", logged_in="false")
    assert [p.level for p in _check("claude", tmp_path)] == [Level.INFO]
    assert not (tmp_path / "unexpected").exists()


def test_a_missing_or_not_executable_program_is_named_with_the_fix(tmp_path: Path) -> None:
    """What is wrong and what to do, for the name on PATH and for a configured path."""
    [problem] = _check("claude", tmp_path)
    assert problem.message == "claude is not on PATH"
    assert "npm install" in problem.fix
    plain = tmp_path / "plain"
    plain.write_text("x")
    [problem] = _check("claude", tmp_path, binary=str(plain))
    assert problem.message.endswith("is not executable")
    [problem] = _check("claude", tmp_path, binary="./nowhere")
    assert problem.message == "./nowhere does not exist"


def test_in_our_sandbox_an_agent_needs_none_of_its_own(tmp_path: Path) -> None:
    """Codex gets no sandbox of its own there, and opencode can be run at the strict level."""
    boxed = {"PATH": "/bin", BOXED: "1"}
    codex = _section("codex", safety="strict")
    words = load_agent("codex").launch(_request(tmp_path, codex, inherited=boxed)).argv
    assert 'sandbox_mode="danger-full-access"' in words
    opencode = _section("opencode", safety="strict")
    assert (
        "--auto"
        in load_agent("opencode").launch(_request(tmp_path, opencode, inherited=boxed)).argv
    )
    with pytest.raises(AgentUnavailable):
        load_agent("opencode").launch(_request(tmp_path, opencode))


# --- command ---------------------------------------------------------------------------------


def test_a_command_is_the_users_own_program(tmp_path: Path) -> None:
    """Its argv, its format, its keys; only parent session and other repositories are removed."""
    config = _section("command", command=("./agent", "-x"), args=("-y",), format="codex")
    launch = load_agent("command").launch(
        _request(tmp_path, config, inherited={**PARENT, **KEYS, **KEPT})
    )
    assert launch.argv == ("./agent", "-x", "-y")
    assert launch.reader == "codex"
    assert launch.stdin == b"the prompt"
    assert KEYS.items() <= launch.env.items()
    assert not set(PARENT) & set(launch.env)


def test_a_command_without_a_command_is_an_input_error(tmp_path: Path) -> None:
    """The mistake is named with its place and an example."""
    with pytest.raises(InputError, match=r"agent\.command") as caught:
        load_agent("command").launch(_request(tmp_path, _section("command")))
    assert "./my-agent" in caught.value.next_step
    assert _check("command", tmp_path)[0].level is Level.ERROR


def test_a_command_is_looked_for_where_it_will_run(tmp_path: Path) -> None:
    """A relative program is relative to the project."""
    agent = tmp_path / "agent.sh"
    agent.write_text("#!/bin/sh\n")
    [problem] = _check("command", tmp_path, command=("./agent.sh",))
    assert problem.message == "./agent.sh is not executable"
    agent.chmod(0o755)
    assert _check("command", tmp_path, command=("./agent.sh",)) == []
    [problem] = _check("command", tmp_path, command=("nope",))
    assert problem.message == "nope is not on PATH"


# --- agents that are data --------------------------------------------------------------------


def test_codex_gemini_and_opencode_are_data(tmp_path: Path) -> None:
    """Each is a file; its command line follows model, safety and conversation."""
    assert {"codex", "gemini", "opencode"} < set(declared_names())

    def argv(name: str, resume: str | None = None, **fields: Any) -> str:
        section = _section(name, **fields)
        launch = load_agent(name).launch(_request(tmp_path, section, resume=resume))
        assert launch.stdin == b"the prompt"
        assert launch.reader == name
        return " ".join(launch.argv)

    assert argv("codex", safety="minimal", model="o9") == (
        "codex exec --json --skip-git-repo-check --dangerously-bypass-approvals-and-sandbox -m o9 -"
    )
    assert argv("codex", "id-1", safety="strict", args=("--x",)) == (
        'codex exec resume --json --skip-git-repo-check -c sandbox_mode="workspace-write" --x id-1 -'
    )
    assert argv("gemini", model="g") == "gemini -o stream-json --approval-mode yolo -m g"
    assert argv("opencode", "ses_1") == "opencode run --format json -s ses_1 --auto"


def test_a_level_an_agent_does_not_know_is_refused(tmp_path: Path) -> None:
    """An agent without a sandbox is not run as if it had one."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "opencode"
    program.write_text("#!/bin/sh\necho 1.18.33\n")
    program.chmod(0o755)
    strict = _section("opencode", safety="strict")
    with pytest.raises(AgentUnavailable, match="strict"):
        load_agent("opencode").launch(_request(tmp_path, strict))
    problems = _check("opencode", tmp_path, safety="strict")
    assert [p.level for p in problems] == [Level.INFO, Level.INFO, Level.ERROR]
    version, note = _check("opencode", tmp_path)
    assert (version.level, note.level) == (Level.INFO, Level.INFO)


def test_a_declared_agent_is_asked_whether_it_is_logged_in(tmp_path: Path) -> None:
    """Its own command answers by exit code."""
    (tmp_path / "bin").mkdir()
    program = tmp_path / "bin" / "codex"
    program.write_text('#!/bin/sh\n[ "$1" = login ] && exit 1\necho codex-cli 0.166.0\n')
    program.chmod(0o755)
    info, problem = _check("codex", tmp_path)
    assert info.message == "codex 0.166.0"
    assert problem.message == "codex is not logged in"


OWN = """
name = "mine"
program = "my-agent"
reader = "text"
start = ["go", "{model}", "{safety}", "{args}"]
model = ["--model={value}"]
[safety]
moderate = ["--careful"]
[env]
MINE = "1"
"""


def test_a_new_agent_is_a_file(tmp_path: Path) -> None:
    """A TOML file in a directory of the user is an agent, and comes before ours."""
    (tmp_path / "mine.toml").write_text(OWN)
    (tmp_path / "codex.toml").write_text(OWN.replace('"mine"', '"codex"'))
    agent = load_agent("mine", directories=[tmp_path])
    section = msgspec.structs.replace(_section("command"), model="m", args=("-v",))
    launch = agent.launch(_request(tmp_path, section))
    assert launch.argv == ("my-agent", "go", "--model=m", "--careful", "-v")
    assert launch.env["MINE"] == "1"
    replaced = load_declared("codex", [tmp_path])
    assert replaced is not None
    assert replaced.launch(_request(tmp_path, section)).argv[0] == "my-agent"


@pytest.mark.parametrize(
    "text, words",
    [
        ("name = ", "Invalid value"),
        ('name = "x"', "missing required field"),
        (OWN + "\n[more]\nx = 1", "unknown field `more`"),
        (OWN.replace('["--careful"]', '"--careful"'), r"safety\.moderate"),
    ],
)
def test_a_broken_declaration_is_named(tmp_path: Path, text: str, words: str) -> None:
    """A mistake in such a file is an input error with the file's name."""
    (tmp_path / "broken.toml").write_text(text)
    with pytest.raises(InputError, match=words) as caught:
        load_agent("broken", directories=[tmp_path])
    assert caught.value.message.startswith("broken.toml: ")


def test_an_unknown_agent_is_told_with_the_known_ones() -> None:
    """A wrong name is answered with the right ones."""
    with pytest.raises(InputError) as caught:
        load_agent("cluade")
    assert caught.value.next_step == f"choose one of: {', '.join(sorted(shipped_agents()))}"
