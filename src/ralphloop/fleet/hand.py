"""The hand: one process on a worker that works off one order.

It fetches the order, makes a work tree ready, runs the agent and the lane's checks in there as a
run on this machine would (its person's settings, trust, sandbox and keys), and sends the report.
It keeps no journal and decides nothing: what it says is a claim, judged where the order came from.

It is on a leash: where its supervisor is silent for longer than the lease, or the pipe to it ends,
the agent is stopped before anything else.
"""

import asyncio
import os
import re
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from functools import partial
from pathlib import Path

import msgspec

from ralphloop import __version__
from ralphloop.agents.meter import Reading
from ralphloop.agents.process import Rules
from ralphloop.agents.transcript import stderr_path
from ralphloop.config.load import LoadedConfig, load_config
from ralphloop.config.strictness import is_looser
from ralphloop.core.accounts import Party, account_in
from ralphloop.core.analyzer import hear
from ralphloop.core.events import AgentStep
from ralphloop.core.iteration import Result
from ralphloop.core.model import CheckResult, Evidence, Outcome, Usage
from ralphloop.errors import RalphError
from ralphloop.fleet.leash import Leash, clock
from ralphloop.fleet.machine import (
    AccountWaits,
    IsOver,
    Machine,
    OrderRefused,
    Slot,
    taken_slot,
)
from ralphloop.fleet.parcels import Parcel, RemoteAway, SharedRemote, files_of, lay, pack, unpack
from ralphloop.fleet.values import (
    MOST_WORDS,
    Beat,
    FarStep,
    Ticket,
    Word,
    WorkOrder,
    WorkReport,
    refs_of,
)
from ralphloop.lanes import worktrees
from ralphloop.lanes.worktrees import LaneTree
from ralphloop.loop.agent import start_in
from ralphloop.loop.confine import confine
from ralphloop.loop.prepare import Options, Setup, Worker, assemble
from ralphloop.proc.threads import StopSignal, in_thread
from ralphloop.project import LANE_VARIABLE, Project
from ralphloop.repo.checks import check_of, run_checks, verify_of
from ralphloop.repo.preflight import no_room
from ralphloop.repo.work_tree import never_committed
from ralphloop.room import read_regular
from ralphloop.text.durations import clock_time
from ralphloop.trust import grants_of

ORDER = "order.json"
PROMPT = "prompt"
REPORT = "report.json"
TRANSCRIPT = "transcript"
ERRORS = "errors"
_BEAT_S = 2.0
_AGAIN_S = 3.0
_LOOK_S = 0.25
_REMOTE_S = 900.0  # so long a remote that is away is waited for
_LAST_S = 20.0  # and so long where nobody waits for the report
_MOST_STEPS = 3
_LONGEST_STEP = 120
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,79}/[0-9]{1,9}(\.status)?")
_NOBODY = "nobody is there any more"

Speak = Callable[[Beat], None]


def speak_on_stdout(beat: Beat) -> None:
    """One line for whoever holds the other end; where nobody does, the leash says so."""
    with suppress(OSError):
        sys.stdout.buffer.write(msgspec.json.encode(beat) + b"\n")
        sys.stdout.buffer.flush()


class Hand:
    def __init__(
        self, machine: Machine, ticket: Ticket, speak: Speak, env: Mapping[str, str]
    ) -> None:
        self._machine = machine
        self._ticket = ticket
        self._speak = speak
        self._env = env
        self._stop = StopSignal()
        self._leash = Leash(ticket.lease_s)
        self._account = account_in(machine.accounts, ticket.agent)
        self._beat = Beat(machine=machine.name, account=self._account)
        self._steps: list[FarStep] = []
        self._step_count = 0

    async def work_off(self, words: "asyncio.StreamReader") -> None:
        """Work off the order, and say how that ended with the last beat."""
        around = [
            asyncio.create_task(self._listen(words)),
            asyncio.create_task(self._hold_leash()),
            asyncio.create_task(self._beat_on()),
        ]
        try:
            report = await self._work()
            self._say(phase="sending", report=report)
        except OrderRefused as refusal:
            self._say(refused=_in_short(refusal), away_until=refusal.until)
        except (RalphError, OSError) as error:
            self._say(failed=_in_short(error))
        finally:
            for task in around:
                task.cancel()
            await asyncio.gather(*around, return_exceptions=True)

    def stop(self, reason: str) -> None:
        """Have it end what it does, as soon as that can be done well."""
        self._stop.request(reason)

    async def _listen(self, words: "asyncio.StreamReader") -> None:
        """Take words from the supervisor; the end of the pipe is its last one."""
        while line := await words.readline():
            self._leash.hear()
            word = msgspec.json.decode(line, type=Word)
            if word.stop:
                self._stop.request(word.stop)
        self._stop.request(_NOBODY)

    async def _hold_leash(self) -> None:
        while True:
            await asyncio.sleep(_LOOK_S)
            if self._leash.is_cut:
                self._stop.request(_NOBODY)
                self._stop.request(_NOBODY)  # at once: somebody else may have its story by now
                return

    async def _beat_on(self) -> None:
        while True:
            self._say()
            await asyncio.sleep(_BEAT_S)

    def _say(self, **changes: object) -> None:
        self._beat = msgspec.structs.replace(self._beat, **changes)
        self._speak(self._beat)

    async def _work(self) -> str:
        """The commit of the report, sent."""
        ticket = self._ticket
        self._insist_on_ticket()
        with ExitStack() as held:
            slot = await in_thread(lambda gone: held.enter_context(self._slot(gone)))
            if full := no_room(slot.directory):
                raise OrderRefused(f"{self._machine.name}: {full}")
            self._say(phase="fetching", slot=slot.number)
            parcel = await self._fetched(slot)
            order = _order_in(parcel)
            place = await in_thread(lambda _: _laid(slot, parcel))
            setup = self._setup_in(place, slot, order)
            worker = _worker_for(setup, order, self._machine)
            await self._make_ready(place, slot, setup)
            result = await self._run_agent(setup, worker, order)
            report = WorkReport(
                ticket=ticket.id,
                machine=self._machine.name,
                slot=slot.number,
                account=self._account,
                result=result,
            )
            report = await self._with_checks(report, setup, order)
            return await self._sent(slot, place, setup, order, report)

    def _slot(self, gone: IsOver) -> AbstractContextManager[Slot]:
        """The slot of this order, to be taken beside the beats: a first clone takes long."""
        ticket = self._ticket
        return taken_slot(
            self._machine,
            ticket.repository,
            ticket.slot,
            ticket.mark,
            lambda: self._stop.requested or gone(),
        )

    def _insist_on_ticket(self) -> None:
        ticket = self._ticket
        name = self._machine.name
        if not _ID.fullmatch(ticket.id):  # it becomes part of the names of refs
            raise OrderRefused(f"{ticket.id[:80]!r} is no id of an order")
        if ticket.version != __version__:
            raise OrderRefused(
                f"{name} has ralph {__version__}, and the order is of {ticket.version}:"
                " upgrade the one that is behind"
            )
        if lacking := set(ticket.labels) - set(self._machine.labels):
            raise OrderRefused(f"{name} does not have {', '.join(sorted(lacking))}")
        now = time.time()
        if (until := ticket.away.get(self._account, 0.0)) > now:
            whose = Party(ticket.agent, self._account).name
            words = f"{name}: {whose} waits until {clock_time(until, now)}"
            raise AccountWaits(words, until)

    async def _fetched(self, slot: Slot) -> Parcel:
        """The order, waited for where the remote is away for a while."""
        ref = refs_of(self._ticket.id)[0]
        remote = SharedRemote(slot.clone, slot.address).until(lambda: self._stop.requested)
        commit = await self._patiently(lambda: remote.fetch(ref), _REMOTE_S)
        if commit != self._ticket.order:
            raise OrderRefused(f"{ref} is not the order that was given ({self._ticket.order[:12]})")
        return await in_thread(lambda _: unpack(slot.clone, commit))

    async def _patiently(self, ask: Callable[[], str], most_s: float) -> str:
        """What the remote answers, once it does."""
        began = clock()
        while True:
            try:
                return await in_thread(lambda _: ask())
            except RemoteAway as away:
                left = most_s if not self._leash.is_cut else _LAST_S
                if clock() - began > left:
                    raise
                self._say(phase=self._beat.phase)
                error = away
            await asyncio.sleep(_AGAIN_S)
            if self._stop.requested and self._beat.phase == "fetching":
                raise error

    def _setup_in(self, place: LaneTree, slot: Slot, order: WorkOrder) -> Setup:
        """What the settings of the work tree, and of this machine's person, say; with their yes."""
        root = place.root / order.project
        project = Project(root, slot.own)
        slot.own.mkdir(parents=True, exist_ok=True)
        env = {**self._env, LANE_VARIABLE: str(order.lane)}
        loaded = _settings_in(root, env, order)
        options = Options(start=root, env=env, trust=self._machine.trust)
        setup = assemble(options, project, loaded.config, None, place.repo)
        setup = msgspec.structs.replace(setup, grants=grants_of(loaded, root))
        if lacking := setup.lacking():
            names = ", ".join(dict.fromkeys(grant.name for grant in lacking))
            raise OrderRefused(
                f"nobody on {self._machine.name} said yes to the settings of {slot.directory.name}"
                f" ({names}): look at them there, cd {root} && ralph trust"
            )
        return confine(setup)

    async def _make_ready(self, place: LaneTree, slot: Slot, setup: Setup) -> None:
        self._say(phase="making ready")
        box = setup.site.check_box
        made = partial(
            worktrees.make_ready,
            place,
            slot.clone,
            slot.clone.root / setup.project.root.relative_to(place.root),
            setup.config,
        )
        why = await in_thread(lambda gone: made(lambda: self._stop.requested or gone(), box))
        if why:
            raise OrderRefused(f"the work tree on {self._machine.name} is not ready: {why}")

    async def _run_agent(self, setup: Setup, worker: Worker, order: WorkOrder) -> Result:
        self._say(phase="agent")
        limits = order.limits
        ends_at = None if order.time_left_s is None else clock() + order.time_left_s

        def met(reading: Reading) -> str:
            self._note_usage(reading.used)
            return limits.met_by(reading)

        def is_over() -> str:
            return order.time_words if ends_at is not None and clock() >= ends_at else ""

        rules = Rules(
            wall_s=order.start.wall_s,
            stall_s=order.start.stall_s,
            is_too_much=met,
            ceiling=order.ceiling,
            prices={**setup.config.prices.models, **order.prices},
            is_over=is_over,
        )
        start = msgspec.structs.replace(order.start, agent=worker.config)
        result = await start_in(
            setup.site,
            worker.agent,
            start,
            rules=rules,
            stop=self._stop,
            on_event=self._note_step,
            on_start=lambda _pid, _since: None,
        )
        self._note_usage(result.response.usage)
        self._say(has_answered=result.response.model_output)
        if result.response.outcome is Outcome.STARTUP_ERROR and not result.response.model_output:
            raise OrderRefused(f"{self._machine.name}: {result.response.reason}")
        return result

    def _note_usage(self, used: Usage) -> None:
        beat = self._beat
        if used.dollars > beat.usd or used.fresh_tokens > beat.tokens:
            self._beat = msgspec.structs.replace(
                beat, usd=used.dollars, tokens=used.fresh_tokens, has_answered=True
            )

    def _note_step(self, step: AgentStep) -> None:
        self._step_count += 1
        summary = step.summary[:_LONGEST_STEP]
        self._steps.append(FarStep(number=self._step_count, kind=step.kind, summary=summary))
        self._steps = self._steps[-_MOST_STEPS:]
        self._beat = msgspec.structs.replace(
            self._beat, steps=tuple(self._steps), has_answered=True
        )

    async def _with_checks(self, report: WorkReport, setup: Setup, order: WorkOrder) -> WorkReport:
        """The same with the lane's checks, where the agent says that it is done."""
        says_done = hear(report.result, Evidence()).claims_done
        if not says_done or self._stop.requested or not order.start.tools:
            return report
        self._say(phase="checks")
        known = set(setup.config.checks.commands)
        if not known.issuperset(order.checks):
            return report  # other commands than this machine's person has said yes to
        results = await self._checked(setup, order, order.checks)
        if len(results) < len(order.checks):
            return report
        verified = None
        if order.verify and setup.may_verify(order.verify):
            check = verify_of(
                order.verify, order.check_timeout_s, setup.site.check_box, lane=order.lane
            )
            found = await in_thread(
                lambda gone: run_checks(
                    [check],
                    setup.project.root,
                    stop=lambda: self._stop.requested or gone(),
                )
            )
            verified = found[0] if found else None
        return msgspec.structs.replace(report, checks=results, verify=verified)

    async def _checked(
        self, setup: Setup, order: WorkOrder, commands: Sequence[Sequence[str]]
    ) -> tuple[CheckResult, ...]:
        box = setup.site.check_box
        wanted = [check_of(argv, order.check_timeout_s, box, lane=order.lane) for argv in commands]
        root = setup.project.root
        return await in_thread(
            lambda gone: run_checks(wanted, root, stop=lambda: self._stop.requested or gone())
        )

    async def _sent(
        self, slot: Slot, place: LaneTree, setup: Setup, order: WorkOrder, report: WorkReport
    ) -> str:
        """The commit of the report, once the remote has it."""
        self._say(phase="sending")
        log = setup.project.transcripts / order.start.run / order.start.log
        content = {REPORT: msgspec.json.encode(report)}
        for name, path in {TRANSCRIPT: log, ERRORS: stderr_path(log)}.items():
            with suppress(OSError):
                content[name] = read_regular(path)
        leave = never_committed(order.project, litter=setup.site.litter).patterns
        words = f"{self._ticket.id}: files of {self._machine.name}"

        def packed() -> str:
            files = files_of(setup.repo or place.repo, leave, words)
            return pack(slot.clone, content, f"{self._ticket.id}: report", files)

        commit = await in_thread(lambda _: packed())
        ref = refs_of(self._ticket.id)[1]
        began = clock()
        remote = SharedRemote(slot.clone, slot.address).until(
            lambda: self._leash.is_cut and clock() - began > _LAST_S
        )

        def send() -> str:
            remote.send(commit, ref)
            return commit

        sent = await self._patiently(send, _REMOTE_S)
        for path in (log, stderr_path(log)):
            path.unlink(missing_ok=True)
        for own in refs_of(self._ticket.id):
            worktrees.without_hooks(slot.clone).attempt("update-ref", "-d", own)
        return sent


def _in_short(error: Exception) -> str:
    step = getattr(error, "next_step", "")
    words = f"{error}; {step}" if step else str(error)
    return words[:MOST_WORDS]


def _order_in(parcel: Parcel) -> WorkOrder:
    try:
        order = msgspec.json.decode(parcel.content.get(ORDER, b""), type=WorkOrder)
    except msgspec.DecodeError as error:
        raise OrderRefused(f"the order cannot be read: {error}") from None
    inside = os.path.normpath(order.project or ".")
    names = (order.start.log, order.start.run)
    if inside.startswith(("/", "..")) or any(Path(name).name != name for name in names):
        raise OrderRefused("the order names a place outside of its work tree")
    prompt = parcel.content.get(PROMPT, b"").decode("utf-8", "replace")
    return msgspec.structs.replace(order, start=msgspec.structs.replace(order.start, prompt=prompt))


def _laid(slot: Slot, parcel: Parcel) -> LaneTree:
    """The work tree of a slot with the files of the order."""
    clone = slot.clone
    place = worktrees.open_tree(clone, clone.root, slot.trees, slot.number, parcel.head)
    lay(place, parcel)
    return place


def _settings_in(root: Path, env: Mapping[str, str], order: WorkOrder) -> LoadedConfig:
    """The settings of the work tree, with those of the order that run nothing or forbid more."""
    loaded = load_config(root, env=env, flags=order.settings)
    flags = dict[str, object](order.settings)
    for name, wanted in order.strictness.items():
        section, _, key = name.partition(".")
        holds = getattr(getattr(loaded.config, section), key)
        if holds != wanted and not is_looser(name, holds, wanted):
            flags[name] = wanted
    return load_config(root, env=env, flags=flags)


def _worker_for(setup: Setup, order: WorkOrder, machine: Machine) -> Worker:
    name = order.start.agent.name
    worker = next((it for it in setup.workers if it.name == name), None)
    if worker is None:
        raise OrderRefused(f"{machine.name} has no agent {name!r} in its settings")
    config = msgspec.structs.replace(worker.config, model=order.start.agent.model)
    return msgspec.structs.replace(worker, config=config)


async def work_off_stdin(machine: Machine, env: Mapping[str, str]) -> int:
    """Be the hand of one order, whose ticket is the first line of standard input."""
    import signal

    loop = asyncio.get_running_loop()
    words = asyncio.StreamReader()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(words), sys.stdin)
    line = await words.readline()
    if not line.strip():
        return 0
    hand = Hand(machine, msgspec.json.decode(line, type=Ticket), speak_on_stdout, env)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
        loop.add_signal_handler(number, hand.stop, f"stopped by {signal.Signals(number).name}")
    await hand.work_off(words)
    return 0
