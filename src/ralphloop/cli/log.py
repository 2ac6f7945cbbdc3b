"""`ralph log`: what the agent said and did, from the transcripts of a run.

A transcript is read in pieces and shown as it comes, so its size does not matter.  Following goes
on from one iteration to the next until the run ends.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.cli.log_view import LogView, footer, header
from ralphloop.core.policy import Mode
from ralphloop.errors import InputError, UsageError
from ralphloop.journal.lock import live_holder
from ralphloop.journal.queries import JournalReader
from ralphloop.journal.records import IterationRecord, RunRecord, Wait
from ralphloop.night.past import find_run
from ralphloop.project import Project, find_project
from ralphloop.stories.names import label
from ralphloop.text.durations import format_duration, iso

_CHUNK = 1 << 16
_STEP_S = 0.25
_MOST_ITERATIONS = 1_000


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on showing until the run ends.")
@click.option("--story", metavar="ID", help="Only the iterations on this story.")
@click.option("--iteration", type=click.IntRange(min=1), metavar="N", help="Only this iteration.")
@click.option("--run", "run_id", metavar="RUN", help="Of this run; default: the newest.")
@click.option("--raw", is_flag=True, help="The agent's output byte for byte.")
@click.option("--prompt", is_flag=True, help="What the agent was told, instead of what it said.")
@click.option("--stderr", is_flag=True, help="Its error output instead.")
def log(
    follow: bool,
    story: str | None,
    iteration: int | None,
    run_id: str | None,
    raw: bool,
    prompt: bool,
    stderr: bool,
) -> None:
    """Show transcripts: the newest iteration, or those that are asked for."""
    if prompt and stderr:
        raise UsageError("--prompt and --stderr exclude each other", "ralph log --help")
    project = find_project()
    with JournalReader.open(project.journal) as journal:
        run = find_run(journal, run_id)
        if run is None:
            output.emit_lines(["Nothing was run here yet."])
            return
        part = "prompt.md" if prompt else "log.stderr" if stderr else "log"
        plain = raw or part != "log"
        reader = _LogReader(project, journal, run, story, part, plain)
        wanted = reader.wanted(iteration)
        if follow:
            reader.follow(wanted, only=iteration)
        else:
            reader.show_all(wanted)


@dataclass(frozen=True)
class _LogReader:
    """The transcripts of one run."""

    project: Project
    journal: JournalReader
    run: RunRecord
    story: str | None
    part: str  # which file of an iteration
    plain: bool  # shown as it is

    def wanted(self, iteration: int | None) -> list[IterationRecord]:
        """The iterations that were asked for, oldest first."""
        if iteration is not None:
            if found := self.journal.iteration(self.run.id, iteration):
                return [found]
            last = self.journal.next_number(self.run.id) - 1
            there = f"There are 1 to {last}." if last else "It has not started one yet."
            raise UsageError(f"run {self.run.id} has no iteration {iteration}", there)
        if self.story is None:
            return self.journal.latest_iterations(self.run.id, 1)
        newest = self.journal.story_iterations(self.run.id, self.story, _MOST_ITERATIONS)
        if not newest and not self._is_live():
            raise UsageError(
                f"no iteration of run {self.run.id} worked on {label(self.story)}",
                "`ralph stories` lists the stories.",
            )
        return newest[::-1]

    def show_all(self, records: list[IterationRecord]) -> None:
        """Show iterations as they are now."""
        if not records:
            output.emit_lines([f"Run {self.run.id} has not started an iteration yet."])
        for record in records:
            # Error output has a file only if there was any; the transcript tells if it was kept.
            if not self._path(record, self.part.removesuffix(".stderr")).exists():
                raise self._gone(record)
            self._show(record, is_over=lambda: True)

    def follow(self, records: list[IterationRecord], *, only: int | None) -> None:
        """Show iterations as they go on, then those that come."""
        after = 0
        for record in records:
            self._show(record, is_over=self._over(record))
            after = record.n
        waited: Wait | None = None
        while only is None:
            # In this order: what was started before the run ended is still shown.
            live = self._is_live()
            coming = self.journal.iterations(self.run.id, after=after, limit=1, brief=True)
            if coming:
                after = coming[0].n
                if self.story in (None, coming[0].story):
                    self._show(coming[0], is_over=self._over(coming[0]))
            elif not live:
                break
            else:
                waited = self._tell_wait(waited)
                time.sleep(_STEP_S)
        output.emit_lines(self._end())

    def _show(self, record: IterationRecord, *, is_over: Callable[[], bool]) -> None:
        path = self._path(record, self.part)
        if self.plain:
            for chunk in _pieces(path, is_over):
                output.emit_bytes(chunk)
                output.flush()
            return
        output.emit_lines(header(record))
        view = LogView(record, self.run)
        for chunk in _pieces(path, is_over):
            output.emit_lines(view.feed(chunk))
            output.flush()
        now = self.journal.iteration(self.run.id, record.n) or record
        output.emit_lines([*view.rest(now), *footer(now, live=self._is_live())])

    def _path(self, record: IterationRecord, part: str) -> Path:
        return self.project.transcripts / self.run.id / f"{record.n}.{part}"

    def _over(self, record: IterationRecord) -> Callable[[], bool]:
        def is_over() -> bool:
            if not self._is_live():
                return True
            now = self.journal.iterations(self.run.id, after=record.n - 1, limit=1, brief=True)
            return not now or now[0].finished_at is not None

        return is_over

    def _is_live(self) -> bool:
        holder = live_holder(self.project.directory, time.time())
        return holder is not None and holder.run == self.run.id

    def _tell_wait(self, told: Wait | None) -> Wait | None:
        """Say once for each wait that there is one, and until when."""
        wait = self.journal.open_wait(self.run.id)
        if wait is not None and (told is None or told.id != wait.id):
            left = format_duration(max(0.0, wait.until - time.time()))
            words = f"{left}, until {iso(wait.until)}: {wait.reason}"
            output.emit_lines(output.row("waiting", words, "yellow"))
            output.flush()
        return wait or told

    def _end(self) -> Iterator[str]:
        run = self.journal.find_run(self.run.id) or self.run
        reason = f": {run.reason}" if run.reason else ""
        words = f"ended: {run.decision}{reason}" if run.decision else "does not go on."
        return output.row("run", f"{run.id} {words}", "bold")

    def _gone(self, record: IterationRecord) -> InputError:
        if self.run.mode == Mode.HOOK:
            return InputError(
                f"run {record.run} went on inside an agent session, which keeps its own words",
                f"Open session {self.run.session}; what came of each turn: `ralph report`.",
            )
        return InputError(
            f"the transcript of iteration {record.n} of run {record.run} is gone",
            "`ralph clean` removes old ones; the journal still knows: `ralph status --json`.",
        )


def _pieces(path: Path, is_over: Callable[[], bool]) -> Iterator[bytes]:
    """The content of a file that may still grow, until it is over; nothing while it rests."""
    offset = 0
    while True:
        over = is_over()  # asked before reading: what was written until then is read
        with suppress(FileNotFoundError), path.open("rb") as file:  # not written yet, or no more
            file.seek(offset)
            while chunk := file.read(_CHUNK):
                offset += len(chunk)
                yield chunk
        if over:
            return
        time.sleep(_STEP_S)
        yield b""
