"""`/ralph` begins a loop in a session or goes on with one; sessions come and go.

What is wrong is said to the person and costs no word of the model.  A session that ends gives the
project back; `--continue` goes on, in any session or in script mode.  The lease of one that crashed
runs out, and the next session to start here puts the run away; nothing is deleted.
"""

import time
from contextlib import suppress
from pathlib import Path

import msgspec

from ralphloop.core.model import Decision, ExitDecision
from ralphloop.core.run_state import Session
from ralphloop.errors import CircuitOpen, RalphError, UsageError
from ralphloop.hook.stop import broken_off, let_go
from ralphloop.hook.turn import Answer, Call, Ledger, Turn, held, in_context, refused, taken_up
from ralphloop.journal.holder import Holder, active_lease
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import SESSION_HOURS
from ralphloop.journal.records import RunStatus
from ralphloop.loop.confine import confine
from ralphloop.loop.loop import not_again
from ralphloop.loop.open import open_runner, run_to_hold
from ralphloop.loop.prepare import Setup
from ralphloop.loop.runner import Patience, Runner, measure_of
from ralphloop.proc.steps import StopSignal, in_turn
from ralphloop.project import Project
from ralphloop.prompts import Prompt
from ralphloop.repo.private_git import make_directory
from ralphloop.text.durations import is_expired
from ralphloop.text.plain import counted

MANY_STORIES = 10


def begin(setup: Setup, *, transcript: str, prefix: str) -> Answer:
    """Begin or continue, and answer with the first prompt or with why there is none."""
    said_before = Path(transcript)
    asked = Ledger(
        only=setup.options.only,
        prefix=prefix,
        specs_dir=str(setup.specs_dir) if setup.options.specs_dir else "",
        prompt=str(setup.options.prompt.resolve()) if setup.options.prompt else "",
        transcript=transcript,
        # What was said before belongs to nobody's budget.
        transcript_read=said_before.stat().st_size if said_before.is_file() else 0,
    )
    project, session, now = setup.project, setup.options.session, time.time()
    if active_lease(project.directory, session, now) and not setup.options.resume:
        raise UsageError(
            "a loop goes on in this session already",
            f"Say {asked.command('--continue')} to go on with it, or"
            f" {asked.command(name='cancel-ralph')} to end it.",
        )
    setup.insist_on_trust()
    make_directory(project.directory)
    setup = confine(setup)
    run, said = run_to_hold(setup, now), list[str]()
    if setup.check_box is not None:
        said.append(f"{setup.confined}.")
    with held(project, session, run, check=True) as (journal, turns):
        journal.insist_on_belief(accepts_foreign=setup.trusts_all)
        turn = _opened(setup, journal, run, asked, said)
        turns.append(turn)
        answer = _first(turn, said)
        turn.save()
    return answer


def _opened(setup: Setup, journal: Journal, run: str, asked: Ledger, said: list[str]) -> Turn:
    patience, tools = Patience(), (journal, measure_of(setup), StopSignal())
    new = Runner(setup, Session(run=run), *tools, tell=said.append, patience=patience)
    try:
        runner = in_turn(open_runner(new))
    except CircuitOpen as error:
        go_on = asked.command("--continue")
        advice = f"Look at the reason, then say {go_on} --reset-circuit."
        raise CircuitOpen(error.message, advice) from None
    if patience.slow:
        said.append(
            "The checks take longer than 8 minutes, so they are not run here and stories are only"
            f" `claimed`; {asked.command('--overnight')} runs them."
        )
    return Turn(runner, asked)


def _first(turn: Turn, said: list[str]) -> Answer:
    begun = not_again(turn.runner) or turn.begin()
    if isinstance(begun, Decision):
        return refused("\n".join([*said, str(let_go(turn, begun)["systemMessage"])]))
    stories = turn.runner.setup.stories
    left = stories.list.total - stories.list.passed if stories else 0
    if left >= MANY_STORIES:
        said.append(
            f"{counted(left, 'story', 'is')} open: {turn.ledger.command('--overnight')} runs them"
            " with a fresh context each, outside this session."
        )
    story = begun.story.id if begun.story else "the prompt"
    tokens = f"{begun.prompt.estimated_tokens:,} tokens"
    said.append(f"Iteration {begun.number}: {story}, about {tokens}.")
    return in_context("UserPromptExpansion", begun, " ".join(said))


def release(project: Project, holder: Holder, reason: str) -> bool:
    """Stop the run of a lease and give the project back; False where it was no longer going on.

    A turn that was broken off is recorded if it is known what it used, else by who continues.
    """
    with held(project, holder.session, holder.run) as (journal, _):
        record, now = journal.find_run(holder.run), time.time()
        if record is None or record.status is not RunStatus.RUNNING:
            return False
        with suppress(RalphError):  # the run ends all the same
            turn = taken_up(project, holder, journal, record)
            said: dict[str, object] = {"transcript_path": turn.ledger.transcript}
            broken_off(Call(said, project, holder, now), turn)  # as the transcript tells it
            turn.save()
        too_old = is_expired(record.last_activity, now, SESSION_HOURS)
        journal.end_run(
            record.id,
            now=now,
            status=RunStatus.EXPIRED if too_old else RunStatus.STOPPED,
            decision=str(ExitDecision.INTERRUPTED),
            reason=reason,
        )
    return True


def reminder(_: Call, turn: Turn) -> Answer | None:
    """The prompt of the iteration that goes on: a summary of the conversation may have lost it."""
    cut = turn.under_way
    if cut is None:
        return None
    path = turn.runner.setup.project.root / cut.prompt_path
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    begun = msgspec.structs.replace(turn.begun(cut), prompt=Prompt(text=text))
    words = f"a loop goes on in this session; {turn.ledger.command(name='cancel-ralph')} ends it"
    return in_context("SessionStart", begun, words)
