"""Detail views as pages of lines: a story, an iteration, the history.  Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import msgspec

from ralphloop.core.model import CheckResult, CheckStatus
from ralphloop.core.story import Story
from ralphloop.core.totals import cost_words, short_cost
from ralphloop.journal.records import IterationRecord, RunRecord
from ralphloop.night.values import StoryLook
from ralphloop.text.durations import format_duration, iso
from ralphloop.text.plain import clean, one_line
from ralphloop.ui.lines import short_duration
from ralphloop.ui.monitor.paint import line, number
from ralphloop.ui.monitor.values import Line, Shown, Tone

MOST_LINES = 20_000
_LONGEST_LINE = 4_000
_MOST_LISTED = 50
_LABEL = 14


class Page(Shown):
    title: str
    lines: tuple[Line, ...]
    # Line → run and iteration that Enter opens; iteration 0 is the run itself.
    links: dict[int, tuple[str, int]] = msgspec.field(default_factory=dict)


def story_page(look: StoryLook, records: Sequence[IterationRecord]) -> Page:
    """A story: what is asked, what was tried, what came of it."""
    lines = [*_what_is_asked(look.story), *_what_is_known(look)]
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
    return Page(title="Story", lines=tuple(lines[:MOST_LINES]), links=links)


def iteration_pages(
    record: IterationRecord, prompt: Iterable[str], transcript: Iterable[str]
) -> tuple[Page, ...]:
    """An iteration: what came of it and why, its prompt, its transcript, its checks."""
    return (
        Page(title="Verdict", lines=tuple(_overview(record))),
        text_page("Prompt", prompt),
        text_page("Transcript", transcript),
        Page(title="Checks", lines=tuple(_check_output(record)) or (line("no check ran"),)),
        text_page("Final words", record.record.response.final_text.split("\n")),
    )


def text_page(title: str, lines: Iterable[str]) -> Page:
    """Text from elsewhere, made harmless."""
    shown = tuple(line(clean(text[:_LONGEST_LINE])) for text in lines)
    return Page(title=title, lines=shown[-MOST_LINES:] or (line("nothing here"),))


def iteration_row(record: IterationRecord) -> Line:
    """One iteration on one line: number, story, ending, time, cost, verdict."""
    tone = _tone(record)
    took = short_duration((record.finished_at or record.started_at) - record.started_at)
    verdict = "; ".join(record.record.verdict.reasons) or record.decision
    return line(
        (f"{record.n:>5}  ", Tone.STRONG),
        f"{one_line(record.story or 'the prompt', 13):<14}",
        (f"{record.outcome or 'running':<13}", tone),
        (f"{took:>7} {short_cost(record.cost_usd, record.unpriced):>8}  ", Tone.QUIET),
        (one_line(verdict, 200), tone),
    )


def run_row(run: RunRecord) -> Line:
    """One run on one line."""
    totals = run.totals
    spent = short_cost(totals.cost_usd, totals.unpriced)
    return line(
        (f"{_moment(run.started_at)[:16]}  ", Tone.STRONG),
        f"{run.decision or run.status:<17}{totals.tasks_completed:>3} passed",
        f"{totals.iterations:>5} iterations",
        (f"{format_duration(totals.active_s):>8}{spent:>7}  ", Tone.QUIET),
        (one_line(run.reason, 200), Tone.QUIET),
    )


def _what_is_asked(story: Story) -> Iterator[Line]:
    yield line((f"{one_line(story.id, 80)}  {one_line(story.title, 300)}", Tone.STRONG))
    yield from _text(story.description)
    if story.criteria:
        yield from _heading("Acceptance criteria")
        yield from (line(f"  · {one_line(text, 1_000)}") for text in story.criteria)
    yield from _field("depends on", ", ".join(story.depends_on))
    yield from _field("proved by", " ".join(story.verify or ()))
    yield from _field("notes", story.notes)


def _what_is_known(look: StoryLook) -> Iterator[Line]:
    yield from _heading("Where it stands")
    state, standing = look.state, look.standing.replace("_", " ")
    yield from _field("standing", f"{standing} ({look.grade})" if look.grade else standing)
    yield from _field("why", state.reason)
    yield from _field("attempts", f"{look.failed} failed")
    yield from _field("cost", cost_words(state.cost_usd, state.unpriced))
    yield from _listed("to answer", state.findings, Tone.WARN)
    yield from _field("bring back", look.bring_back)


def _overview(record: IterationRecord) -> Iterator[Line]:
    where = f" on {one_line(record.story or 'the prompt', 80)}, attempt {record.attempt}"
    yield line((f"Iteration {record.n}", Tone.STRONG), where)
    end = record.finished_at
    took = short_duration(end - record.started_at) if end else "not finished"
    yield from _field("when", f"{_moment(record.started_at)}, {took}")
    yield from _field("outcome", record.outcome or "running", _tone(record))
    yield from _field("", record.record.why_it_ended)
    yield from _heading("Decision")
    yield from _field("decision", record.decision)
    yield from _listed("because", record.record.decision.reasons)
    yield from _field("story", "passed" if record.record.verdict.passed else "not passed")
    yield from _listed("because", record.record.verdict.reasons)
    yield from _evidence(record)
    yield from _analysis(record)
    yield from _spent(record)


def _evidence(record: IterationRecord) -> Iterator[Line]:
    yield from _heading("Evidence: what we measured")
    yield from _field("changed", _diff(record))
    yield from _listed("", record.record.evidence.work_files or (), Tone.QUIET)
    yield from _listed("commits", record.record.changed.subjects)
    for check in record.checks:
        yield from _field("check", f"{check.status}: {check.name}", _check_tone(check))
    kept = record.record
    yield from _listed("tampering", kept.findings, Tone.WARN)
    yield from _listed("tolerated", kept.tolerated, Tone.WARN)
    yield from _listed("left behind", kept.leftovers, Tone.WARN)


def _analysis(record: IterationRecord) -> Iterator[Line]:
    yield from _heading("Analysis: claim against evidence")
    found = record.record.analysis
    claims = (
        [f"{_words(key)}: {value}" for key, value in msgspec.to_builtins(found.status).items()]
        if found.status
        else []
    )
    yield from _listed("claim", claims or ["no status block"])
    yield from _listed("progress", found.progress_reasons or ["none"])
    says = [
        _words(key) for key, fact in msgspec.to_builtins(found.indicators).items() if fact is True
    ]
    yield from _field("says done", ", ".join(says) or "nothing")
    yield from _field("confidence", found.confidence or None)
    yield from _field("error", found.error_signature, Tone.WARN)
    yield from _listed("stuck", [pattern.detail for pattern in found.stuck], Tone.WARN)
    yield from _listed("warning", found.warnings, Tone.WARN)
    if moved := found.transition:
        yield from _field("circuit", f"{moved.before} → {moved.after}: {moved.reason}", Tone.WARN)


def _spent(record: IterationRecord) -> Iterator[Line]:
    yield from _heading("Spent")
    yield from _field(
        "cost",
        f"{'~' if record.cost_estimated else ''}{cost_words(record.cost_usd, record.unpriced)}",
    )
    tokens = f"{number(record.input_tokens)} in, {number(record.output_tokens)} out"
    yield from _field("tokens", f"{tokens}, {number(record.cache_read_tokens)} read from cache")
    yield from _field("tool calls", record.record.response.tool_calls or None)
    if characters := record.record.prompt.characters:
        yield from _field("prompt", f"{characters} characters")
    yield from _listed("left out", record.record.prompt.left_out, Tone.WARN)


def _diff(record: IterationRecord) -> str:
    changed = record.record.changed
    if not changed.count:
        return "nothing changed" if record.finished_at else "not measured yet"
    return f"{changed.count} files, +{changed.insertions} −{changed.deletions}"


def _check_output(record: IterationRecord) -> Iterator[Line]:
    for check in record.checks:
        yield line((f"{one_line(check.name, 300)}: {check.status}", _check_tone(check)))
        yield from _text(check.output_tail)


def _check_tone(check: CheckResult) -> Tone:
    return Tone.BAD if check.status is CheckStatus.FAILED else Tone.GOOD


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


def _field(label: str, value: object, tone: Tone = Tone.PLAIN) -> Iterator[Line]:
    words = one_line(str(value), 2_000) if value is not None else ""
    if words:
        yield line((f"  {label:<{_LABEL}}", Tone.QUIET), (words, tone))


def _listed(label: str, values: Sequence[str], tone: Tone = Tone.PLAIN) -> Iterator[Line]:
    for place, value in enumerate(values[:_MOST_LISTED]):
        yield from _field(label if place == 0 else "", value, tone)


def _text(text: object) -> Iterator[Line]:
    for row in clean(str(text or "")).split("\n")[-MOST_LINES:]:
        yield line(f"  {row[:_LONGEST_LINE]}")


def _words(key: str) -> str:
    return key.replace("_", " ")


def _moment(at: float) -> str:
    try:
        return iso(at).replace("T", " ").removesuffix("Z") + " UTC"
    except ValueError:
        return "an unknown time"
