"""One start of the agent, to its end, with the end written down before anything is measured.

Checks may take longer than the agent did, and a run that ends among them must not pay twice: its
successor judges from what `write_end` kept instead of starting the agent again.

Asking instead of guessing: an answer without a status block is put back to its conversation.  Once
for each start, without tools where the agent can be started so, for two minutes at most.  The
asking is written ahead, so that nobody asks twice; what is measured is measured after it.  It is no
iteration, but a start of the agent for the hour, and its money is the start's.
"""

import hashlib
import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import UNSET

from ralphloop.agents.base import AgentRequest
from ralphloop.agents.environment import where_to_look
from ralphloop.agents.process import Rules
from ralphloop.agents.process import run_agent as run_process
from ralphloop.agents.transcript import Transcript
from ralphloop.core.events import AgentStep, StatusAsked
from ralphloop.core.iteration import Carried, Result
from ralphloop.core.model import AgentEvent, Evidence, Outcome, Response, Usage, Value
from ralphloop.core.needs import Need, needs
from ralphloop.core.policy import HOUR, reached
from ralphloop.core.story_after import accounted
from ralphloop.errors import RalphError
from ralphloop.journal.records import IterationRecord
from ralphloop.loop.begin import Begun
from ralphloop.loop.runner import Runner
from ralphloop.prompts import ASK_FOR_STATUS
from ralphloop.readers import reader_for
from ralphloop.readers.failures import concerns_login
from ralphloop.repo.work_tree import Repository

_ASKING_S = 120.0
_COMMIT_S = 30.0  # a commit may take so long when the time is over


async def run_agent(runner: Runner, begun: Begun) -> Result:
    """Start the agent, ask for the status block where it is missing, and keep how it ended."""
    limits, left = runner.config.limits, runner.money_left
    resume = begun.state.session_id
    request = AgentRequest(
        config=begun.member.config,
        settings_dir=runner.setup.project.directory / "agent",
        prompt=begun.prompt.text,
        cwd=runner.setup.project.root,
        run_id=runner.run,
        iteration=begun.number,
        inherited=runner.setup.env_for(begun.member),
        box=runner.setup.agent_boxes.get(begun.member.name),
        story_id=begun.story.id if begun.story else None,
        session_id=None if resume else str(uuid.uuid4()),
        resume=resume or None,
        budget_usd=left,
    )
    wall, stall = limits.iteration_timeout, limits.stall_timeout
    rules = Rules(wall_s=wall, stall_s=stall, is_over=_time_is_up(runner))
    result = await _run(runner, begun, request, rules, begun.transcript)
    resumes = begun.member.agent.resumes and bool(result.response.session_id)
    can_be_asked = resumes and not runner.stop.requested and runner.free_at() is None
    ended = msgspec.structs.replace(result, can_be_asked=can_be_asked)
    known = Evidence(used=runner.totals())
    if needs(runner.session.state, begun.start, ended, known, runner.policy) is Need.STATUS:
        result = await _asked(runner, begun, request, result)
    _write_end(runner, begun, result)
    return result


async def _run(
    runner: Runner, begun: Begun, request: AgentRequest, rules: Rules, transcript: Path
) -> Result:
    """One process of the agent, watched and written down."""
    launch, repo = begun.member.agent.launch(request), runner.setup.repo

    def told(event: AgentEvent) -> None:
        ok = UNSET if event.ok is None else event.ok
        runner.emit(AgentStep(kind=event.kind, summary=event.summary, ok=ok), begun.number)

    def started(pid: int, since: float) -> None:
        runner.journal.set_agent_pid(runner.run, begun.number, pid=pid, pid_started=since)
        runner.settle()

    with Transcript(transcript) as sink:
        finished = await run_process(
            launch,
            reader=reader_for(launch.reader),
            sink=sink,
            rules=rules,
            stop=runner.stop,
            on_event=told,
            on_start=started,
            file_probe=(lambda: _fingerprint(repo)) if repo else None,
        )
    response = finished.response
    if finished.is_silent:  # it may well have been read, and thought about
        usage = Usage(input_tokens=begun.prompt.estimated_tokens, estimated=True)
        response = msgspec.structs.replace(response, usage=usage)
    response = _with_way_out(begun, request, with_price(runner, begun, response))
    return msgspec.structs.replace(finished, response=response)


def _time_is_up(runner: Runner) -> Callable[[], str]:
    """Says which time of the run is over, and why; git is given a moment to end a commit."""
    repo, since = runner.setup.repo, 0.0

    def words() -> str:
        nonlocal since
        now, over = runner.clock(), None
        with suppress(RalphError):  # the loop meets it too, and says so
            over = reached(runner.limits.of_time, runner.totals(), now)
        if over is None:
            return ""
        since = since or now
        is_busy = repo is not None and (repo.git_dir / "index.lock").exists()
        return "" if is_busy and 0 <= now - since < _COMMIT_S else over.reasons[0]

    return words


def _with_way_out(begun: Begun, request: AgentRequest, response: Response) -> Response:
    """The same; a login that was refused says which key or login to look at."""
    if response.outcome is not Outcome.FATAL or not concerns_login(response.reason):
        return response
    look = where_to_look(begun.member.agent, request.config, request.inherited)
    reason = f"{response.reason}; {look}" if look else response.reason
    return msgspec.structs.replace(response, reason=reason)


def with_price(runner: Runner, begun: Begun, response: Response) -> Response:
    """The same with what the agent's own record tells, and what money it does not tell."""
    if not response.usage.total_tokens:
        return response
    from ralphloop.agents.models import as_recorded
    from ralphloop.agents.prices import priced

    response = as_recorded(response, begun.member.config, runner.setup.options.env)
    usage = priced(response.usage, response.model or "")
    return msgspec.structs.replace(response, usage=usage)


def _fingerprint(repo: Repository) -> str:
    """Changes whenever a file that git would report does; cheap enough to ask now and then."""
    digest = hashlib.sha256()
    try:
        for entry in repo.status().entries:
            path = repo.root / os.fsdecode(entry.path)
            try:
                stat = path.lstat()
                digest.update(f"{stat.st_mtime_ns}:{stat.st_size}:".encode())
            except OSError:
                digest.update(b"gone:")
            digest.update(entry.path + b"\0")
    except RalphError:
        return ""  # git is busy: no sign of life, and no sign of death
    return digest.hexdigest()


# --- asking for the status block -------------------------------------------------------------


def asking_transcript(begun: Begun) -> Path:
    """Where what it says when it is asked is written down."""
    return begun.transcript.with_suffix(".status.log")


async def _asked(runner: Runner, begun: Begun, request: AgentRequest, result: Result) -> Result:
    """The same, with what came when its missing block was asked for."""
    _write_end(runner, begun, result, asking=True)
    now = runner.clock()
    runner.journal.count_asking(now=now, since=now - HOUR)
    runner.emit(StatusAsked(), begun.number)
    left = runner.money_left
    if left is not None:
        left = max(0.0, left - accounted(begun.state, result.response)[0].dollars)
    question = msgspec.structs.replace(
        request,
        prompt=ASK_FOR_STATUS,
        session_id=None,
        resume=result.response.session_id,
        budget_usd=left,
        max_turns=1,
        tools=False,
    )
    rules = Rules(wall_s=_ASKING_S)
    try:
        again = await _run(runner, begun, question, rules, asking_transcript(begun))
    except (RalphError, OSError) as error:  # it could not be asked: its words have to do
        failed = Response(reader="", outcome=Outcome.STARTUP_ERROR, reason=str(error))
        return msgspec.structs.replace(result, asked=failed)
    took = result.end.duration_s + again.end.duration_s
    return msgspec.structs.replace(
        result,
        asked=again.response,
        end=msgspec.structs.replace(result.end, duration_s=took),
        leftovers=(*result.leftovers, *again.leftovers),
    )


# --- how it ended ----------------------------------------------------------------------------


class AgentEnd(Value, kw_only=True):
    """What is known once an agent has ended."""

    n: int
    agent: str
    finished: Result
    carried: Carried = Carried()
    asking: bool = False  # it is asked for its status block; nobody asks a second time


def _write_end(runner: Runner, begun: Begun, result: Result, *, asking: bool = False) -> None:
    """Keep how the agent of this iteration ended, until the iteration is finished."""
    end = AgentEnd(
        n=begun.number,
        agent=begun.member.name,
        finished=result,
        carried=begun.carried,
        asking=asking,
    )
    runner.journal.keep_agent_end(_end_key(runner), end)


def _end_key(runner: Runner) -> str:
    return f"agent_end:{runner.run}" + (f":{runner.lane}" if runner.lane else "")


def read_end(runner: Runner, cut: IterationRecord) -> AgentEnd | None:
    """How the agent of an unfinished iteration ended; None: it was still at work."""
    try:
        end = msgspec.convert(runner.journal.meta(_end_key(runner)), AgentEnd)
    except msgspec.ValidationError:
        return None  # there is none, or another version wrote it
    return end if end.n == cut.n else None
