"""One start of the agent, to its end, which is written down before anything is measured.

Checks may take longer than the agent did, and a run that ends among them must not pay twice: its
successor judges from what was kept.  An agent that was still at work is stopped, read from its
transcript, measured and recorded as interrupted, its cost included.

An answer without a status block is put back to its conversation, once for each start, for two
minutes at most, and written ahead, so that nobody asks twice.  It is no iteration, but a start of
the agent for the hour, and its money is the start's.
"""

import dataclasses
import hashlib
import os
import uuid
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from pathlib import Path

import msgspec

from ralphloop.agents.base import Agent, AgentRequest, mark_of
from ralphloop.agents.environment import where_to_look
from ralphloop.agents.process import Rules
from ralphloop.agents.process import run_agent as run_process
from ralphloop.agents.transcript import Transcript, join_tail, stderr_path
from ralphloop.core import readable
from ralphloop.core.events import AgentStep, StatusAsked
from ralphloop.core.iteration import LearnedPart, Result
from ralphloop.core.model import Evidence, Outcome, ProcessEnd, Response, Usage, Value
from ralphloop.core.planning import facts_of
from ralphloop.core.policy import HOUR, reached
from ralphloop.core.run_state import Standing
from ralphloop.core.step import Need, needs
from ralphloop.core.story_after import accounted
from ralphloop.errors import RalphError
from ralphloop.journal.queries import GIVEN_KEY
from ralphloop.journal.records import HeardOfStart, IterationRecord
from ralphloop.loop.begin import Round, begun_again
from ralphloop.loop.ceiling import StartBudget, ceiling_kind, start_ceiling, tokens_left
from ralphloop.loop.effects import apply_effects
from ralphloop.loop.judging import Judgement, judge, record
from ralphloop.loop.prepare import Site
from ralphloop.loop.run import Run
from ralphloop.loop.steadily import steadily
from ralphloop.loop.workspace import AgentOrder, Workspace
from ralphloop.proc.threads import StopSignal
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
    resume = begun.state.conversation.id
    money = _within_share(run, begun, _money_for_start(run, workspace))
    order = AgentOrder(
        agent=begun.worker.config,
        prompt=begun.prompt.text,
        run=run.id,
        number=begun.number,
        story=begun.story.id if begun.story else None,
        log=begun.transcript.name,
        session_id=None if resume else str(uuid.uuid4()),
        resume=resume or None,
        budget_usd=money.usd,
        is_share=money.is_share,
        budget_tokens=_tokens_for_start(run, workspace),
        wall_s=limits.iteration_timeout,
        stall_s=limits.stall_timeout,
    )
    result = await _run_order(run, workspace, begun, order)
    resumes = begun.worker.agent.resumes and bool(result.response.session_id)
    can_be_asked = resumes and not run.stop.requested and run.free_at() is None
    ended = msgspec.structs.replace(result, can_be_asked=can_be_asked)
    known = Evidence(used=run.totals())
    if needs(run.session.state, begun.start, ended, known, run.policy) is Need.STATUS:
        result = await _ask_for_status(run, workspace, begun, order, result)

    async def written() -> None:
        _write_end(run, workspace, begun, result)

    await workspace.with_room(written)
    return result


def _money_for_start(run: Run, workspace: Workspace) -> float | None:
    """Dollars that the next start may use, which are its own from now on; None without a limit."""
    left = run.money_left()
    return None if left is None else workspace.reserve_money(left)


def _tokens_for_start(run: Run, workspace: Workspace) -> int | None:
    """Tokens that the next start may use, which are its own from now on; None without a limit."""
    left = tokens_left(run)
    return None if left is None else workspace.reserve_tokens(left)


def _within_share(run: Run, begun: Round, usd: float | None) -> StartBudget:
    """The money of a start, which is a story's share at most while another story can run."""
    share = run.limits.max_cost_usd * run.limits.max_story_share
    if usd is None or not 0 < share < usd or begun.story is None or begun.stories is None:
        return StartBudget(usd=usd)
    facts = facts_of(begun.stories, run.session.stories, begun.story, only=run.setup.options.only)
    return StartBudget(usd=share, is_share=True) if facts.others else StartBudget(usd=usd)


async def _run_order(run: Run, workspace: Workspace, begun: Round, order: AgentOrder) -> Result:
    """Have the workspace carry out an order, to its end."""
    return _told(run, workspace, begun, await workspace.start(run, order))


def _told(run: Run, workspace: Workspace, begun: Round, finished: Result) -> Result:
    """How the agent ended, with what it cost and, where its login failed, where to look."""
    response = finished.response
    if finished.is_silent:  # it may well have been read, and thought about
        usage = Usage(input_tokens=begun.prompt.estimated_tokens, estimated=True)
        response = msgspec.structs.replace(response, usage=usage)
    response = with_price(run, begun, response)
    if response.outcome is Outcome.FATAL and concerns_login(response.reason):
        env = workspace.site.env_for(begun.worker.name)
        look = where_to_look(begun.worker.agent, begun.worker.config, env)
        reason = "; ".join(filter(None, (response.reason, look)))
        response = msgspec.structs.replace(response, reason=reason)
    return msgspec.structs.replace(finished, response=response)


async def start_here(run: Run, workspace: Workspace, order: AgentOrder) -> Result:
    """One process of the agent on this machine, watched and written down."""
    name = order.agent.name
    agent = next(worker.agent for worker in run.setup.workers if worker.name == name)
    budget = StartBudget(usd=order.budget_usd, tokens=order.budget_tokens, is_share=order.is_share)
    rules = Rules(
        wall_s=order.wall_s,
        stall_s=order.stall_s,
        is_too_much=start_ceiling(run, budget),
        ceiling=ceiling_kind(run, is_share=order.is_share),
        prices=run.config.prices.models,
    )
    if order.until_run_ends:
        rules = dataclasses.replace(rules, is_over=_time_is_up(run, workspace))

    def started(pid: int, since: float) -> None:
        run.journal.set_agent_pid(order.run, order.number, pid=pid, pid_started=since)

    return await start_in(
        workspace.site,
        agent,
        msgspec.structs.replace(order, budget_usd=money_of_start(run, order)),
        rules=rules,
        stop=run.stop,
        on_event=lambda event: run.emit(event, order.number),
        on_start=started,
    )


async def start_in(
    site: Site,
    agent: Agent,
    order: AgentOrder,
    *,
    rules: Rules,
    stop: StopSignal,
    on_event: Callable[[AgentStep], None],
    on_start: Callable[[int, float], None],
) -> Result:
    """One process of the agent in a place of this machine, whoever gave the order."""
    name = order.agent.name
    repo = site.repo
    request = AgentRequest(
        config=order.agent,
        settings_dir=site.project.directory / "agent",
        prompt=order.prompt,
        cwd=site.project.root,
        run_id=order.run,
        iteration=order.number,
        inherited=site.env_for(name),
        box=site.agent_boxes.get(name),
        story_id=order.story,
        session_id=order.session_id,
        resume=order.resume,
        budget_usd=order.budget_usd,
        max_turns=order.max_turns,
        tools=order.tools,
    )
    with Transcript(site.project.transcripts / order.run / order.log) as sink:
        return await run_process(
            agent.launch(request),
            sink=sink,
            rules=rules,
            stop=stop,
            on_event=on_event,
            on_start=on_start,
            file_probe=(lambda: _fingerprint(repo)) if repo else None,
        )


def money_of_start(run: Run, order: AgentOrder) -> float | None:
    """Dollars for the agent's own cap: the smaller of what is left and what one start may use."""
    left = order.budget_usd
    most = run.config.limits.max_start_cost_usd
    if not most:
        return left
    return most if left is None else min(left, most)


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
    if not (response.usage.total_tokens or response.session_id):
        return response
    from ralphloop.agents.prices import billed

    prices = run.config.prices.models
    return billed(response, begun.worker.config, run.setup.options.env, prices)


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


async def _ask_for_status(
    run: Run, workspace: Workspace, begun: Round, order: AgentOrder, result: Result
) -> Result:
    """The same, with what came when its missing block was asked for."""
    _write_end(run, workspace, begun, result, asking=True)
    now = run.clock()
    run.journal.count_asking(now=now, since=now - HOUR)
    run.emit(StatusAsked(), begun.number)
    left = _money_for_start(run, workspace)
    if left is not None:
        left = max(0.0, left - accounted(begun.state.conversation, result.response).own.dollars)
    question = msgspec.structs.replace(
        order,
        prompt=ASK_FOR_STATUS,
        log=_asking_log(begun).name,
        session_id=None,
        resume=result.response.session_id,
        budget_usd=left,
        is_share=False,
        max_turns=1,
        tools=False,
        wall_s=_ASKING_S,
        stall_s=0.0,
        until_run_ends=False,
    )
    try:
        again = await _run_order(run, workspace, begun, question)
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


class RecoveredIteration(Value, kw_only=True):
    """What became of an iteration that was cut off."""

    words: str
    judged: Judgement | None = None  # it is still to be finished; None: it is written down


def stop_agent_of(cut: IterationRecord) -> tuple[str, ...]:
    """End what is left of the agent of an iteration that was cut off; what that was, by name."""
    return stop_tree(cut.pid, cut.pid_started, mark_of(cut.run, cut.n))


async def recover_iteration(
    run: Run, workspace: Workspace, cut: IterationRecord, stopped: tuple[str, ...]
) -> RecoveredIteration:
    """One iteration that another process began, to the end it can have; `stopped` was at work."""
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
            return RecoveredIteration(words=f"the checks of iteration {cut.n} are still to be run")
        words = f"judged iteration {cut.n}, whose agent had ended before its checks did"
        return RecoveredIteration(words=words, judged=judged)
    taken_up = await workspace.take_up(run, cut.n)
    if taken_up is not None:
        taken_up = _told(run, workspace, begun, taken_up)
        _write_end(run, workspace, begun, taken_up)
        judged = await judge(run, workspace, begun, taken_up)
        if judged.cut_short:
            return RecoveredIteration(words=f"the checks of iteration {cut.n} are still to be run")
        words = f"took up iteration {cut.n}, which was given away"
        return RecoveredIteration(words=words, judged=judged)
    result = _result_of_cut(run, begun, cut, stopped)
    judged = record(run, await judge(run, workspace, begun, result))
    await steadily(run, partial(apply_effects, run, workspace, cut.n, judged.step.effects))
    still = f", stopped {len(stopped)} of its processes" if stopped else ""
    return RecoveredIteration(words=f"recorded iteration {cut.n} as interrupted{still}")


def _result_of_cut(
    run: Run, begun: Round, cut: IterationRecord, stopped: tuple[str, ...]
) -> Result:
    """An agent that was still at work when its supervisor ended, with what it had used by then."""
    reader = reader_name(begun.worker.name, begun.worker.config.format)
    response = _read_transcript(run, begun, begun.transcript, reader)
    heard = _heard_elsewhere(run, cut)
    if heard.has_answered:
        used = msgspec.structs.replace(response, usage=heard.usage, model_output=True)
        response = with_price(run, begun, used)
    if heard.machine:
        run.tell(f"warning: nobody waits any more for iteration {cut.n} on {heard.machine}.")
    return Result(
        end=ProcessEnd(exit_code=None, interrupted=True),
        response=response,
        stopped_because="the supervisor ended before the agent did",
        leftovers=stopped,
        machine=heard.machine,
        account=heard.account,
    )


def _heard_elsewhere(run: Run, cut: IterationRecord) -> HeardOfStart:
    """What is known of a start that a run with a fleet gave away; this one has none to ask."""
    given = run.journal.meta(GIVEN_KEY.format(f"{cut.run}/{cut.n}"))
    return HeardOfStart() if given is None else readable(given, HeardOfStart)


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
