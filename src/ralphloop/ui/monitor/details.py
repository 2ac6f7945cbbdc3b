"""Fetching what the detail views show; called from threads, never from the drawing.

Transcripts can be large: they are read in pieces, as events, and only the last ones are kept.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from pathlib import Path

from ralphloop.journal.records import IterationRecord
from ralphloop.night.past import reading
from ralphloop.night.values import StoryLook
from ralphloop.project import Project
from ralphloop.readers import reader_for, reader_name
from ralphloop.text.plain import one_line
from ralphloop.ui.monitor.pages import (
    MOST_LINES,
    Page,
    iteration_pages,
    iteration_row,
    run_row,
    story_page,
    text_page,
)

_PIECE = 1024 * 1024
_LARGEST_TEXT = 4 * 1024 * 1024
_SHOWN = 500


def story_pages(project: Project, run: str, look: StoryLook) -> tuple[Page, ...]:
    """One story with its iterations."""
    with reading(project) as journal:
        return (story_page(look, journal.story_iterations(run, look.story.id, 50)),)


def iteration(project: Project, run: str, n: int) -> tuple[Page, ...]:
    """One iteration with its prompt and its transcript."""
    with reading(project) as journal:
        record = journal.iteration(run, n)
    if record is None:
        return (text_page("Iteration", [f"there is no iteration {n} in run {run}"]),)
    prompt = _lines(project.root / record.prompt_path) if record.prompt_path else ["not kept"]
    return iteration_pages(record, prompt, _transcript(project, record))


def history(project: Project, run: str) -> tuple[Page, ...]:
    """The newest iterations of a run, and the runs before it."""
    with reading(project) as journal:
        records, runs = journal.latest_iterations(run, _SHOWN), journal.runs(_SHOWN)
    links = {index: (record.run, record.n) for index, record in enumerate(records)}
    others = {index: (one.id, 0) for index, one in enumerate(runs)}
    rows = tuple(iteration_row(record) for record in records)
    return (
        Page(title="Iterations", lines=rows or text_page("", []).lines, links=links),
        Page(title="Runs", lines=tuple(run_row(one) for one in runs), links=others),
    )


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open("rb") as file:
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
    steps: deque[str] = deque(maxlen=MOST_LINES)
    try:
        with path.open("rb") as file:
            while piece := file.read(_PIECE):
                for event in reader.feed(piece):
                    mark = "✗ " if event.ok is False else ""
                    steps.append(f"{event.kind:>12}  {mark}{one_line(event.summary, 2_000)}")
    except OSError as error:
        steps.append(f"cannot be read: {error.strerror or error}")
    yield from steps or _lines(path)
