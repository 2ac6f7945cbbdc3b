"""What a person asks of the running loop: one row in the journal each, answered there."""

from __future__ import annotations

from collections.abc import Iterable

from ralphloop.core.durations import parse_duration
from ralphloop.journal.reader import JournalReader
from ralphloop.journal.records import Request, RequestStatus
from ralphloop.journal.store import Journal
from ralphloop.project import Project
from ralphloop.room import claim

Payload = dict[str, object]


def ask(project: Project, run: str, kind: str, payload: Payload, now: float) -> int | None:
    """The number under which the answer will be found; None where the run reads no wishes."""
    if not project.journal.exists():
        return None
    claim(project.directory)
    with Journal.open(project.journal, check=False) as journal:
        return journal.add_request(run, kind=kind, payload=payload, now=now)


def settled(project: Project, numbers: Iterable[int]) -> list[Request]:
    """Those of the requests that are no longer pending."""
    with JournalReader.open(project.journal) as journal:
        found = [journal.find_request(number) for number in numbers]
    return [one for one in found if one and one.status is not RequestStatus.PENDING]


def answer_words(request: Request) -> str:
    """What became of a request."""
    if request.status is RequestStatus.VOID:
        return f"{request.kind}: the run ended before it could answer"
    return f"{request.kind}: {request.answer}"


def budget_of(text: str) -> Payload:
    """`5` and `$2.50` are dollars, `2h` and `90m` are time; ValueError says what is wrong."""
    words = text.strip().removeprefix("+").strip()
    try:
        dollars = float(words.removeprefix("$"))
    except ValueError:
        if parse_duration(words) <= 0:
            raise ValueError("nothing to add") from None
        return {"time": words}
    if not 0 < dollars < 1e6:
        raise ValueError("an amount above zero is needed")
    return {"cost_usd": dollars}
