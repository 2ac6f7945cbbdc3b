"""Agents that are programs of the user's own: any command, and our scripted one.

`agent.command` is the command's argv, and the prompt comes on stdin.  It is their program: it gets
their keys.

The scripted agent is a fake that is a real process and really edits files.  It is shipped because a
loop that can only be tried with a paid model is not tried at all: the demo, the tests and the
documentation run on it.  For it `agent.command` names the script (see `ralphloop.agents.script`):

    [agent]
    name = "scripted"
    command = ["night.yaml"]
"""

from pathlib import Path

from ralphloop.agents.base import Agent, AgentRequest, Inquiry, Launch
from ralphloop.agents.environment import (
    API_KEYS,
    agent_environment,
    clean_environment,
    find_program,
    missing_program,
)
from ralphloop.agents.script import STATE_VARIABLE, load_script
from ralphloop.config.model import AgentSection
from ralphloop.errors import Finding, InputError, Level, RalphError
from ralphloop.proc.run import ourselves

_EXAMPLE = 'set it in ralph.toml, for example: command = ["./my-agent", "--quiet"]'
_FIX = 'name the script in ralph.toml: command = ["night.yaml"]'


class CommandAgent(Agent):
    name = "command"
    keys = API_KEYS

    def launch(self, request: AgentRequest) -> Launch:
        config = request.config
        if not config.command:
            raise InputError('the agent "command" has no command', _EXAMPLE, place="agent.command")
        env = agent_environment(request, drop_keys=False)
        return request.launch((*config.command, *config.args), env, config.format)

    def check(self, inquiry: Inquiry) -> list[Finding]:
        config, cwd, inherited, _ = inquiry
        if not config.command:
            return [Finding(Level.ERROR, 'the agent "command" has no command', _EXAMPLE)]
        env = clean_environment(config, inherited, drop_keys=False)
        if find_program(config.command[0], env, cwd) is None:
            fix = "check agent.command in ralph.toml"
            return [missing_program(config.command[0], fix, cwd)]
        return []


class ScriptedAgent(Agent):
    name = "scripted"  # it resumes nothing: a script foresees every start

    def launch(self, request: AgentRequest) -> Launch:
        path = _script_path(request.config, request.cwd)
        state = {STATE_VARIABLE: str(request.settings_dir / "scripted-state.json")}
        env = agent_environment(request, drop_keys=False, defaults=state)
        player = ourselves("ralphloop.agents.scripted_main")
        words = (*player, str(path), *request.conversation)
        return request.launch(words, env, load_script(path).format)

    def check(self, inquiry: Inquiry) -> list[Finding]:
        try:
            path = _script_path(inquiry.config, inquiry.cwd)
            load_script(path)
        except RalphError as error:
            return [Finding(Level.ERROR, error.message, error.next_step or _FIX)]
        return [Finding(Level.INFO, f"a scripted agent plays {path.name}: no model is asked")]


def _script_path(config: AgentSection, cwd: Path) -> Path:
    if len(config.command) != 1:
        raise InputError('the agent "scripted" has no script', _FIX, place="agent.command")
    return cwd / config.command[0]


COMMAND, SCRIPTED = CommandAgent(), ScriptedAgent()
