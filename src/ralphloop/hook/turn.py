"""The loop of a session, taken up by a hook for one turn and put down again.

Everything a turn needs is in the journal, with the story file as it was when the iteration began.
The session waits for checks, so they get eight minutes and no more (Claude Code ends a hook after
ten).  Checks that took longer once are not run at all; what they would have proven stays a claim.
Claude Code keeps 10,000 characters of an answer; a prompt that does not fit is read from its file.
"""

import json
import os
import time
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from ralphloop.config.model import Config
from ralphloop.core.model import Decision, Value
from ralphloop.errors import RalphError
from ralphloop.hook.entry import say
from ralphloop.journal.holder import Holder
from ralphloop.journal.journal import Journal
from ralphloop.journal.lock import hook_turn
from ralphloop.journal.records import IterationRecord, RunRecord, RunStatus
from ralphloop.loop.begin import Round, begin, begun_again
from ralphloop.loop.loop import choose_next, run_verify_before_first_start
from ralphloop.loop.patience import Patience
from ralphloop.loop.prepare import Options, assemble, open_repository
from ralphloop.loop.run import Run
from ralphloop.loop.workspace import Workspace
from ralphloop.proc.threads import StopSignal
from ralphloop.project import Project
from ralphloop.repo.work_tree import Places, Repository
from ralphloop.room import ensure_private_dir, own_opener
from ralphloop.stories.source import load
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import one_line

LEASE_S = 6 * 3600.0  # longer than a usage limit takes to reset
_LONGEST_LOG = 1 << 20
Answer = dict[str, object]
MOST_CHARS = 10_000
_MOST_WORDS = 1_500
# The rules stand above, or in the reminder that follows a summary of the conversation.
_STILL = (
    "The rules of the loop hold as before: this one story, the project's checks, and the"
    " RALPH_STATUS block at the end of your answer (STATUS of this story, EXIT_SIGNAL of the whole"
    " project).\n\n"
)


class Call(msgspec.Struct, frozen=True):
    """One hook that concerns a loop of ours."""

    given: dict[str, object]
    project: Project
    holder: Holder
    now: float

    def text(self, key: str) -> str:
        value = self.given.get(key)
        return value if isinstance(value, str) else ""


class Ledger(Value, kw_only=True):
    """One loop's own notes; they live in the journal, under the run."""

    only: str | None = None  # --story
    prefix: str = ""  # of the commands as this person types them: /ralph or /ralph:ralph
    specs_dir: str = ""
    prompt: str = ""  # the file of a plain loop
    idle_row: int = 0  # stops in a row without progress
    waited_for: tuple[str, ...] = ()  # background tasks we let finish once
    transcript: str = ""  # where the session writes what it says
    transcript_read: int = 0  # bytes of the session's transcript that were counted
    listed: bytes = b""  # the story file before the turn
    settings: dict[str, bytes] | None = None  # the files that say how it works, then
    stashes: frozenset[str] | None = None  # what was stashed then
    slow_checks: bool = False  # they take longer than a hook may
    repository: Places | None = None  # found once: a run stays where it is

    def command(self, rest: str = "", *, name: str = "ralph") -> str:
        """A command the person can type as it is printed."""
        return f"/{self.prefix}{name} {rest}".rstrip()


class Turn(msgspec.Struct):
    run: Run
    workspace: Workspace
    ledger: Ledger
    over: bool = False  # the loop does not go on after it

    def note(self, **changes: Any) -> None:
        self.ledger = msgspec.structs.replace(self.ledger, **changes)

    def save(self) -> None:
        repo = self.workspace.repo
        patience = self.run.patience
        slow = patience is not None and patience.slow
        self.note(slow_checks=slow, repository=repo.places if repo else None)
        self.run.journal.set_meta(f"hook:{self.run.id}", self.ledger)

    @property
    def under_way(self) -> IterationRecord | None:
        found = self.run.journal.unfinished_iterations(self.run.id)
        return found[-1] if found else None

    def begun(self, cut: IterationRecord) -> Round:
        """The same as it was begun, with the settings and stories as they were."""
        ledger = self.ledger
        known = self.workspace.stories
        begun = begun_again(self.run, self.workspace, cut, known.list if known else None)
        return msgspec.structs.replace(
            begun,
            list_bytes=ledger.listed or begun.list_bytes,
            settings=ledger.settings,
            stashes=ledger.stashes,
        )

    async def begin(self) -> Round | Decision:
        """Begin the next iteration, and keep what an agent may break as it is now."""
        chosen = choose_next(self.run, self.workspace)
        if chosen.decision is not None:
            return chosen.decision
        await run_verify_before_first_start(self.run, self.workspace, chosen.story)
        begun = begin(self.run, self.workspace, chosen.story, chosen.stories)
        self.note(listed=begun.list_bytes, settings=begun.settings, stashes=begun.stashes)
        self.save()
        return begun


class HeldTurns(NamedTuple):
    journal: Journal
    turns: list[Turn]  # whoever takes one up adds it


@contextmanager
def held(project: Project, session: str, run: str, *, check: bool = False) -> Iterator[HeldTurns]:
    """Hold the project; afterwards the lease stays only for turns in the list that go on."""
    turns: list[Turn] = []
    ensure_private_dir(project.directory)
    turn = hook_turn(
        project.directory,
        session=session,
        run=run,
        now=time.time(),
        lease_s=LEASE_S,
        goes_on=lambda: bool(turns) and not turns[-1].over,
    )
    with turn, Journal.open(project.journal, check=check) as journal:
        yield HeldTurns(journal, turns)


TurnWork = Callable[[Call, Turn], Awaitable[Answer | None]]


async def take_turn(call: Call, work: TurnWork) -> Answer | None:
    """Answer a hook in the loop it belongs to; None where that no longer goes on."""
    with held(call.project, call.holder.session, call.holder.run) as here:
        journal = here.journal
        record = journal.find_run(call.holder.run)
        # Looked up under the lock: whoever cancelled the loop meanwhile has ended its run.
        if record is None or record.status is not RunStatus.RUNNING:
            return None
        turn = taken_up(call.project, call.holder, journal, record)
        here.turns.append(turn)
        answer = await work(call, turn)
        turn.save()
    return answer


def taken_up(project: Project, holder: Holder, journal: Journal, record: RunRecord) -> Turn:
    """The loop as the last hook put it down."""
    saved = journal.meta(f"hook:{record.id}")
    ledger = Ledger() if saved is None else msgspec.convert(saved, type=Ledger)
    options = Options(
        start=project.root,
        specs_dir=Path(ledger.specs_dir) if ledger.specs_dir else None,
        prompt=Path(ledger.prompt) if ledger.prompt else None,
        only=ledger.only,
        session=holder.session,
        env=os.environ,
    )
    config = msgspec.convert(record.config, Config)
    known = ledger.repository
    stories = None
    repo = Repository.at(known) if known else open_repository(project.root)
    if record.prd_path:  # with the list as it was when the iteration began
        stories = load(project.root / record.prd_path, data=ledger.listed or None)
    setup = assemble(options, project, config, stories, repo)
    if config.sandbox.mode != "off" or config.agent.safety == "strict":
        from ralphloop.loop.confine import confine

        setup = confine(setup)
    session = journal.session(record.id)
    patience = Patience(session.baseline.results, slow=ledger.slow_checks)
    run = Run(setup, session, journal, StopSignal(), patience=patience)
    run.beat()
    workspace = Workspace(setup.site)
    workspace.restore_experiment(journal)
    return Turn(run, workspace, ledger)


def handle(event: str, given: dict[str, object], directory: Path, holder: Holder) -> Answer | None:
    """Answer an event; what goes wrong is told and logged, and the session stops as it would."""
    import asyncio

    project = Project(directory.parent)
    call = Call(given, project, holder, time.time())
    try:
        if event in ("stop", "stop-failure"):
            from ralphloop.hook.stop import failed, stopped

            return asyncio.run(take_turn(call, stopped if event == "stop" else failed))
        from ralphloop.hook.sessions import release, reminder

        reason = f"the session ended ({call.text('reason') or 'unknown'})"
        if event == "session-start":
            if holder.session == call.text("session_id"):
                return asyncio.run(take_turn(call, reminder))
            silence = format_duration(call.now - holder.renewed_at)
            reason = f"its session gave no sign of life for {silence}"
        asyncio.run(release(project, holder, reason))
        return None
    except RalphError as error:
        _log(project, f"{event}: {error.message}")
        return told(f"{error.message}. {error.next_step}")
    except Exception as error:  # noqa: BLE001 - a session must never suffer from our mistakes
        import traceback

        _log(project, f"{event}: {traceback.format_exc()}")
        return told(f"internal error: {type(error).__name__}: {error}; see .ralph/ralph.log")


def _log(project: Project, words: str) -> None:
    say(f"ralph: {words}")
    try:
        with open(project.log, "a", encoding="utf-8", errors="replace", opener=own_opener) as log:
            if log.tell() < _LONGEST_LOG:
                log.write(f"hook {words}\n")
    except OSError:
        return  # no log can be written; the words go to the session anyway


def told(words: str) -> Answer:
    """Let the session stop, and tell the person why."""
    return {"systemMessage": f"ralph: {one_line(words, _MOST_WORDS)}"}


def refused(words: str) -> Answer:
    """The answer to a command that needs no model: shown to the person, sent nowhere."""
    return {
        "decision": "block",
        "reason": words[: MOST_CHARS - 500],
        "hookSpecificOutput": {
            "hookEventName": "UserPromptExpansion",
            "suppressOriginalPrompt": True,
        },
    }


def blocked(begun: Round, words: str) -> Answer:
    """Do not stop: here is the next prompt."""
    story = f"{_STILL}{begun.prompt.text[begun.prompt.rules :].lstrip()}"
    return _fitting(begun, story, words, lambda text: {"decision": "block", "reason": text})


def in_context(event: str, begun: Round, words: str) -> Answer:
    """Add the prompt to what the agent is about to read anyway."""
    return _fitting(
        begun,
        begun.prompt.text,
        words,
        lambda text: {"hookSpecificOutput": {"hookEventName": event, "additionalContext": text}},
    )


def _fitting(begun: Round, prompt: str, words: str, made: Callable[[str], Answer]) -> Answer:
    """With the prompt, or with where it is to be read."""
    head = (
        f"This is iteration {begun.number} of a ralph loop in this session. Earlier ones may stand"
        " above; what counts of them is in the files.\n\n"
    )
    whole = made(f"{head}{prompt}") | told(words)
    if len(json.dumps(whole, ensure_ascii=False)) <= MOST_CHARS:
        return whole
    story = begun.story
    path = begun.transcript.with_suffix(".prompt.md")
    what = f"Your story: {story.id}: {one_line(story.title, 200)}.\n\n" if story else ""
    there = (
        f"{head}{what}The whole prompt has {len(begun.prompt.text):,} characters and is in the"
        f" file\n{path}\nRead that file completely before anything else, then do what it says; it"
        " also says how your answer has to end (RALPH_STATUS)."
    )
    return made(there) | told(words)
