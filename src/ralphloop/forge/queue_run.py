"""A run over the items of a queue: claimed, planned, worked on like any story, reported back.

What was taken is one row of the journal each, written ahead of the claim with the token by which
the claim is known; a story carries in its `source` what it was made of, a report its key.  So a
crash leaves nothing that is taken, made or told twice.

An item that cannot be checked as it is goes back with a question, by the rules that plans are
judged by; what somebody answers are its criteria.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from ralphloop.atomic import kill_point
from ralphloop.config.model import Config
from ralphloop.core.model import Story
from ralphloop.core.queueing import (
    QueueAnswer,
    QueueEntry,
    QueueItem,
    QueueReport,
    QueueStage,
    ReportKind,
    criteria_in,
    criteria_of_answer,
)
from ralphloop.core.run_state import Standing
from ralphloop.errors import ExitCode, RalphError
from ralphloop.forge.budget import LimitsLeft, left_of, pause
from ralphloop.forge.queues import Queue, Tell, is_temporary
from ralphloop.forge.words import quoted
from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import QUEUE_KEY
from ralphloop.journal.records import RunStatus, Wish
from ralphloop.loop.offline_requests import ask_offline
from ralphloop.loop.prepare import Options
from ralphloop.night.look import commits_of, look, reading
from ralphloop.night.values import StoryLook
from ralphloop.project import Project
from ralphloop.stories.adding import add_story
from ralphloop.stories.graph import plan
from ralphloop.stories.lint import remarks_on, vague
from ralphloop.stories.provenance import story_made_of
from ralphloop.stories.source import load, story_text
from ralphloop.text.plain import counted, one_line
from ralphloop.ui.report.render import escaped

_INTERRUPTED = (ExitCode.INTERRUPTED, ExitCode.TERMINATED)


class QueuePlace(NamedTuple):
    """What a run over a queue needs."""

    project: Project
    config: Config
    source: Path  # the story file
    queue: Queue
    name: str  # of the queue, as it was typed


class QueueRun:
    def __init__(
        self, place: QueuePlace, *, work: Callable[[Options], int], options: Options, tell: Tell
    ) -> None:
        self._place = place
        self._work = work
        self._options = options
        self._tell = tell
        self._began_at = time.time()
        limit = place.config.limits.max_time
        self._until = self._began_at + limit if limit else 0.0

    def run(self, *, watches: bool) -> int:
        """Take, work and report; once, or until the limits of the run are used up."""
        code = int(ExitCode.NOTHING_RUNNABLE)
        while True:
            try:
                self._report()
                self._hear()
                self._take()
            except RalphError as error:
                if not watches or not is_temporary(error):
                    raise
                self._tell(f"the queue did not answer, it is asked again: {error.message}")
            for only in self._batches():
                ended = self._run_one(only)
                if ended is None:
                    return ExitCode.LIMIT
                code = ended
                if code in _INTERRUPTED:
                    return code
                self._report()
            if not watches:
                if code == ExitCode.NOTHING_RUNNABLE:
                    self._tell(f"nothing of {self._place.name} can be worked on now")
                return code
            left = self._left()
            if left.used_up:
                self._tell(left.used_up)
                return ExitCode.LIMIT
            pause(self._place.config.stories.queue_every, self._until)

    def _left(self, going_on: str = "") -> LimitsLeft:
        place = self._place
        began = self._began_at
        return left_of(place.project, place.config, began, self._until, going_on=going_on)

    def _batches(self) -> list[str | None]:
        """What is run one after the other: story by story, or with lanes the list as a whole."""
        stories = [*self._runnable()]
        if self._place.config.lanes.count > 1 and stories:
            return [None]
        return list[str | None](stories)

    def _run_one(self, only: str | None) -> int | None:
        """How an ordinary run over a story, or the list, ended; None: the limits are used up."""
        going_on = self._unfinished_run()
        left = self._left(going_on)
        if left.used_up:
            self._tell(left.used_up)
            return None
        options = replace(
            self._options,
            prd=self._place.source,
            only=only,
            resume=self._options.resume or bool(going_on),
            flags={**self._options.flags, **left.flags},
        )
        code = self._work(options)
        kill_point("queue.worked")
        return code

    # --- taking --------------------------------------------------------------------------------

    def _take(self) -> None:
        known = {entry.item.id: entry for entry in self._entries()}
        for item in self._place.queue.offered():
            entry = known.get(item.id)
            if entry is None or entry.stage is QueueStage.OVER:
                entry = self._claimed(item, entry)
            if entry is not None and entry.stage is QueueStage.CLAIMING:
                self._claim(replace(entry, item=item))

    def _claimed(self, item: QueueItem, before: QueueEntry | None) -> QueueEntry | None:
        """A new entry, written ahead; None where the item was done with and nobody opened it."""
        if before is not None:
            return None
        entry = QueueEntry(item=item, queue=self._place.name, token=os.urandom(8).hex())
        self._note(entry)
        kill_point("queue.written")
        return entry

    def _claim(self, entry: QueueEntry) -> None:
        is_ours = self._place.queue.claim(entry.item, entry.token)
        kill_point("queue.claimed")
        if not is_ours:
            self._tell(f"{entry.item.id}: another ralph has it")
            self._note(replace(entry, stage=QueueStage.OVER))
            return
        self._tell(f"{entry.item.id}: {entry.item.title}")
        started = self._news(entry, ReportKind.STARTED, "Taken up.")
        self._plan(self._reported(entry, started))

    def _plan(self, entry: QueueEntry) -> None:
        """Make a story of it, or ask what it is to be seen by."""
        criteria = self._criteria(entry)
        problems = [*self._problems(entry, criteria)]
        if problems:
            question = _question(problems)
            asked = replace(entry, stage=QueueStage.ASKED)
            self._reported(asked, self._news(asked, ReportKind.QUESTION, question))
            self._tell(f"{entry.item.id} goes back with a question: {problems[0]}")
            return
        source = {"queue": entry.queue, "item": entry.item.id}
        story = story_made_of(self._place.source, source)
        if not story:
            item = entry.item
            said = quoted(f"What {item.by or 'somebody'} wrote in {item.id}", item.text)
            fields = {
                "title": item.title,
                "description": said if item.text else "",
                "acceptanceCriteria": criteria,
                "notes": one_line(f"From {item.url or item.id}", 300),
                "source": source,
            }
            story = add_story(self._place.source, fields)
            kill_point("queue.opened")
        self._tell(f"{entry.item.id} is {story}")
        self._note(replace(entry, stage=QueueStage.STORY, story=story))

    def _criteria(self, entry: QueueEntry) -> list[str]:
        """What the item lists; once somebody answered, without what could not be checked."""
        own = list(entry.item.criteria) or criteria_in(entry.item.text)
        if not entry.answers:
            return own
        kept = [it for it in own if not vague(it)]
        for answer in entry.answers:
            kept += criteria_of_answer(answer)
        return list(dict.fromkeys(kept))

    def _problems(self, entry: QueueEntry, criteria: list[str]) -> Iterator[str]:
        title = entry.item.title
        story = Story(id=entry.item.id, title=title, index=0, criteria=tuple(criteria))
        for remark in remarks_on(story, set()):
            yield remark.words

    # --- answers -------------------------------------------------------------------------------

    def _hear(self) -> None:
        for entry in self._entries():
            seen = self._seen(entry.story)
            is_waiting = seen is not None and seen.standing is Standing.BLOCKED
            if entry.stage is QueueStage.ASKED:
                for answer in self._new_answers(entry):
                    heard = (*entry.heard, answer.id)
                    texts = (*entry.answers, answer.text)
                    entry = replace(entry, answers=texts, heard=heard)  # noqa: PLW2901
                    self._note(entry)
                    self._plan(entry)
            elif entry.stage is QueueStage.STORY and is_waiting:
                for answer in self._new_answers(entry)[-1:]:
                    words = f"{answer.by or 'somebody'} answered: {answer.text}"
                    wish = Wish(story=entry.story, text=words)
                    self._tell(f"{entry.story}: {ask_offline(self._place.project, 'answer', wish)}")
                    kill_point("queue.answered")
                    self._note(replace(entry, heard=(*entry.heard, answer.id)))

    def _new_answers(self, entry: QueueEntry) -> list[QueueAnswer]:
        return [it for it in self._place.queue.answers(entry) if it.id not in entry.heard]

    # --- telling -------------------------------------------------------------------------------

    def _report(self) -> None:
        """Tell what became of each story since the last time."""
        for entry in self._entries():
            seen = self._seen(entry.story) if entry.stage is QueueStage.STORY else None
            if seen is None:
                continue
            if seen.standing is Standing.PASSED:
                news = self._passed(entry, seen)
                self._reported(replace(entry, stage=QueueStage.OVER), news)
            elif seen.standing is Standing.BLOCKED:
                asked = escaped(one_line(seen.state.reason, 1_000))
                text = f"{entry.story} waits for an answer: {asked}\n\nA comment is an answer."
                self._reported(entry, self._news(entry, ReportKind.WAITS, text))
            elif seen.standing is Standing.SET_ASIDE and not seen.state.has_a_chance:
                why = escaped(one_line(seen.state.reason, 1_000))
                news = self._news(entry, ReportKind.FAILED, f"{entry.story} was not done: {why}")
                self._reported(replace(entry, stage=QueueStage.OVER), news)

    def _passed(self, entry: QueueEntry, seen: StoryLook) -> QueueReport:
        commit = self._commit_of(entry.story)
        where = f", in {commit}" if commit else ""
        news = self._news(entry, ReportKind.PASSED, f"{entry.story} passed ({seen.grade}){where}.")
        return replace(news, grade=seen.grade, commit=commit, criteria=seen.criteria)

    def _commit_of(self, story: str) -> str:
        with reading(self._place.project) as journal:
            for run in journal.runs(50):
                commits = commits_of(self._place.project, run, journal)
                for iteration in reversed(journal.story_iterations(run.id, story)):
                    if iteration.n in commits:
                        return commits[iteration.n]
        return ""

    def _news(self, entry: QueueEntry, kind: ReportKind, text: str) -> QueueReport:
        digest = hashlib.sha256(f"{entry.token}{text}".encode()).hexdigest()[:12]
        key = f"{kind} {digest}"
        return QueueReport(id=entry.item.id, kind=kind, key=key, text=text, story=entry.story)

    def _reported(self, entry: QueueEntry, news: QueueReport) -> QueueEntry:
        """The entry with what was told, once."""
        if news.key not in entry.told:
            self._place.queue.report(entry, news)
            kill_point("queue.told")
            entry = replace(entry, told=(*entry.told, news.key))
        self._note(entry)
        return entry

    # --- what is there -------------------------------------------------------------------------

    def _entries(self) -> list[QueueEntry]:
        if not self._place.project.journal.exists():
            return []
        with reading(self._place.project) as journal:
            found = journal.queue_entries()
        return [entry for entry in found if entry.queue == self._place.name]

    def _note(self, entry: QueueEntry) -> None:
        name = hashlib.sha256(f"{entry.queue}\0{entry.item.id}".encode()).hexdigest()[:16]
        with Journal.open(self._place.project.journal, check=False) as journal:
            journal.put("note_queue", {QUEUE_KEY.format(name): entry})

    def _seen(self, story: str) -> StoryLook | None:
        if not story:
            return None
        return next((it for it in look(self._place.project).stories if it.story.id == story), None)

    def _runnable(self) -> Iterator[str]:
        """The stories of the list that could be worked on, those before they depend on first."""
        listed = story_text(self._place.source).listing.entries
        if not listed:
            return
        seen = {it.story.id: it for it in look(self._place.project).stories}
        for step in plan(load(self._place.source).list):
            state = seen.get(step.story.id)
            is_apart = state is not None and state.state.is_apart
            if step.runs and not is_apart:
                yield step.story.id

    def _unfinished_run(self) -> str:
        """A run that was killed, which goes on with what it has spent; empty: none was."""
        if not self._place.project.journal.exists():
            return ""
        with reading(self._place.project) as journal:
            found = journal.resume_candidate(time.time(), errand=False)
        is_cut_off = found is not None and not found.expired
        if found is None or not is_cut_off or found.run.status is not RunStatus.RUNNING:
            return ""
        return found.run.id


def _question(problems: list[str]) -> str:
    head = f"ralph cannot tell when this is done: {counted(len(problems), 'thing')} to settle."
    listed = [f"- {escaped(one_line(it, 300))}" for it in problems[:10]]
    step = (
        "Answer in a comment, one criterion a line: a test, a command's result or something that"
        " can be observed."
    )
    return "\n\n".join([head, "\n".join(listed), step])
