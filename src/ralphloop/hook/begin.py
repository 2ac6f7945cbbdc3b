"""`/ralph`: begin a loop in this session, or go on with one.

Everything is looked at as before a run in script mode: the repository, the stories, the checks.
What is wrong is said to the person and costs no word of the model.
"""

from __future__ import annotations

import asyncio
import time
from pathlib import Path

from ralphloop.agents.stop_signal import StopSignal
from ralphloop.core.model import Decision
from ralphloop.errors import UsageError
from ralphloop.hook.answer import Answer, in_context, refused
from ralphloop.hook.carried import Turn, held
from ralphloop.hook.checking import Patience
from ralphloop.hook.ledger import Ledger
from ralphloop.hook.stop import let_go
from ralphloop.journal.holder import active_lease
from ralphloop.journal.store import Journal
from ralphloop.loop.run import not_again
from ralphloop.loop.setup import Setup
from ralphloop.loop.start import make_directory, open_runner, run_to_hold
from ralphloop.prompts.build import CHARS_PER_TOKEN

MANY_STORIES = 10


def begin(setup: Setup, *, transcript: str) -> Answer:
    """Begin or continue, and answer with the first prompt or with why there is none."""
    project, session, now = setup.project, setup.options.session, time.time()
    if active_lease(project.directory, session, now) and not setup.options.resume:
        raise UsageError(
            "a loop goes on in this session already",
            "Say /ralph --continue to go on with it, or /cancel-ralph to end it.",
        )
    make_directory(project.directory)
    run, said = run_to_hold(setup, now), list[str]()
    with held(project, session, run) as turns, Journal.open(project.journal) as journal:
        turn = _opened(setup, journal, run, said)
        turn.note(transcript_read=_size(transcript))
        turns.append(turn)
        answer = _first(turn, said)
        turn.save()
    return answer


def _opened(setup: Setup, journal: Journal, run: str, said: list[str]) -> Turn:
    """The run, begun or continued, with what is to be remembered of how it was asked for."""
    patience, options = Patience(), setup.options
    runner = asyncio.run(
        open_runner(setup, journal, StopSignal(), (), said.append, time.time, run, checker=patience)
    )
    if patience.slow:
        said.append(
            "The checks take longer than 8 minutes, so they are not run here and stories are only"
            " `claimed`; /ralph --overnight runs them."
        )
    ledger = Ledger(
        only=options.only,
        specs_dir=str(setup.specs_dir) if options.specs_dir else "",
        prompt=str(options.prompt.resolve()) if options.prompt else "",
    )
    return Turn(runner, ledger, patience)


def _first(turn: Turn, said: list[str]) -> Answer:
    decision = not_again(turn.runner)
    begun = turn.begin() if decision is None else decision
    if isinstance(begun, Decision):
        return refused("\n".join([*said, let_go(turn, begun)["systemMessage"]]))
    if hint := _many(turn):
        said.append(hint)
    story = begun.story.id if begun.story else "the prompt"
    tokens = len(begun.prompt.text) // CHARS_PER_TOKEN
    said.append(f"Iteration {begun.number}: {story}, about {tokens:,} tokens.")
    return in_context("UserPromptExpansion", begun, " ".join(said))


def _many(turn: Turn) -> str:
    stories = turn.runner.setup.stories
    left = stories.list.total - stories.list.passed if stories else 0
    if left < MANY_STORIES:
        return ""
    return (
        f"{left} stories are open: /ralph --overnight runs them with a fresh context each,"
        " outside this session."
    )


def _size(transcript: str) -> int:
    """What was said before belongs to nobody's budget."""
    try:
        return Path(transcript).stat().st_size
    except OSError:
        return 0
