"""Asking something of a run that goes on.

A wish is a row in the journal that the loop reads and answers.  Whoever asks waits a moment for the
answer and goes: the wish stays.
"""

import os
import time

import click
from click.shell_completion import CompletionItem
from msgspec.structs import replace

from ralphloop.cli.shared.options import number
from ralphloop.core.run_state import LaneNote
from ralphloop.errors import NothingRan, RalphError, UsageError
from ralphloop.journal.journal import Journal
from ralphloop.journal.records import Wish
from ralphloop.loop.offline_requests import ask_offline
from ralphloop.night.look import holder_of, look, reading
from ralphloop.proc.process_table import started_at
from ralphloop.proc.tree import is_inside
from ralphloop.project import Project, find_project
from ralphloop.room import ensure_private_dir

_PATIENCE_S = 5.0
_STEP_S = 0.1
_BETWEEN = frozenset({"answer", "note", "budget", "skip", "retry"})
_VERBS = {"answer": "take your answer", "note": "take a note", "budget": "raise its budget"}


def _complete_lane(
    _ctx: click.Context, _param: click.Parameter, typed: str
) -> list[CompletionItem]:
    try:
        book = look(find_project()).book
    except RalphError:
        return []
    held = {str(n): note.story for n, note in book.lanes.items()} if book else {}
    return [CompletionItem(n, help=held[n]) for n in held if held[n] and n.startswith(typed)]


lane_option = click.option(
    "--lane",
    type=number,
    shell_complete=_complete_lane,
    help="The story that this lane holds (`ralph lanes`).",
)


def story_of_lane(lane: int) -> str:
    book = look(find_project()).book
    if book is None or not (story := book.lanes.get(lane, LaneNote()).story):
        raise UsageError(f"lane {lane} holds no story", "`ralph lanes` shows what each one does.")
    return story


def as_listed(project: Project, story: str) -> str:
    """The id as it stands in the list, whatever case it was typed in; unknown ones as they are."""
    if not story:
        return story
    known = [it.story.id for it in look(project).stories]
    alike = [name for name in known if name.casefold() == story.casefold()]
    return alike[0] if story not in known and len(alike) == 1 else story


def send_request(project: Project, kind: str, wish: Wish) -> str:
    """Ask, wait a moment for the answer, and return what there is to say."""
    wish = replace(wish, story=as_listed(project, wish.story))
    holder = holder_of(project, time.time())
    if holder is None and kind in _BETWEEN and not (kind == "note" and wish.story):
        answered = ask_offline(project, kind, wish)
        return f"{answered[0].upper()}{answered[1:]}."
    if holder is None:
        if not project.journal.exists():
            raise NothingRan
        raise UsageError("no run is going on here", "`ralph run --continue` goes on with one.")
    request = write_request(project, holder.run, kind, wish)
    if request is None:
        raise UsageError(f"run {holder.run} is still getting ready", "Try again in a moment.")
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        with reading(project) as journal:
            found = journal.find_request(request)
        if found is not None and found.status != "pending":
            break
        if time.monotonic() >= deadline:
            verb = _VERBS.get(kind, kind)
            return f"run {holder.run} was asked to {verb}; it answers when this iteration ends"
        time.sleep(_STEP_S)
    if found.status == "void":
        return f"run {holder.run} ended before it could answer"
    if found.status == "refused":
        raise UsageError(found.answer, "`ralph status` and `ralph stories` show how it stands.")
    return f"run {holder.run}: {found.answer}"


def write_request(project: Project, run: str, kind: str, wish: Wish) -> int | None:
    """The number under which the answer will be found; None where the run reads no wishes."""
    if not project.journal.exists():
        return None
    refuse_agent(project, kind)
    ensure_private_dir(project.directory)
    signed = replace(wish, by=who_asks())
    with Journal.open(project.journal, check=False) as journal:
        return journal.add_request(run, kind=kind, payload=signed, now=time.time())


def who_asks() -> tuple[int, float]:
    """The run obeys no row without it, nor one of a process below its agent."""
    return os.getpid(), started_at(os.getpid()) or 0.0


def refuse_agent(project: Project, kind: str) -> None:
    """An agent that wishes something of its own run is refused, and the run says that it tried."""
    holder = holder_of(project, time.time())
    if holder is None or holder.is_lease:
        return  # in a session person and agent use the same terminal
    is_here = holder.host == os.uname().nodename
    if not is_inside(holder.run, holder.pid if is_here else 0):
        return
    with Journal.open(project.journal, check=False) as journal:
        journal.add_request(holder.run, kind=kind, now=time.time())
    raise UsageError(
        "an agent does not steer its own run; the person who runs it will read that it was tried",
        "End your turn and say what you need in RECOMMENDATION.",
    )
