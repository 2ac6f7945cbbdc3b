"""What a person asks of the running loop: one row in the journal each, answered there."""

import os
from collections.abc import Iterable

from msgspec.structs import replace

from ralphloop.errors import UsageError
from ralphloop.journal.journal import Journal
from ralphloop.journal.lock import live_holder
from ralphloop.journal.records import Request, RequestStatus, Wish
from ralphloop.night.look import reading
from ralphloop.proc.process_table import started_at
from ralphloop.proc.tree import is_inside
from ralphloop.project import Project
from ralphloop.room import claim
from ralphloop.text.durations import parse_duration


def ask(project: Project, run: str, kind: str, wish: Wish, now: float) -> int | None:
    """The number under which the answer will be found; None where the run reads no wishes."""
    if not project.journal.exists():
        return None
    refuse_agent(project, kind, now)
    claim(project.directory)
    signed = replace(wish, by=who_asks())
    with Journal.open(project.journal, check=False) as journal:
        return journal.add_request(run, kind=kind, payload=signed, now=now)


def who_asks() -> tuple[int, float]:
    """The run obeys no row without it, nor one of a process below its agent."""
    return os.getpid(), started_at(os.getpid()) or 0.0


def refuse_agent(project: Project, kind: str, now: float) -> None:
    """An agent that wishes something of its own run is refused, and the run says that it tried."""
    holder = live_holder(project.directory, now)
    if holder is None or holder.is_lease:
        return  # in a session person and agent use the same terminal
    is_here = holder.host == os.uname().nodename
    if not is_inside(holder.run, holder.pid if is_here else 0):
        return
    with Journal.open(project.journal, check=False) as journal:
        journal.add_request(holder.run, kind=kind, now=now)
    raise UsageError(
        "an agent does not steer its own run; the person who runs it will read that it was tried",
        "End your turn and say what you need in RECOMMENDATION.",
    )


def settled(project: Project, numbers: Iterable[int]) -> list[Request]:
    """Those of the requests that are no longer pending."""
    with reading(project) as journal:
        found = [journal.find_request(number) for number in numbers]
    return [one for one in found if one and one.status is not RequestStatus.PENDING]


def budget_flag(text: str) -> str:
    """`$2.50` or `5` dollars, `2h` of time, `9000 tokens`; ValueError says what is wrong."""
    words = text.strip().removeprefix("+").strip()
    if words.endswith("tokens") and (tokens := int(words.removesuffix("tokens"))) > 0:
        return f"--tokens={tokens}"
    try:
        dollars = float(words.removeprefix("$"))
    except ValueError:
        if (seconds := parse_duration(words)) <= 0:
            raise ValueError("nothing to add") from None
        return f"--time={seconds:.0f}s"
    if not 0 < dollars < 1e6:
        raise ValueError("an amount above zero is needed")
    return f"--cost={dollars}"
