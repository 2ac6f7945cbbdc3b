"""Detail views as pages of lines: a story, an iteration, the history, the help.

Threads fetch them, never the drawing.  Transcripts can be large: only the last events are kept.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

import msgspec

from ralphloop.core.model import Analysis, CheckStatus, ExitDecision
from ralphloop.core.planning import decided
from ralphloop.core.proposals import Proposal
from ralphloop.core.run_state import Standing
from ralphloop.core.totals import UNKNOWN, cost_words, short_cost
from ralphloop.journal.records import IterationRecord
from ralphloop.night.look import reading
from ralphloop.night.values import StoryLook, ended_words, machine_of
from ralphloop.project import Project
from ralphloop.readers import reader_for, reader_name
from ralphloop.room import open_regular
from ralphloop.text.durations import clock, format_duration
from ralphloop.text.plain import clean, counted, number, one_line
from ralphloop.ui.console import short_duration
from ralphloop.ui.monitor.paint import Line, Tone, line

_MOST_LINES = 20_000
_LONGEST_LINE = 4_000
_MOST_LISTED = 50
_MOST_ROWS = 500
_LABEL = 14
_CHECK_TONES = dict.fromkeys(CheckStatus, Tone.GOOD) | {CheckStatus.FAILED: Tone.BAD}
_TAIL = 6  # lines of a preview
_PIECE = 1024 * 1024
_LARGEST_TEXT = 4 * 1024 * 1024


class Page(NamedTuple):
    title: str
    lines: Sequence[Line]
    # Line → run and iteration that Enter opens; iteration 0 is the run itself.
    links: Mapping[int, tuple[str, int]] = {}


def story_pages(project: Project, run: str, look: StoryLook) -> tuple[Page, ...]:
    """A story: what came of it, what is asked, what was tried; the first lines are a preview."""
    with reading(project) as journal:
        records = journal.story_iterations(run, look.story.id, _MOST_LISTED)
        every = journal.proposals()
    found = [one for one in every if one.story == look.story.id and one.is_open]
    lines = list(_what_is_known(look, records, found))
    links: dict[int, tuple[str, int]] = {}
    lines += _heading(f"Iterations on it ({len(records)}, newest first; Enter opens one)")
    for record in records:
        links[len(lines)] = (record.run, record.n)
        lines.append(iteration_row(record))
        lines.append(line((f"{'':21}{_diff(record)}", Tone.QUIET)))
    for record in records:
        if any(check.status is CheckStatus.FAILED for check in record.checks):
            lines += [*_heading("Output of the checks that failed last"), *_check_output(record)]
            break
    return (Page("Story", lines[:_MOST_LINES], links),)


def iteration_pages(project: Project, run: str, n: int) -> tuple[Page, ...]:
    with reading(project) as journal:
        record = journal.iteration(run, n)
    if record is None:
        return (text_page("Iteration", [f"there is no iteration {n} in run {run}"]),)
    prompt = _lines(project.root / record.prompt_path) if record.prompt_path else ["not kept"]
    return (
        Page("Verdict", list(_overview(record))),
        text_page("Prompt", prompt),
        text_page("Transcript", _transcript(project, record)),
        Page("Checks", list(_check_output(record)) or [line("no check ran")]),
        text_page("Final words", record.record.response.final_text.split("\n")),
    )


def history_pages(project: Project, run: str) -> tuple[Page, ...]:
    with reading(project) as journal:
        records = journal.latest_iterations(run, _MOST_ROWS)
        runs = journal.runs(_MOST_ROWS)
    links = {index: (record.run, record.n) for index, record in enumerate(records)}
    rows = [iteration_row(record) for record in records] or [line("nothing here")]
    before: list[Line] = []
    for one in runs:
        done = one.totals
        spent = short_cost(one.totals.cost_usd, one.totals.unpriced)
        row = line(
            (f"{clock(one.started_at)}  ", Tone.STRONG),
            f"{decided(one.decision or one.status, one.used_up)[:24]:<25}",
            f"{done.tasks_completed:>3} passed in {counted(done.iterations, 'iteration'):<14}",
            (f"{format_duration(done.active_s):>8}{spent:>7}  ", Tone.QUIET),
            (one_line(one.reason, 200), Tone.QUIET),
        )
        before.append(row)
    others = {index: (one.id, 0) for index, one in enumerate(runs)}
    return Page("Iterations", rows, links), Page("Runs", before, others)


def text_page(title: str, lines: Iterable[str]) -> Page:
    """Text from elsewhere, made harmless."""
    shown = [line(clean(text[:_LONGEST_LINE])) for text in lines]
    return Page(title, shown[-_MOST_LINES:] or [line("nothing here")])


def iteration_row(record: IterationRecord) -> Line:
    """One line about an iteration; of one that goes on nothing is known yet."""
    tone = _tone(record)
    name = f"{one_line(record.story or 'the prompt', 13):<14}"
    if record.finished_at is None:
        return line((f"{record.n:>5}  ", Tone.STRONG), name, ("running", tone))
    took = short_duration(record.finished_at - record.started_at)
    verdict = "; ".join(record.record.verdict.reasons) or record.decision
    machine = machine_of(record)
    where = f"on {one_line(machine, 20)}  " if machine else ""
    return line(
        (f"{record.n:>5}  ", Tone.STRONG),
        name,
        (f"{ended_words(record.outcome):<14}", tone),
        (f"{took:>7} {short_cost(record.cost_usd, record.unpriced):>8}  ", Tone.QUIET),
        (where, Tone.PLAIN),
        (one_line(verdict, 200), tone),
    )


def _what_is_known(
    look: StoryLook, records: Iterable[IterationRecord], found: Iterable[Proposal]
) -> Iterator[Line]:
    state = look.state
    standing = look.standing.replace("_", " ")
    story = look.story
    is_asked = look.standing is Standing.BLOCKED
    yield line((f"{one_line(story.id, 80)}  {one_line(story.title, 300)}", Tone.STRONG))
    yield from _field("standing", f"{standing} ({look.grade})" if look.grade else standing)
    yield from _field("waits", look.waits)
    why, tone = ("asks", Tone.WARN) if is_asked else ("why", Tone.PLAIN)
    yield from _field(why, state.reason, tone)
    yield from _field("attempts", f"{look.failed} failed" if look.failed else "")
    if state.totals.iterations:
        yield from _field("cost", cost_words(state.totals.cost_usd, state.totals.unpriced))
    yield from _field("to answer", state.notes.findings, Tone.WARN)
    yield from _field("its doubt", state.notes.doubted, Tone.WARN)
    yield from _field("it found", [f"{one.id}: {one.text}" for one in found], Tone.WARN)
    yield from _field("bring back", look.bring_back)
    for record in [one for one in records if one.finished_at is not None][:1]:
        for check in record.checks:
            if check.status is CheckStatus.FAILED:
                yield from _field("failed", check.failing_tests[:3] or check.name, Tone.BAD)
                yield from list(_text(check.output_tail))[-_TAIL:]
        said = (record.record.response.final_text or "").split("---RALPH_STATUS---")[0].strip()
        yield from _field("last words", said.split("\n")[-_TAIL:])
        yield from _field("changed", f"{_diff(record)} in iteration {record.n}")
    if story.description or story.criteria:
        yield from _heading("What is asked")
    yield from _text(story.description) if story.description else ()
    yield from (line(f"  · {one_line(text, 1_000)}") for text in story.criteria)
    yield from _field("depends on", ", ".join(story.depends_on))
    yield from _field("proved by", " ".join(story.verify or ()))
    yield from _field("notes", story.notes)


def _overview(record: IterationRecord) -> Iterator[Line]:
    kept = record.record
    end = record.finished_at
    where = f" on {one_line(record.story or 'the prompt', 80)}, attempt {record.attempt}"
    took = short_duration(end - record.started_at) if end else "not finished"
    yield line((f"Iteration {record.n}", Tone.STRONG), where)
    yield from _field("when", f"{clock(record.started_at)}, {took}")
    yield from _field("outcome", ended_words(record.outcome) or "running", _tone(record))
    if end is None:
        yield from _field("verdict", "none before it has ended")
        return
    yield from _field("machine", machine_of(record))
    yield from _field("", kept.why_it_ended)
    yield from _heading("Decision")
    goes_on = record.decision == ExitDecision.CONTINUE
    yield from _field("decision", "the run goes on" if goes_on else decided(record.decision))
    yield from _field("because", kept.decision.reasons)
    yield from _field("story", "passed" if kept.verdict.passed else "not passed")
    yield from _field("because", kept.verdict.reasons)
    yield from _heading("Evidence: what we measured")
    yield from _field("changed", _diff(record))
    yield from _field("", kept.evidence.work_files or (), Tone.QUIET)
    yield from _field("commits", kept.changed.subjects)
    for check in record.checks:
        told = f"{check.status.replace('_', ' ')}: {check.name}"
        yield from _field("check", told, _CHECK_TONES[check.status])
    yield from _field("tampering", kept.findings, Tone.WARN)
    yield from _field("tolerated", kept.tolerated, Tone.WARN)
    yield from _field("left behind", kept.leftovers, Tone.WARN)
    yield from _analysis(kept.analysis)
    yield from _heading("Spent")
    about = "~" if record.cost_estimated else ""
    yield from _field("cost", f"{about}{cost_words(record.cost_usd, record.unpriced)}")
    tokens = UNKNOWN
    if record.total_tokens:
        tokens = f"{number(record.input_tokens)} in, {number(record.output_tokens)} out"
        tokens = f"{tokens}, {number(record.cache_read_tokens)} read from cache"
    yield from _field("tokens", tokens)
    yield from _field("tool calls", str(kept.response.tool_call_count or ""))
    size = kept.prompt.characters
    yield from _field("prompt", f"{size} characters" if size else "")
    yield from _field("left out", kept.prompt.left_out, Tone.WARN)


def _analysis(found: Analysis) -> Iterator[Line]:
    yield from _heading("Analysis: claim against evidence")
    claims = msgspec.to_builtins(found.status).items() if found.status else ()
    said = [f"{key.replace('_', ' ')}: {value}" for key, value in claims]
    yield from _field("claim", said or "no status block")
    yield from _field("progress", found.progress_reasons or "none")
    signs = msgspec.to_builtins(found.indicators).items()
    says = [key.replace("_", " ") for key, is_said in signs if is_said is True]
    yield from _field("says done", ", ".join(says) or "nothing")
    yield from _field("confidence", str(found.confidence or ""))
    yield from _field("error", found.error_signature or "", Tone.WARN)
    yield from _field("stuck", [pattern.detail for pattern in found.stuck], Tone.WARN)
    yield from _field("warning", found.warnings, Tone.WARN)
    if moved := found.transition:
        yield from _field("circuit", f"{moved.before} → {moved.after}: {moved.reason}", Tone.WARN)


def _diff(record: IterationRecord) -> str:
    changed = record.record.changed
    if not changed.count:
        return "nothing changed" if record.finished_at else "not measured yet"
    return f"{counted(changed.count, 'file')}, +{changed.insertions} −{changed.deletions}"


def _check_output(record: IterationRecord) -> Iterator[Line]:
    for check in record.checks:
        words = f"{one_line(check.name, 300)}: {check.status.replace('_', ' ')}"
        yield line((words, _CHECK_TONES[check.status]))
        yield from _text(check.output_tail)


def _tone(record: IterationRecord) -> Tone:
    if record.finished_at is None:
        return Tone.BUSY
    if record.record.verdict.passed:
        return Tone.GOOD
    claimed = record.record.analysis.story_claimed
    return Tone.WARN if claimed or record.outcome != "completed" else Tone.PLAIN


def _heading(text: str) -> Iterator[Line]:
    yield ()
    yield line((text, Tone.STRONG))


def _field(label: str, value: str | Sequence[str], tone: Tone = Tone.PLAIN) -> Iterator[Line]:
    """What is known under a label, one line each; nothing where nothing is."""
    values = [value] if isinstance(value, str) else value[:_MOST_LISTED]
    for text in filter(None, (one_line(text, 2_000) for text in values)):
        yield line((f"  {label:<{_LABEL}}", Tone.QUIET), (text, tone))
        label = ""


def _text(text: object) -> Iterator[Line]:
    for row in clean(str(text or "")).split("\n")[-_MOST_LINES:]:
        yield line(f"  {row[:_LONGEST_LINE]}")


def _lines(path: Path) -> Iterator[str]:
    try:
        with open_regular(path) as file:
            text = file.read(_LARGEST_TEXT).decode("utf-8", "replace")
    except OSError as error:
        text = f"cannot be read: {error.strerror or error}"
    yield from text.splitlines()


def _transcript(project: Project, record: IterationRecord) -> Iterator[str]:
    """The agent's visible steps; plain text as it is."""
    path = project.transcripts / record.run / f"{record.n}.log"
    name = record.record.response.reader
    if name == "text":
        yield from _lines(path)
        return
    reader = reader_for(reader_name(name))
    steps: deque[str] = deque(maxlen=_MOST_LINES)
    try:
        with open_regular(path) as file:
            while piece := file.read(_PIECE):
                for event in reader.feed(piece):
                    mark = "✗ " if event.ok is False else ""
                    kind = {"tool_result": "result"}.get(event.kind, event.kind)
                    steps.append(f"{kind:>8}  {mark}{one_line(event.summary, 2_000)}")
    except OSError as error:
        steps.append(f"cannot be read: {error.strerror or error}")
    yield from steps or _lines(path)
