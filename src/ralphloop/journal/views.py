"""The published views: files for people and other tools, derived from the journal.

They may be deleted at any time and are never believed: nothing in the loop reads them back.  So a
view that cannot be written is a sentence for the user, not an error.

An entry of `progress.txt` is found again by its header, which carries run and iteration, so writing
it a second time after a crash changes nothing; one that a power cut tore is completed.
"""

import re
from collections.abc import Iterable
from pathlib import Path

import msgspec

from ralphloop.atomic import append, write_atomic
from ralphloop.core.breaker import BreakerState
from ralphloop.core.iteration import AddProgress
from ralphloop.core.model import StoryList
from ralphloop.core.policy import Policy
from ralphloop.core.run_state import RunState, Standing
from ralphloop.errors import RalphError
from ralphloop.journal.records import IterationRecord, JsonValues, RunRecord, json_text
from ralphloop.room import open_regular
from ralphloop.text.durations import iso, stamp
from ralphloop.text.plain import one_line

SESSION_VIEW = ".ralph-session.json"
CIRCUIT_VIEW = ".ralph-circuit-state.json"
PROGRESS_VIEW = "progress.txt"

_ODD = 12  # characters of a word that may be a token
_LONGEST_TASK = 200
_LONGEST_SUMMARY = 300
_LONGEST_REASON = 500
_PROGRESS_TAIL_BYTES = 128 * 1024
_HEADER = re.compile(rb"## Iteration [0-9-]{1,20}")


def session_view(run: RunRecord, state: RunState, stories: StoryList | None) -> JsonValues:
    """`.ralph-session.json`: one run in numbers."""
    # Of this list: what earlier ones left is another feature's.
    left = [it.id for it in stories.stories if not it.passes] if stories else state.stories
    standings = [state.story(name).standing for name in left]
    return {
        "session_id": run.id,
        "start_time": _moment(run.started_at),
        "last_activity": _moment(run.last_activity),
        "iterations": run.totals.iterations,
        "stories_completed": stories.passed if stories else 0,
        "stories_failed": sum(it in (Standing.SET_ASIDE, Standing.BLOCKED) for it in standings),
        "circuit_state": str(state.breaker.circuit),
        "prd_path": run.prd_path,
        **_session_totals(run, state),
    }


def circuit_view(state: BreakerState, policy: Policy) -> JsonValues:
    """`.ralph-circuit-state.json`: the circuit and how it came to be so."""
    return {
        "state": str(state.circuit),
        "reason": _bounded(state.reason, _LONGEST_REASON),
        "since": _moment(state.since),
        "no_progress": state.no_progress,
        "same_error": state.same_error,
        "last_error": state.last_error and _bounded(state.last_error, _LONGEST_REASON),
        "thresholds": {
            "preset": str(policy.preset),
            "no_progress": policy.no_progress_threshold,
            "same_error": policy.same_error_threshold,
            "output_decline_percent": policy.output_decline_percent,
            "cooldown_minutes": policy.cooldown_minutes,
        },
        "opened_count": state.opened_count,
        "history": [
            {
                "at": _moment(change.at),
                "from": str(change.before),
                "to": str(change.after),
                "reason": _bounded(change.reason, _LONGEST_REASON),
                "iteration": change.iteration,
            }
            for change in state.history
        ],
    }


def iteration_list(
    run: RunRecord, state: RunState, iterations: Iterable[IterationRecord]
) -> JsonValues:
    """The session with its iterations one by one, for `ralph status --json`."""
    return {
        "session_id": run.id,
        "started_at": _moment(run.started_at),
        "iterations": [
            {
                "number": record.n,
                "timestamp": _moment(record.finished_at or record.started_at),
                "status": record.status or None,
                "tasks_completed": record.tasks_completed,
                "files_modified": record.files_modified,
                "exit_decision": record.decision or None,
                "outcome": record.outcome or None,
                "story": record.story,
                "machine": record.record.machine or None,
            }
            for record in iterations
        ],
        **_session_totals(run, state),
    }


def progress_text(run: str, n: int, entry: AddProgress) -> str:
    """One entry of `progress.txt`; whatever it speaks of stays on its own line."""
    return (
        f"## Iteration {stamp(entry.at)} ({_bounded(run)}/{n})\n"
        f"Task: {_plain(entry.task, _LONGEST_TASK)}\n"
        f"Outcome: {entry.outcome}\n"
        f"Summary: {_plain(entry.summary, _LONGEST_SUMMARY)}\n"
        "---\n"
    )


def _plain(text: str, longest: int) -> str:
    """Bounded, without secrets that a story's own text holds; most texts cannot hold any."""
    text = _bounded(text, longest)
    words = text.split()
    lowered = text.lower()
    is_odd = any(len(word) >= _ODD and any(map(str.isdigit, word)) for word in words)
    is_named = any(word in lowered for word in ("pass", "secret", "token", "key", "://"))
    if not (is_odd or is_named):
        return text
    from ralphloop.redaction import redact

    return redact(text)


def publish(path: Path, view: JsonValues, *, root: Path) -> str:
    """Write a JSON view in one step; returns why it could not be written, or nothing."""
    data = (msgspec.json.format(json_text(view), indent=2) + "\n").encode()
    try:
        # No sync: after a power cut the journal writes it anew.
        write_atomic(path, data, within=root, durable=False)
    except RalphError as error:
        return error.message
    return ""


def add_progress(path: Path, run: str, n: int, entry: AddProgress, *, root: Path) -> str:
    """Append the entry unless it is there; returns why it could not be written, or nothing.

    It survives a power cut once `atomic.sync_file` was called; until then it is owed.
    """
    try:
        text = progress_text(run, n, entry).encode()
        tail = progress_tail(path)
        if missing := _missing_part(text, tail):
            append(path, missing, within=root)
    except RalphError as error:
        return error.message
    except OSError as error:
        return f"cannot read {path}: {error.strerror or error}"
    return ""


def archive_progress(path: Path, tasks: Iterable[str], archive: Path, *, now: float) -> str:
    """Move it away where no entry is about these tasks, lest agents read it; says what was done."""
    told = set(re.findall(rb"^Task: (.*)$", progress_tail(path), re.M))
    known = {_bounded(task, _LONGEST_TASK).encode() for task in tasks}
    if not told or told & known or path.is_symlink():
        return ""
    target = archive / f"progress-{stamp(now)}.txt"
    try:
        archive.mkdir(parents=True, exist_ok=True)
        path.replace(target)
    except OSError as error:
        return f"{path.name} still tells of the last feature: {error.strerror or error}"
    return f"{path.name} told of another feature: it is kept as {archive.name}/{target.name}"


def _missing_part(text: bytes, tail: bytes) -> bytes:
    """What of the entry is not at the end of the file yet; it is known by its run and iteration."""
    name = text[text.index(b" (") : text.index(b"\n") + 1]
    at = len(tail)
    while (at := tail.rfind(name, 0, at)) >= 0:
        start = tail.rfind(b"\n", 0, at) + 1
        if _HEADER.fullmatch(tail, start, at):  # elsewhere it is only spoken of
            found = tail[start:]
            # Only the very end of the file can be torn; anything else there is a person's edit.
            return text[len(found) :] if text.startswith(found) else b""
    torn_line = tail[tail.rfind(b"\n") + 1 :]
    if torn_line and text.startswith(torn_line):
        return text[len(torn_line) :]
    return b"\n" + text if torn_line else text


def progress_tail(path: Path, most: int = _PROGRESS_TAIL_BYTES) -> bytes:
    if not path.is_file():
        return b""
    with open_regular(path) as file:
        end = file.seek(0, 2)
        file.seek(max(0, end - most))
        return file.read(most)


def _session_totals(run: RunRecord, state: RunState) -> JsonValues:
    return {
        "total_tasks_completed": run.totals.tasks_completed,
        "total_files_modified": run.totals.files_modified,
        "total_commits": run.totals.commits + state.commits,
    }


def _moment(epoch: float | None) -> str | None:
    try:
        return None if epoch is None else iso(epoch)
    except ValueError:
        return None  # a time no calendar holds must not cost us the view


def _bounded(text: str, limit: int = _LONGEST_TASK) -> str:
    line = one_line(text, limit)
    if line.isprintable():
        return line
    return "".join(char if char.isprintable() else "\N{REPLACEMENT CHARACTER}" for char in line)
