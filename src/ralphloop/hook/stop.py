"""A turn of the session has ended: judge it, and give the next prompt or the reason to stop.

After eight refused stops in a row without a tool being used the session overrides the hook, in
print mode without a word.  So a stop that follows one of ours is refused again only where the turn
in between made progress, and never for the seventh time in a row without any.
"""

import os
from pathlib import Path
from typing import NamedTuple

import msgspec

from ralphloop.core.analyzer import hear
from ralphloop.core.iteration import Result
from ralphloop.core.model import (
    NO_LIMIT,
    Decision,
    ExitDecision,
    Outcome,
    ProcessEnd,
    RateLimit,
    Response,
)
from ralphloop.core.run_state import Standing
from ralphloop.hook.turn import Answer, Call, Turn, blocked, told
from ralphloop.loop.effects import apply_effects
from ralphloop.loop.judging import Judgement, judge
from ralphloop.loop.loop import cool_down_circuit, finish_iteration, reason_to_stop
from ralphloop.loop.repair import trouble
from ralphloop.loop.requests import handle_requests
from ralphloop.readers.claude_usage import ClaudeUsage
from ralphloop.readers.own_words import OwnWords
from ralphloop.text.durations import iso
from ralphloop.text.plain import one_line
from ralphloop.text.status_block import Status

_CAP_VARIABLE = "CLAUDE_CODE_STOP_HOOK_BLOCK_CAP"
_USUAL_CAP = 8
_MOST_BYTES = 64 << 20
_GO_ON = {
    ExitDecision.CIRCUIT_OPEN: "Look at the reason, then say {} --reset-circuit.",
    ExitDecision.MAX_ITERATIONS: "To allow more, say {} --max-iterations N.",
    ExitDecision.BLOCKED: "Give it what it needs, then say {}.",
}


async def stopped(call: Call, turn: Turn) -> Answer | None:
    run = turn.run
    workspace = turn.workspace
    handle_requests(run, workspace)
    for owing in run.journal.owed_effects(run.id):  # by a hook that was cut off
        await apply_effects(run, workspace, owing.n, owing.effects)
    response = _spoken(call.text("last_assistant_message"), call, turn)
    if waiting := _background(call, turn, response):
        return told(f"waits for {waiting}; the loop goes on after that, or when you say something")
    ended = await _finish(call, turn, response)
    judged = ended.judged
    decision = ended.decision
    cool_down_circuit(run)
    decision = (
        decision or _end_after_idle_turns(call, turn, judged) or reason_to_stop(run, workspace)
    )
    # What script mode would wait for: a session cannot be kept waiting.
    if decision is None and (reason := trouble(run, workspace, workspace.tree())):
        decision = Decision(word=ExitDecision.INTERRUPTED, reasons=(reason,))
    elif decision is None and (free := run.free_at()) is not None:
        most = run.config.limits.calls_per_hour
        words = f"{most} starts in the last hour, the next one may come at {iso(free)}"
        decision = Decision(word=ExitDecision.BUDGET_EXHAUSTED, reasons=(words,))
    if decision is None and run.session.overrides.paused:
        return told(f"{run.session.overrides.paused}; `ralph resume` and any word of yours go on")
    begun = decision or await turn.begin()
    if isinstance(begun, Decision):
        return let_go(turn, begun, judged)
    next_story = begun.story.id if begun.story else "the prompt"
    return blocked(begun, f"{_became(turn, judged)}iteration {begun.number}: {next_story}")


async def failed(call: Call, turn: Turn) -> Answer | None:
    """A turn that ended in an API error is written down, and the loop waits for the next one.

    Claude Code ignores the answer; what can never work (no login, no money) ends the loop.
    """
    ended = await _finish(call, turn, _broken_off(call, turn))
    cool_down_circuit(turn.run)
    begun = ended.decision or reason_to_stop(turn.run, turn.workspace) or await turn.begin()
    return let_go(turn, begun, ended.judged) if isinstance(begun, Decision) else None


async def broken_off(call: Call, turn: Turn) -> None:
    """A turn that somebody interrupted, and then ended the loop: what it used counts."""
    used = _response(call, turn, Outcome.INTERRUPTED, "the turn was interrupted")
    if used.usage.total_tokens:
        await _finish(call, turn, used)


class _EndedTurn(NamedTuple):
    judged: Judgement | None = None
    decision: Decision | None = None


async def _finish(call: Call, turn: Turn, response: Response) -> _EndedTurn:
    """Judge the iteration that went on, write it down and do what it owes; then what follows."""
    run = turn.run
    workspace = turn.workspace
    cut = turn.under_way
    if cut is None:
        return _EndedTurn()
    end = ProcessEnd(exit_code=0, duration_s=max(0.0, call.now - cut.started_at))
    judged = await judge(run, workspace, turn.begun(cut), Result(end=end, response=response))
    return _EndedTurn(judged, await finish_iteration(run, workspace, judged))


def let_go(turn: Turn, decision: Decision, judged: Judgement | None = None) -> Answer:
    """End the run as script mode would and say why, with what the person can do."""
    from ralphloop.loop.open import end_run
    from ralphloop.ui.report import write_report

    end_run(turn.run, turn.workspace, decision)
    write_report(turn.workspace.project, turn.run.id)
    turn.over = True  # the lease goes with it
    reasons = "; ".join(decision.reasons) or str(decision.word)
    words = f"the loop is over: {reasons}."
    if decision.word is not ExitDecision.PROJECT_COMPLETE:
        advice = _GO_ON.get(decision.word, "To go on, say {}.")
        go_on = turn.ledger.command("--continue")
        words = f"the loop has stopped: {reasons}. {advice.format(go_on)}"
    return told(f"{_became(turn, judged)}{words}")


def _spoken(message: str, call: Call, turn: Turn) -> Response:
    """The agent's last words as the answer they are; no words are an empty answer, no end."""
    words = OwnWords()
    if message:
        words.say(message)
        words.last_is_final()
    outcome = Outcome.COMPLETED if message.strip() else Outcome.EMPTY
    return msgspec.structs.replace(
        _response(call, turn, outcome, "the turn ended"),
        status=words.status,
        status_is_final=words.status_is_final,
        final_text=words.final_text,
        text=words.text,
        text_chars=words.chars,
    )


def _broken_off(call: Call, turn: Turn) -> Response:
    """What the error means; the same tables as for a start that we made ourselves."""
    from ralphloop.agents.environment import local_time
    from ralphloop.readers.base import End
    from ralphloop.readers.claude import Claude
    from ralphloop.readers.resets import reset_time

    error = call.text("error")
    words = call.text("last_assistant_message") or call.text("error_details") or error
    claude = Claude()
    message = {"content": [{"type": "text", "text": words}]}
    failed = {"is_api_error_message": True, "error": error or "unknown", "message": message}
    claude.see({"type": "assistant", **failed})
    verdict = claude.verdict(End(1, "", None))
    outcome = verdict.outcome
    reason = verdict.reason
    if error == "max_output_tokens":
        outcome = Outcome.LIMIT
        reason = words
    elif outcome is Outcome.ERROR and error in ("", "unknown"):
        outcome = Outcome.TRANSIENT  # nobody knows: try again
    resets_at = reset_time(reason, local_time(call.now, os.environ))
    limit = RateLimit(rejected=True, resets_at=resets_at)
    response = _response(call, turn, outcome, reason)
    return msgspec.structs.replace(
        response,
        model_output=response.usage.output_tokens > 0,
        rate_limit=limit if outcome is Outcome.USAGE_LIMIT else NO_LIMIT,
    )


def _background(call: Call, turn: Turn, response: Response) -> str:
    """Work that will wake the session by itself, unless the agent says it is through anyway."""
    tasks = call.given.get("background_tasks")
    named = {
        str(task.get("id")): one_line(str(task.get("description") or task.get("type")), 80)
        for task in (tasks if isinstance(tasks, list) else [])
        if isinstance(task, dict)
    }
    is_blocked = response.status is not None and response.status.status is Status.BLOCKED
    is_claimed = hear(Result(response=response)).story_claimed
    if not set(named) - set(turn.ledger.waited_for) or is_blocked or is_claimed:
        return ""
    turn.note(waited_for=tuple(named)[-50:])  # a server never ends: nobody waits for it twice
    return f"{len(named)} background tasks ({', '.join(list(named.values())[:3])})"


def _end_after_idle_turns(call: Call, turn: Turn, judged: Judgement | None) -> Decision | None:
    """Never be the hook that has to be overridden."""
    if judged is None or judged.step.analysis.progress:
        turn.note(idle_row=0)
        return None
    row = turn.ledger.idle_row + 1
    given = os.environ.get(_CAP_VARIABLE, "")
    turn.note(idle_row=row)
    cap = int(given) if given.isdecimal() and int(given) > 1 else _USUAL_CAP
    if row < cap - 1 and not call.given.get("stop_hook_active"):
        return None
    story = judged.begun.story
    state = turn.run.session.story(story.id if story else None)
    if story is not None and state.standing is Standing.BLOCKED:
        return Decision(word=ExitDecision.BLOCKED, reasons=(f"{story.id}: {state.reason}",))
    times = "since the last prompt" if row == 1 else f"in the last {row} turns"
    return Decision(word=ExitDecision.INTERRUPTED, reasons=(f"nothing changed {times}",))


def _became(turn: Turn, judged: Judgement | None) -> str:
    """What the iteration that ended was worth, in a few words."""
    story = judged.begun.story if judged else None
    if judged is None or story is None:
        return ""
    if not judged.step.verdict.passed:
        claimed = judged.step.analysis.story_claimed
        return f"{story.id} did not pass ({judged.step.verdict.reasons[0]}). " if claimed else ""
    grade = turn.run.session.story(story.id).proof.grade
    return f"{story.id} passed ({grade or 'then its commit was refused'}). "


def _response(call: Call, turn: Turn, outcome: Outcome, reason: str) -> Response:
    """What a turn came to, with tokens and dollars since the last one and their model.

    The transcript may lag behind and holds no subagents: the numbers are marked as an estimate.
    """
    new = _new_lines(call.text("transcript_path"), turn.ledger.transcript_read)
    turn.note(transcript_read=new.end)
    counted = ClaudeUsage()
    model = ""
    for line in new.lines:
        try:
            event = msgspec.json.decode(line) if b'"usage"' in line else None
        except (msgspec.DecodeError, RecursionError):
            continue
        if not isinstance(event, dict) or event.get("type") != "assistant":
            continue
        message = event.get("message")
        if isinstance(message, dict) and isinstance(told_of := message.get("usage"), dict):
            counted.streamed(str(message.get("id", "")), told_of)
            model = str(message.get("model", "")) or model
    used = Response(reader="hook", outcome=outcome, reason=reason, model_output=True)
    if not model:
        return used
    from ralphloop.agents.prices import priced

    usage = priced(counted.value, model, stated=turn.run.config.prices.models)
    return msgspec.structs.replace(used, model=model, usage=usage)


class NewLines(NamedTuple):
    lines: list[bytes]  # whole ones
    end: int  # where they end in the file


def _new_lines(path: str, start: int) -> NewLines:
    """What was written after `start`; a shorter file was written anew."""
    try:
        with Path(path).open("rb") as file:
            size = file.seek(0, 2)
            start = start if start <= size else 0
            file.seek(max(start, size - _MOST_BYTES))
            data = file.read(_MOST_BYTES)
            end = file.tell()
    except (OSError, ValueError):
        return NewLines([], start)
    whole = data.rfind(b"\n") + 1
    return NewLines(data[:whole].splitlines(), end - (len(data) - whole))
