"""Any program as an agent: `agent.command` is its argv, the prompt comes on stdin."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from ralphloop.agents.base import AgentRequest, Launch
from ralphloop.agents.environment import agent_environment, clean_environment
from ralphloop.agents.programs import WhyNot, asked_freely, find_program, missing_program
from ralphloop.config.model import AgentSection
from ralphloop.errors import Finding, InputError, Level

_EXAMPLE = 'set it in ralph.toml, for example: command = ["./my-agent", "--quiet"]'


class CommandAgent:
    """Starts the user's own program."""

    name = "command"
    resumes = False

    def launch(self, request: AgentRequest) -> Launch:
        config = request.config
        if not config.command:
            raise InputError('the agent "command" has no command', _EXAMPLE, place="agent.command")
        return Launch(
            argv=(*config.command, *config.args),
            # It is their program: it gets their keys.
            env=agent_environment(request, drop_keys=False),
            stdin=request.stdin,
            cwd=request.cwd,
            reader=config.format,
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
        if not config.command:
            message = 'the agent "command" has no command'
            return [Finding(Level.ERROR, message, _EXAMPLE)]
        program = config.command[0]
        env = clean_environment(config, inherited, drop_keys=False)
        if find_program(program, env, cwd) is None:
            return [missing_program(program, "check agent.command in ralph.toml", cwd)]
        return []


AGENT = CommandAgent()
