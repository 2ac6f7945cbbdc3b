"""`ralph log`: transcripts, read in pieces and shown as they come, whatever their size."""

import codecs
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING

import click

from ralphloop.cli import output
from ralphloop.cli.shared.options import complete_run, complete_story
from ralphloop.core.events import AgentStep
from ralphloop.core.model import CheckStatus, ExitDecision
from ralphloop.core.planning import ended
from ralphloop.core.run_state import LanesState
from ralphloop.core.totals import spent_words
from ralphloop.errors import InputError, NothingRan, UsageError
from ralphloop.journal.records import IterationRecord, RunRecord
from ralphloop.night.look import config_of, find_run, holder_of, reading
from ralphloop.night.values import ended_words, machine_of
from ralphloop.project import Project, find_project
from ralphloop.readers import reader_for, reader_name
from ralphloop.readers.stream import Reader
from ralphloop.room import open_regular
from ralphloop.stories.names import label
from ralphloop.text.durations import clock_time, elapsed, format_duration
from ralphloop.text.plain import clean, counted

if TYPE_CHECKING:
    from ralphloop.journal.queries import Queries

_CHUNK = 1 << 16
_STEP_S = 0.25
_MOST_ITERATIONS = 1_000
_INDENT = 4
_LONGEST_LINE = 4_000
_MOST_WORDS = 8_000
_MOST_OUTPUT = 20  # lines of a failed check


@click.command()
@click.option("-f", "--follow", is_flag=True, help="Go on showing until the run ends.")
@click.option(
    "--story",
    metavar="ID",
    shell_complete=complete_story,
    help="Only the iterations on this story.",
)
@click.option("--iteration", type=click.IntRange(min=1), metavar="N", help="Only this iteration.")
@click.option(
    "--run",
    "run_id",
    metavar="RUN",
    shell_complete=complete_run,
    help="Of this run; default: the newest.",
)
@click.option("--raw", is_flag=True, help="Byte for byte, whatever a terminal makes of it.")
@click.option("--yes", is_flag=True, help="With --raw: on a terminal, too.")
@click.option("--prompt", is_flag=True, help="What the agent was told, instead of what it said.")
@click.option("--stderr", is_flag=True, help="Its error output instead.")
def log(
    follow: bool,
    story: str | None,
    iteration: int | None,
    run_id: str | None,
    raw: bool,
    yes: bool,
    prompt: bool,
    stderr: bool,
) -> None:
    """Show transcripts: the newest iteration, or those that are asked for."""
    if prompt and stderr:
        raise UsageError("--prompt and --stderr exclude each other", "ralph log --help")
    if raw and not yes and sys.stdout.isatty():
        told = "what an agent printed can do anything to a terminal that another program can"
        raise UsageError(told, "ralph log --raw > file, or ralph log --raw --yes")
    project = find_project()
    with reading(project) as journal:
        run = find_run(journal, run_id)
        if run is None:
            raise NothingRan
        part = "prompt.md" if prompt else "log.stderr" if stderr else "log"
        reader = _LogReader(project, journal, run, story, part, raw, follow)
        wanted = reader.wanted(iteration)
        for record in wanted:
            reader.show(record)
        if follow:
            reader.follow(wanted[-1].n if wanted else 0, only=iteration)
        elif not wanted:
            output.emit_lines([f"Run {run.id} has not started an iteration yet."])


@dataclass(frozen=True)
class _LogReader:
    project: Project
    journal: "Queries"
    run: RunRecord
    story: str | None
    part: str  # which file of an iteration
    raw: bool  # shown as it is
    following: bool

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
            told = f"no iteration of run {self.run.id} worked on {label(self.story)}"
            raise UsageError(told, "`ralph stories` lists the stories.")
        return newest[::-1]

    def follow(self, after: int, *, only: int | None) -> None:
        """Show the iterations that come, unless one alone is wanted, and how the run ends."""
        told = 0  # the wait that was told last
        while only is None:
            # In this order: what was started before the run ended is still shown.
            live = self._is_live()
            coming = self.journal.iterations(self.run.id, after=after, limit=1, brief=True)
            if coming:
                after = coming[0].n
                if self.story in (None, coming[0].story):
                    self.show(coming[0])
            elif not live:
                break
            else:
                wait = self.journal.open_wait(self.run.id)
                if wait is not None and wait.id != told:
                    told = wait.id
                    left = format_duration(max(0.0, wait.until - time.time()))
                    words = f"{left}, until {clock_time(wait.until, time.time())}: {wait.reason}"
                    output.emit_lines(output.row("waiting", words, "yellow"))
                    sys.stdout.flush()
                time.sleep(_STEP_S)
        run = self.journal.find_run(self.run.id) or self.run
        words = (
            f"ended: {ended(run.decision, run.reason, run.used_up)}"
            if run.decision
            else "does not go on."
        )
        output.emit_lines(output.row("run", f"{run.id} {words}", "bold"))

    def show(self, record: IterationRecord) -> None:
        """Show one iteration, as it is now or as it goes on."""
        # Error output has a file only if there was any; the transcript tells if it was kept.
        kept = self._path(record, self.part.removesuffix(".stderr"))
        if not self.following and not kept.exists():
            told = f"the transcript of iteration {record.n} of run {record.run} is gone"
            step = "`ralph clean` removes old ones; the journal knows: `ralph status --json`."
            if self.run.mode == "hook":
                told = f"run {record.run} went on inside an agent session, which keeps its own"
                step = f"Open session {self.run.session}; what came of it: `ralph report`."
            raise InputError(told, step)
        if self.raw or self.part != "log":
            decoder = codecs.getincrementaldecoder("utf-8")("replace")
            for chunk in self._pieces(record):
                if self.raw:
                    output.emit_bytes(chunk)
                else:
                    output.emit_text(decoder.decode(chunk))
                sys.stdout.flush()
            return
        story = label(record.story) if record.story else "the prompt"
        attempt = f", attempt {record.attempt}" if record.attempt > 1 else ""
        when = clock_time(record.started_at, time.time())
        machine = machine_of(record, self.journal.part(LanesState, self.run.id))
        where = f", on {machine}" if machine else ""
        words = f"iteration {record.n}: {story}{attempt}, {when}{where}"
        output.emit_lines([output.paint(output.safe(words), "bold")])
        for lines in self._transcript(record):
            output.emit_lines(lines)
            sys.stdout.flush()
        output.emit_lines(_footer(self._now(record), live=self._is_live()))

    def _transcript(self, record: IterationRecord) -> Iterator[Iterable[str]]:
        # Who can read it is known at the end, before that by the settings.
        agent = config_of(self.project, self.run).agent
        pieces = self._pieces(record)
        name = reader_name(record.record.response.reader or agent.name, agent.format)
        if name == "auto":
            # Agents that print events begin with one; everything else is a text.
            first = next(filter(bytes.strip, pieces), b"")
            name = "auto" if first.lstrip()[:1] in (b"{", b"[") else "text"
            pieces = chain([first], pieces)
        if name == "text":
            return _text(pieces)
        return _steps(
            pieces, reader_for(name), lambda: self._now(record).record.response.final_text
        )

    def _path(self, record: IterationRecord, part: str) -> Path:
        return self.project.transcripts / self.run.id / f"{record.n}.{part}"

    def _pieces(self, record: IterationRecord) -> Iterator[bytes]:
        """The content of a file that may still grow, until it is over; nothing while it rests."""
        path = self._path(record, self.part)
        offset = 0
        while True:
            # Asked first: what was written until then is read.
            over = not self.following or not self._is_live() or self._now(record).finished_at
            with suppress(FileNotFoundError), open_regular(path) as file:  # not yet, or no more
                file.seek(offset)
                while chunk := file.read(_CHUNK):
                    offset += len(chunk)
                    yield chunk
            if over:
                return
            time.sleep(_STEP_S)
            yield b""

    def _now(self, record: IterationRecord) -> IterationRecord:
        return self.journal.iteration(self.run.id, record.n) or record

    def _is_live(self) -> bool:
        return holder_of(self.project, time.time(), self.run.id) is not None


def _footer(record: IterationRecord, *, live: bool) -> Iterator[str]:
    if record.finished_at is None:
        yield from output.row("", "it goes on" if live else "it was cut off", width=2)
        return
    took = format_duration(elapsed(record.started_at, record.finished_at))
    files = f"{counted(record.files_modified, 'file')} changed"
    files = files if record.files_modified else "no change"
    by = f", {record.record.by}" if record.record.model else ""
    spent = spent_words(record.cost_usd, record.unpriced)
    machine = machine_of(record)
    where = f" on {machine}" if machine else ""
    words = f"{ended_words(record.outcome)} in {took}{where}{by}, {spent}, {files}"
    yield from output.row("=", words, "bold", width=2)
    for check in record.checks:
        flaky = ", at the second try" if check.flaky else ""
        words = f"check {check.name}: {check.status.replace('_', ' ')}{flaky}"
        yield from output.row("", words, width=2)
        if check.status is CheckStatus.FAILED:
            lines = clean(check.output_tail).strip().splitlines()[-_MOST_OUTPUT:]
            yield from (_indented(line[:_LONGEST_LINE]) for line in lines)
    verdict = record.record.verdict
    reasons = record.record.decision.reasons
    if verdict.reasons:
        word = "passed" if verdict.passed else "not passed"
        yield from output.row("", f"story {word}: {'; '.join(verdict.reasons)}", width=2)
    if record.decision != ExitDecision.CONTINUE:
        limit = record.record.decision.limit
        words = f"the run ended: {ended(record.decision, '; '.join(reasons), limit)}"
        yield from output.row("", words, width=2)


def _text(pieces: Iterable[bytes]) -> Iterator[list[str]]:
    """The lines of a text that arrives in pieces; no piece of it is kept for long."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    rest = ""
    for chunk in pieces:
        *lines, rest = (rest + decoder.decode(chunk)).split("\n")
        while len(rest) > _LONGEST_LINE:
            lines.append(rest[:_LONGEST_LINE])
            rest = rest[_LONGEST_LINE:]
        yield [*map(_indented, lines)]
    if rest.strip():
        yield [_indented(rest)]


def _steps(
    pieces: Iterable[bytes], reader: Reader, final_words: Callable[[], str]
) -> Iterator[Iterable[str]]:
    """What an agent did.  A step is held back until another follows it: the last words are shown
    in full at the end."""
    held = None
    seen = False
    for chunk in pieces:
        for event in reader.feed(chunk):
            if event.kind == "result" and held is not None and event.ok is not False:
                continue  # it repeats the last words
            yield _step(held)
            held = event
            seen = True
        if not chunk:  # nothing comes for now
            yield _step(held)
            held = None
    words = final_words() or ("" if seen else reader.finish(exit_code=None).text)
    words = clean(words[-_MOST_WORDS:]).strip()
    if not words or (held and held.kind not in ("text", "result")):
        yield _step(held)
    yield [_indented(f"| {line[:_LONGEST_LINE]}") for line in words.split("\n") if words]


def _step(event: AgentStep | None) -> Iterator[str]:
    if event is None or (event.kind == "tool_result" and event.ok is not False):
        return
    mark = "  !" if event.ok is False else ""
    words = event.summary
    if event.kind == "text":
        words = words.split("---RALPH_STATUS---")[0]
    elif event.kind == "tool":
        mark = "  >"
    else:
        kind = {"tool_result": "failed: ", "limit": "", "result": ""}
        words = f"{kind.get(event.kind, f'{event.kind}: ')}{words}"
    yield from output.row(mark, words, *(["red"] if "!" in mark else []), width=_INDENT)


def _indented(line: str) -> str:
    shown = clean(line).replace("\n", " ").rstrip()
    return " " * _INDENT + shown if shown else ""
