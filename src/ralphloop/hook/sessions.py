"""Sessions come and go: what that means for the loop one of them carries.

A session that ends gives the project back; `--continue` goes on, in any session or in script mode.
One that crashed cannot: its lease runs out, and the next session to start here puts the run away.
Nothing is deleted, it is only no longer going on.
"""

from __future__ import annotations

import time

import msgspec

from ralphloop.core.model import ExitDecision
from ralphloop.hook.answer import Answer, in_context
from ralphloop.hook.carried import Call, Turn, held, take_turn
from ralphloop.journal.holder import Holder
from ralphloop.journal.queries import SESSION_HOURS
from ralphloop.journal.records import RunStatus
from ralphloop.journal.store import Journal
from ralphloop.project import Project
from ralphloop.prompts import Prompt
from ralphloop.text.durations import format_duration, is_expired


def session_started(call: Call) -> Answer | None:
    """Remind a session of its loop, or put away the loop of one that is gone."""
    if call.holder.session == call.text("session_id"):
        return take_turn(call, _reminder)
    silence = format_duration(call.now - call.holder.renewed_at)
    release(call.project, call.holder, f"its session gave no sign of life for {silence}")
    return None


def session_ended(call: Call) -> Answer | None:
    """The session is over, and with it the loop for now."""
    release(call.project, call.holder, f"the session ended ({call.text('reason') or 'unknown'})")
    return None


def release(project: Project, holder: Holder, reason: str) -> bool:
    """Stop the run of a lease and give the project back; False where it was no longer going on.

    The iteration that was going on stays as it is: who continues the run finds it and records it.
    """
    with (
        held(project, holder.session, holder.run),
        Journal.open(project.journal, check=False) as journal,
    ):
        record, now = journal.find_run(holder.run), time.time()
        if record is None or record.status is not RunStatus.RUNNING:
            return False
        too_old = is_expired(record.last_activity, now, SESSION_HOURS)
        journal.end_run(
            record.id,
            now=now,
            status=RunStatus.EXPIRED if too_old else RunStatus.STOPPED,
            decision=str(ExitDecision.INTERRUPTED),
            reason=reason,
        )
    return True


def _reminder(_: Call, turn: Turn) -> Answer | None:
    """The prompt of the iteration that goes on: a summary of the conversation may have lost it."""
    cut = turn.under_way
    if cut is None:
        return None
    path = turn.runner.setup.project.root / cut.prompt_path
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    begun = msgspec.structs.replace(turn.begun(cut), prompt=Prompt(text=text))
    words = f"a loop goes on in this session; {turn.ledger.command(name='cancel-ralph')} ends it"
    return in_context("SessionStart", begun, words)
