"""A run in lanes whose agents work on other machines."""

import asyncio
import gc
import re
from collections.abc import Iterable
from contextlib import suppress
from functools import partial

import msgspec

from ralphloop import __version__
from ralphloop.config.model import FleetSection
from ralphloop.core.accounts import AgentPlaces
from ralphloop.core.model import ExitDecision
from ralphloop.errors import RalphError, UsageError
from ralphloop.fleet.carrier import Carrier, Seat
from ralphloop.fleet.far_lane import FarLane, Fleet
from ralphloop.fleet.parcels import SharedRemote
from ralphloop.fleet.ssh import PREFIX, SshCarrier, hosts_in
from ralphloop.journal.queries import JournalReader
from ralphloop.lanes.pool import repository_of
from ralphloop.lanes.run_in_lanes import run_in_lanes
from ralphloop.loop.open import EndedRun
from ralphloop.loop.prepare import Setup
from ralphloop.loop.run import Asks, Sink, Tell, nobody_says_yes
from ralphloop.proc.threads import StopSignal, in_thread
from ralphloop.project import Project
from ralphloop.repo.work_tree import Repository
from ralphloop.text.plain import counted, some

_LOOKS = 15
_LOOK_S = 1.0
_LOOK_AGAIN_S = 30.0
_OURS = re.compile(r"refs/ralph/(orders|reports)/(?P<start>(?P<run>[^/]+)/[0-9]+)(\.status)?")
_LAST_PART = re.compile(r"([A-Za-z0-9._-]+?)(?:\.git)?/*$")


async def open_carrier(
    server: str, section: FleetSection, setup: Setup, repository: str, tell: Tell
) -> Carrier:
    """Who carries orders to the machines behind that address."""
    if server.startswith(PREFIX):
        env = setup.options.env
        return SshCarrier(hosts_in(server), section.ssh, section.program, env, tell)
    from ralphloop.fleet.temporal import TemporalCarrier, connect

    client = await connect(server, section, setup.options.env)
    return TemporalCarrier(client, repository, tell)


def remote_of(repo: Repository, section: FleetSection) -> SharedRemote:
    """The remote that all machines share."""
    address = repo.git.line("remote", "get-url", section.remote, ok=(0, 2, 128))
    if not address:
        raise UsageError(
            f"machines exchange their work by a git remote, and none is named {section.remote!r}",
            "git remote add origin URL, which every machine can reach; or set remote under [fleet]",
        )
    return SharedRemote(repo, section.remote)


def repository_name(repo: Repository, section: FleetSection) -> str:
    """What workers call this repository: as is set, else the last part of the remote's address."""
    if section.repository:
        return section.repository
    address = repo.git.line("remote", "get-url", section.remote, ok=(0, 2, 128))
    found = _LAST_PART.search(address)
    return found[1] if found else "repository"


async def run_in_fleet(
    setup: Setup,
    server: str,
    *,
    stop: StopSignal,
    sink: Sink,
    tell: Tell,
    asks: Asks = nobody_says_yes,
) -> EndedRun:
    """A whole run whose starts are made by other machines; everything else is done here."""
    section = setup.config.fleet
    repo = repository_of(setup)
    remote = remote_of(repo, section)
    if setup.config.agent.context == "resume":
        raise UsageError(
            "a conversation stays on its machine, and a fleet has many",
            'Set context = "fresh" under [agent].',
        )
    repository = repository_name(repo, section)
    carrier = await open_carrier(server, section, setup, repository, tell)
    try:
        found = await _seats(carrier, stop)
        same = [seat for seat in found if seat.version in ("", __version__)]
        others = [f"{seat.name} has ralph {seat.version}" for seat in found if seat not in same]
        if others:
            tell(
                f"warning: {some(others)}, and this is {__version__}: they will refuse its orders."
            )
        seats = [seat for seat in same if not seat.apart]
        apart = [seat.apart for seat in same if seat.apart]
        if apart:
            tell(f"warning: {'; '.join(apart)}: no order of this run can be read there.")
        slots = sum(seat.slots for seat in seats)
        if apart and not slots:
            raise UsageError(
                f"no worker at {server} has the same key as this run",
                "Name the same keys here and there: codec_key_file under [fleet]",
            )
        if not slots and not setup.config.lanes.count:
            raise UsageError(
                f"no worker of this version answers at {server} for the repository {repository!r}",
                f"On a machine: ralph fleet worker --server {server} --repo {repository}=URL",
            )
        names = some([seat.name for seat in seats])
        where = names or "no machine yet"
        tell(f"{counted(slots, 'slot')} on {where}; work goes there and back by {remote.address}.")
        count = setup.config.lanes.count or slots
        lanes = msgspec.structs.replace(setup.config.lanes, count=count)
        known = msgspec.structs.replace(section, server=server)
        config = msgspec.structs.replace(setup.config, lanes=lanes, fleet=known)
        places = dict[str, AgentPlaces]()
        _note_places(places, seats)
        setup = msgspec.structs.replace(setup, config=config, places=places)
        fleet = Fleet(carrier, remote, repository, server, places)
        make_lane = partial(FarLane, fleet=fleet)
        # What is loaded by now stays: else deciding waits for all of it to be looked through.
        gc.collect()
        gc.freeze()
        looking = asyncio.create_task(_keep_looking(carrier, places))
        try:
            ended = await run_in_lanes(
                setup, stop=stop, sink=sink, tell=tell, asks=asks, make_lane=make_lane
            )
        finally:
            looking.cancel()
            await asyncio.gather(looking, return_exceptions=True)
        if ended.told.decision is not ExitDecision.INTERRUPTED:
            quick = remote.until(lambda: stop.requested)
            await in_thread(lambda _: forget_what_is_over(quick, setup.project))
        return ended
    finally:
        await carrier.close()


async def _seats(carrier: Carrier, stop: StopSignal) -> list[Seat]:
    """Who could work; a worker that has just been started takes a moment to be seen."""
    for _ in range(_LOOKS):
        seats = await carrier.seats()
        if seats or stop.requested:
            return seats
        await asyncio.sleep(_LOOK_S)
    return []


async def _keep_looking(carrier: Carrier, places: dict[str, AgentPlaces]) -> None:
    """See machines that come later: they may have an account that need not wait."""
    while True:
        await asyncio.sleep(_LOOK_AGAIN_S)
        with suppress(RalphError, OSError):
            seats = await carrier.seats()
            _note_places(places, [it for it in seats if it.version == __version__ and not it.apart])


def _note_places(places: dict[str, AgentPlaces], seats: Iterable[Seat]) -> None:
    """Keep what machines say of their accounts; by ssh they say it with their first word."""
    for seat in seats:
        if seat.version:
            places[seat.name] = AgentPlaces(slots=seat.slots, accounts=seat.accounts)


def forget_what_is_over(remote: SharedRemote, project: Project) -> None:
    """Take what nobody asks for any more from the remote, if that answers.

    That are orders and reports of this project's runs, but for starts that are still to be taken
    up; with those of other checkouts their own runs do the same.
    """
    with suppress(RalphError), JournalReader.open(project.journal) as journal:  # in nobody's way
        lying = [it for it in map(_OURS.fullmatch, remote.listed("refs/ralph/*")) if it]
        runs = {it["run"] for it in lying}
        known = {run for run in runs if journal.find_run(run) is not None}
        wanted = {f"{it.run}/{it.n}" for it in journal.unfinished_iterations()}
        over = [it[0] for it in lying if it["run"] in known and it["start"] not in wanted]
        if over:
            remote.forget(over)
