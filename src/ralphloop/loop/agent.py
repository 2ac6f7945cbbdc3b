"""One start of the agent, to its end, which is written down before anything is measured.

Checks may take longer than the agent did, and a run that ends among them must not pay twice: its
successor judges from what was kept.  An agent that was still at work is stopped, read from its
transcript, measured and recorded as interrupted, its cost included.

An answer without a status block is put back to its conversation, once for each start, for two
minutes at most, and written ahead, so that nobody asks twice.  It is no iteration, but a start of
the agent for the hour, and its money is the start's.
"""

import hashlib
import os
import uuid
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from ralphloop.agents.base import AgentRequest, mark_of
from ralphloop.agents.environment import where_to_look
from ralphloop.agents.process import Rules
from ralphloop.agents.process import run_agent as run_process
from ralphloop.agents.transcript import Transcript, join_tail, stderr_path
from ralphloop.core.events import StatusAsked
from ralphloop.core.iteration import LearnedPart, Result
from ralphloop.core.model import Evidence, Outcome, ProcessEnd, Response, Usage, Value
from ralphloop.core.policy import HOUR, reached
from ralphloop.core.run_state import Standing
from ralphloop.core.step import Need, needs
from ralphloop.core.story_after import accounted
from ralphloop.errors import RalphError
from ralphloop.journal.records import IterationRecord
from ralphloop.loop.begin import Round, begun_again
from ralphloop.loop.effects import apply_effects
from ralphloop.loop.judging import Judgement, judge, record
from ralphloop.loop.run import Run
from ralphloop.loop.steadily import steadily
from ralphloop.loop.workspace import Workspace
from ralphloop.proc.tree import stop_tree
from ralphloop.prompts import ASK_FOR_STATUS
from ralphloop.readers import reader_for, reader_name
from ralphloop.readers.failures import concerns_login
from ralphloop.repo.work_tree import Repository
from ralphloop.room import open_regular, read_regular

_ASKING_S = 120.0
_CHUNK = 1 << 16
_STDERR_TAIL = 8_000
_COMMIT_S = 30.0  # a commit may take so long when the time is over


async def run_agent(run: Run, workspace: Workspace, begun: Round) -> Result:
    """Start the agent, ask for the status block where it is missing, and keep how it ended."""
    limits = run.config.limits
    left = _money_for_a_start(run, workspace)
    resume = begun.state.session_id
    request = AgentRequest(
        config=begun.worker.config,
        settings_dir=workspace.project.directory / "agent",
        prompt=begun.prompt.text,
        cwd=workspace.project.root,
        run_id=run.id,
        iteration=begun.number,
        inherited=workspace.site.env_for(begun.worker),
        box=workspace.site.agent_boxes.get(begun.worker.name),
        story_id=begun.story.id if begun.story else None,
        session_id=None if resume else str(uuid.uuid4()),
        resume=resume or None,
        budget_usd=left,
    )
    wall = limits.iteration_timeout
    stall = limits.stall_timeout
    rules = Rules(wall_s=wall, stall_s=stall, is_over=_time_is_up(run, workspace))
    result = await _run(run, workspace, begun, request, rules, begun.transcript)
    resumes = begun.worker.agent.resumes and bool(result.response.session_id)
    can_be_asked = resumes and not run.stop.requested and run.free_at() is None
    ended = msgspec.structs.replace(result, can_be_asked=can_be_asked)
    known = Evidence(used=run.totals())
    if needs(run.session.state, begun.start, ended, known, run.policy) is Need.STATUS:
        result = await _asked(run, workspace, begun, request, result)
    _write_end(run, workspace, begun, result)
    return result


def _money_for_a_start(run: Run, workspace: Workspace) -> float | None:
    """Dollars that the next start may use, or None without a limit."""
    left = run.money_left()
    if left is None or workspace.reserve_money is None:
        return left
    return workspace.reserve_money(left)


async def _run(
    run: Run,
    workspace: Workspace,
    begun: Round,
    request: AgentRequest,
    rules: Rules,
    transcript: Path,
) -> Result:
    """One process of the agent, watched and written down."""
    launch = begun.worker.agent.launch(request)
    repo = workspace.repo

    def started(pid: int, since: float) -> None:
        run.journal.set_agent_pid(run.id, begun.number, pid=pid, pid_started=since)

    with Transcript(transcript) as sink:
        finished = await run_process(
            launch,
            sink=sink,
            rules=rules,
            stop=run.stop,
            on_event=lambda step: run.emit(step, begun.number),
            on_start=started,
            file_probe=(lambda: _fingerprint(repo)) if repo else None,
        )
    response = finished.response
    if finished.is_silent:  # it may well have been read, and thought about
        usage = Usage(input_tokens=begun.prompt.estimated_tokens, estimated=True)
        response = msgspec.structs.replace(response, usage=usage)
    response = with_price(run, begun, response)
    if response.outcome is Outcome.FATAL and concerns_login(response.reason):
        look = where_to_look(begun.worker.agent, request.config, request.inherited)
        reason = "; ".join(filter(None, (response.reason, look)))
        response = msgspec.structs.replace(response, reason=reason)
    return msgspec.structs.replace(finished, response=response)


def _time_is_up(run: Run, workspace: Workspace) -> Callable[[], str]:
    """Says which time of the run is over, and why; git is given a moment to end a commit."""
    repo = workspace.repo
    since = 0.0

    def words() -> str:
        nonlocal since
        now = run.clock()
        over = None
        with suppress(RalphError):  # the loop meets it too, and says so
            over = reached(run.limits.of_time, run.totals(), now)
        if over is None:
            return ""
        since = since or now
        is_busy = repo is not None and (repo.git_dir / "index.lock").exists()
        return "" if is_busy and 0 <= now - since < _COMMIT_S else over.reasons[0]

    return words


def with_price(run: Run, begun: Round, response: Response) -> Response:
    """The same with what the agent's own record tells, and what money it does not tell."""
    if not response.usage.total_tokens:
        return response
    from ralphloop.agents.prices import billed

    return billed(response, begun.worker.config, run.setup.options.env)


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


async def _asked(
    run: Run, workspace: Workspace, begun: Round, request: AgentRequest, result: Result
) -> Result:
    """The same, with what came when its missing block was asked for."""
    _write_end(run, workspace, begun, result, asking=True)
    now = run.clock()
    run.journal.count_asking(now=now, since=now - HOUR)
    run.emit(StatusAsked(), begun.number)
    left = _money_for_a_start(run, workspace)
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
        again = await _run(run, workspace, begun, question, rules, _asking_log(begun))
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


class AgentEnd(Value, kw_only=True):
    n: int
    agent: str
    finished: Result
    carried: LearnedPart = LearnedPart()
    asking: bool = False  # it is asked for its status block; nobody asks a second time


def _write_end(
    run: Run, workspace: Workspace, begun: Round, result: Result, *, asking: bool = False
) -> None:
    """Keep how the agent of this iteration ended, until the iteration is finished."""
    end = AgentEnd(
        n=begun.number,
        agent=begun.worker.name,
        finished=result,
        carried=begun.carried,
        asking=asking,
    )
    # A power cut may take that, and its work is done again.
    run.journal.put("agent_ended", {_end_key(run, workspace): end}, durable=False)


def _end_key(run: Run, workspace: Workspace) -> str:
    return f"agent_end:{run.id}" + (f":{workspace.number}" if workspace.number else "")


def _asking_log(begun: Round) -> Path:
    return begun.transcript.with_suffix(".status.log")


async def recover_iteration(
    run: Run,
    workspace: Workspace,
    cut: IterationRecord,
    conclude: Callable[[Judgement], Awaitable[object]],
) -> str:
    """One iteration that another process began, to the end it can have."""
    stopped = stop_tree(cut.pid, cut.pid_started, mark_of(cut.run, cut.n))
    stories = workspace.story_list()
    states = run.session.stories
    if stories is not None:  # as it was before the agent: only what we know to have passed has
        known = {name for name, one in states.items() if one.standing is Standing.PASSED}
        stories = stories.with_passes({story.id: story.id in known for story in stories.stories})
    begun = begun_again(run, workspace, cut, stories)
    repo = workspace.repo
    if repo is not None and cut.head and repo.git.attempt("cat-file", "-e", cut.head).returncode:
        # A journal from elsewhere knows commits that are not here.
        begun = msgspec.structs.replace(begun, before=workspace.measure.tree())
    try:
        ended = msgspec.convert(run.journal.meta(_end_key(run, workspace)), AgentEnd)
    except msgspec.ValidationError:
        ended = None  # it was still at work, or another version wrote it
    if ended is not None and ended.n == cut.n:  # go on where the checks were to begin
        workers = (begun.worker, *run.setup.workers)
        named = next((worker for worker in workers if worker.name == ended.agent), begun.worker)
        begun = msgspec.structs.replace(begun, worker=named, carried=ended.carried)
        result = ended.finished
        if ended.asking:  # cut off while it was asked: what it said by then counts, and is paid
            said = _read_transcript(run, begun, _asking_log(begun), result.response.reader)
            result = msgspec.structs.replace(result, asked=said)
        judged = await judge(run, workspace, begun, result)
        if judged.cut_short:
            return f"the checks of iteration {cut.n} are still to be run"
        await conclude(judged)
        return f"judged iteration {cut.n}, whose agent had ended before its checks did"
    reader = reader_name(begun.worker.name, begun.worker.config.format)
    result = Result(
        end=ProcessEnd(exit_code=None, interrupted=True),
        response=_read_transcript(run, begun, begun.transcript, reader),
        stopped_because="the supervisor ended before the agent did",
        leftovers=stopped,
    )
    judged = record(run, await judge(run, workspace, begun, result))
    await steadily(run, partial(apply_effects, run, workspace, cut.n, judged.step.effects))
    still = f", stopped {len(stopped)} of its processes" if stopped else ""
    return f"recorded iteration {cut.n} as interrupted{still}"


def _read_transcript(run: Run, begun: Round, path: Path, name: str) -> Response:
    reader = reader_for(name)
    stderr = ""
    if path.exists():
        join_tail(path)
        with open_regular(path) as file:
            while chunk := file.read(_CHUNK):
                reader.feed(chunk)
    if (beside := stderr_path(path)).exists():
        stderr = read_regular(beside)[-_STDERR_TAIL:].decode("utf-8", "replace")
    return with_price(run, begun, reader.finish(exit_code=None, stderr=stderr))
