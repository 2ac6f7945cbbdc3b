"""What would fail at one in the morning, found out before: `ralph run --probe`.

One tiny paid start of each agent of the run, in the project, with the settings of the run: does it
answer, with which model, for how much, and may it write here?  What it writes is taken away again.

Before every run, and for nothing, the life of a login is looked at where it can be read, and an
agent's own sandbox is tried where it can be asked without a model.
"""

import uuid
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from ralphloop.agents.base import AgentRequest, Inquiry
from ralphloop.agents.declared import DeclaredAgent
from ralphloop.agents.environment import clean_environment, find_program
from ralphloop.agents.foresight import login_ends
from ralphloop.agents.prices import billed
from ralphloop.agents.process import Rules, run_agent
from ralphloop.agents.transcript import Transcript
from ralphloop.core import Value
from ralphloop.core.model import Outcome
from ralphloop.core.totals import money
from ralphloop.errors import Finding, Level, RalphError
from ralphloop.loop.prepare import Setup, Worker
from ralphloop.proc.run import Output, run_command
from ralphloop.proc.sandbox import BOXED
from ralphloop.proc.threads import StopSignal
from ralphloop.text.durations import clock_time
from ralphloop.text.plain import one_line

_PROBE = "ralph-probe.txt"
_PROMPT = (
    f"This is a probe and no work. Write the one word ralph into the file {_PROBE} in the current"
    " directory with your tool for writing files. Then answer with the one word OK, and stop."
)
_WALL_S = 180.0
_STALL_S = 90.0
_TRY_S = 20.0
_TOKENS_THAT_LAST = ("CLAUDE_CODE_OAUTH_TOKEN",)


class AgentProbe(Value, kw_only=True):
    """What one tiny start of an agent showed."""

    agent: str
    answered: bool = False
    wrote: bool = False
    model: str = ""
    tokens: int = 0
    cost: str = ""
    why: str = ""  # what went wrong, or what was refused

    @property
    def words(self) -> str:
        """All of it in one line."""
        if not self.answered:
            return f"no answer: {self.why}"
        may = "it may write here" if self.wrote else f"it did not write here: {self.why}"
        model = f" as {self.model}" if self.model else ""
        return f"it answered{model}, {may}; {self.tokens:,} tokens, {self.cost}"


async def probe(setup: Setup, worker: Worker) -> AgentProbe:
    """Start an agent once, for next to nothing, and take away what it wrote."""
    place = setup.project.root / _PROBE
    if place.exists():
        return AgentProbe(agent=worker.name, why=f"{_PROBE} is there already: move it away")
    name = f"probe-{uuid.uuid4().hex[:8]}"
    request = AgentRequest(
        config=worker.config,
        settings_dir=setup.project.directory / "agent",
        prompt=_PROMPT,
        cwd=setup.project.root,
        run_id=name,
        iteration=1,
        inherited=setup.site.env_for(worker.name),
        box=setup.site.agent_boxes.get(worker.name),
        session_id=str(uuid.uuid4()),
    )
    try:
        with Transcript(setup.project.transcripts / name / f"{worker.name}.log") as sink:
            finished = await run_agent(
                worker.agent.launch(request),
                sink=sink,
                rules=Rules(wall_s=_WALL_S, stall_s=_STALL_S),
                stop=StopSignal(),
            )
        wrote = place.exists()
    except (RalphError, OSError) as error:
        return AgentProbe(agent=worker.name, why=one_line(str(error)))
    finally:
        with suppress(OSError):
            place.unlink()
    prices = setup.config.prices.models
    response = billed(finished.response, worker.config, setup.options.env, prices)
    answered = response.outcome in (Outcome.COMPLETED, Outcome.DENIED)
    refused = ", ".join(sorted({denial.tool for denial in response.denials}))
    usage = response.usage
    return AgentProbe(
        agent=worker.name,
        answered=answered,
        wrote=wrote,
        model=response.model or "",
        tokens=usage.total_tokens,
        cost="cost unknown" if usage.cost_usd is None else money(usage.dollars),
        why=f"refused: {refused}" if refused else finished.stopped_because or response.reason,
    )


def login_problems(worker: Worker, env: Mapping[str, str], *, until: float) -> Iterator[Finding]:
    """A login that ends before the run does and cannot be renewed by itself."""
    if not isinstance(worker.agent, DeclaredAgent) or worker.agent.it.login is None:
        return
    login = worker.agent.it.login
    own = clean_environment(worker.config, env)
    keys = (*worker.agent.keys, *_TOKENS_THAT_LAST)
    if any(own.get(name) for name in keys):
        return  # it is a key that counts
    ends = login_ends(login.expires, login.renewal, own, Path.cwd())
    if ends is not None and ends < until:
        message = f"{worker.name}'s login ends {clock_time(ends, until)}"
        yield Finding(
            Level.WARNING, f"{message}, and the run may last longer", login.lasts or login.fix
        )


def write_problems(worker: Worker, inquiry: Inquiry) -> Iterator[Finding]:
    """That an agent's own sandbox lets its tools write nothing here, tried without a model."""
    agent = worker.agent
    level = worker.config.safety
    is_boxed = inquiry.inherited.get(BOXED) == "1"
    if not isinstance(agent, DeclaredAgent) or not agent.it.tries:
        return
    place = inquiry.cwd / _PROBE
    env = clean_environment(worker.config, inquiry.inherited)
    program = find_program(agent.program(worker.config), env, inquiry.cwd)
    if level == "minimal" or is_boxed or program is None or place.exists():
        return
    flags = agent.it.safety.of(level) or ()
    words = [word for one in agent.it.tries for word in (flags if one == "{safety}" else (one,))]
    argv = [program, *words, "touch", _PROBE]
    try:
        tried = run_command(
            argv, cwd=inquiry.cwd, env=env, timeout_s=_TRY_S, output=Output.TOGETHER
        )
        has_written = place.exists()
    except (OSError, ValueError):
        return  # that it cannot be started is said elsewhere
    finally:
        with suppress(OSError):
            place.unlink()
    if not has_written:
        said = one_line(tried.said.strip().rpartition("\n")[2]) or f"exit code {tried.returncode}"
        message = f"{worker.name}'s sandbox lets its tools write nothing here: {said}"
        yield Finding(Level.WARNING, message, f"see what `{worker.name} {words[0]}` says")
