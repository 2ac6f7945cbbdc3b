"""The scripted agent: a fake that is a real process and really edits files.

It is shipped because a loop that can only be tried with a paid model is not tried at all: the
demo, the tests and the documentation run on it.  `agent.command` names the script:

    [agent]
    name = "scripted"
    command = ["night.yaml"]

See `ralphloop.agents.script` for the script itself.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ralphloop.agents.base import AgentRequest, Launch
from ralphloop.agents.environment import agent_environment
from ralphloop.agents.programs import WhyNot, asked_freely
from ralphloop.agents.script import load_script
from ralphloop.agents.scripted_main import STATE_VARIABLE
from ralphloop.config.model import AgentSection
from ralphloop.errors import Finding, InputError, Level, RalphError
from ralphloop.proc.run import ourselves

_FIX = 'name the script in ralph.toml: command = ["night.yaml"]'


class ScriptedAgent:
    """Starts the player in a process of its own."""

    name = "scripted"
    resumes = False  # a script foresees every start

    def launch(self, request: AgentRequest) -> Launch:
        path = _script_path(request.config, request.cwd)
        script = load_script(path)
        state = request.settings_dir / "scripted-state.json"
        return Launch(
            argv=(
                *ourselves("ralphloop.agents.scripted_main"),
                str(path),
                *request.conversation,
            ),
            env={
                STATE_VARIABLE: str(state),
                **agent_environment(request, drop_keys=False),
            },
            stdin=request.stdin,
            cwd=request.cwd,
            reader=script.format,
            mark=request.mark,
        )

    def check(
        self,
        config: AgentSection,
        *,
        cwd: Path,
        inherited: Mapping[str, str],
        why_not: WhyNot = asked_freely,
    ) -> list[Finding]:
        try:
            path = _script_path(config, cwd)
            load_script(path)
        except RalphError as error:
            fix = error.next_step or _FIX
            return [Finding(Level.ERROR, error.message, fix)]
        return [Finding(Level.INFO, f"a scripted agent plays {path.name}: no model is asked")]


def _script_path(config: AgentSection, cwd: Path) -> Path:
    if len(config.command) != 1:
        raise InputError('the agent "scripted" has no script', _FIX, place="agent.command")
    return cwd / config.command[0]


AGENT = ScriptedAgent()
