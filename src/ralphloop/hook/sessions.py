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
from ralphloop.loop.loop import cool_down_circuit, reason_to_stop
from ralphloop.loop.open import open_run, run_to_hold
from ralphloop.loop.patience import Patience
from ralphloop.loop.prepare import Setup
from ralphloop.loop.run import Audience, Run
from ralphloop.loop.workspace import Workspace
from ralphloop.proc.threads import StopSignal
from ralphloop.project import Project
from ralphloop.prompts import Prompt
from ralphloop.repo.private_git import make_directory
from ralphloop.text.durations import is_expired
from ralphloop.text.plain import counted

MANY_STORIES = 10


async def begin(setup: Setup, *, transcript: str, prefix: str) -> Answer:
    """Begin or continue, and answer with the first prompt or with why there is none."""
    asked = Ledger(
        only=setup.options.only,
        prefix=prefix,
        specs_dir=str(setup.site.specs_dir) if setup.options.specs_dir else "",
        prompt=str(setup.options.prompt.resolve()) if setup.options.prompt else "",
        transcript=transcript,
        # What was said before belongs to nobody's budget.
        transcript_read=_size_of(Path(transcript)),
    )
    project = setup.project
    session = setup.options.session
    now = time.time()
    if active_lease(project.directory, session, now) and not setup.options.resume:
        raise UsageError(
            "a loop goes on in this session already",
            f"Say {asked.command('--continue')} to go on with it, or"
            f" {asked.command(name='cancel-ralph')} to end it.",
        )
    setup.insist_on_trust()
    make_directory(project.directory)
    setup = confine(setup)
    run = run_to_hold(setup, now)
    said = list[str]()
    if setup.site.check_box is not None:
        said.append(f"{setup.confined}.")
    with held(project, session, run, check=True) as here:
        journal = here.journal
        journal.insist_on_belief(accepts_foreign=setup.trusts_all)
        turn = await _open_turn(setup, journal, run, asked, said)
        here.turns.append(turn)
        answer = await _first(turn, said)
        turn.save()
    return answer


def _size_of(path: Path) -> int:
    """Bytes of a file; 0 where there is none."""
    return path.stat().st_size if path.is_file() else 0


async def _open_turn(
    setup: Setup, journal: Journal, name: str, asked: Ledger, said: list[str]
) -> Turn:
    patience = Patience()
    session = Session(run=name)
    heard = Audience(tell=said.append)
    new = Run(setup, session, journal, StopSignal(), heard, patience=patience)
    workspace = Workspace(setup.site)
    try:
        run = await open_run(new, workspace)
    except CircuitOpen as error:
        go_on = asked.command("--continue")
        advice = f"Look at the reason, then say {go_on} --reset-circuit."
        raise CircuitOpen(error.message, advice) from None
    if patience.slow:
        said.append(
            "The checks take longer than 8 minutes, so they are not run here and stories are only"
            f" `claimed`; {asked.command('--overnight')} runs them."
        )
    return Turn(run, workspace, asked)


async def _first(turn: Turn, said: list[str]) -> Answer:
    cool_down_circuit(turn.run)
    begun = reason_to_stop(turn.run, turn.workspace) or await turn.begin()
    if isinstance(begun, Decision):
        return refused("\n".join([*said, str(let_go(turn, begun)["systemMessage"])]))
    stories = turn.workspace.stories
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


async def release(project: Project, holder: Holder, reason: str) -> bool:
    """Stop the run of a lease and give the project back; False where it was no longer going on.

    A turn that was broken off is recorded if it is known what it used, else by who continues.
    """
    with held(project, holder.session, holder.run) as here:
        journal = here.journal
        record = journal.find_run(holder.run)
        now = time.time()
        if record is None or record.status is not RunStatus.RUNNING:
            return False
        with suppress(RalphError):  # the run ends all the same
            turn = taken_up(project, holder, journal, record)
            said: dict[str, object] = {"transcript_path": turn.ledger.transcript}
            await broken_off(Call(said, project, holder, now), turn)  # as the transcript tells it
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


async def reminder(_: Call, turn: Turn) -> Answer | None:
    """The prompt of the iteration that goes on: a summary of the conversation may have lost it."""
    cut = turn.under_way
    if cut is None:
        return None
    path = turn.workspace.project.root / cut.prompt_path
    text = path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""
    begun = msgspec.structs.replace(turn.begun(cut), prompt=Prompt(text=text))
    words = f"a loop goes on in this session; {turn.ledger.command(name='cancel-ralph')} ends it"
    return in_context("SessionStart", begun, words)
