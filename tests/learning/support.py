"""A project that has learned something, made of real files, a real journal and real git."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from ralphloop.core.model import Story
from ralphloop.core.totals import Expense
from ralphloop.journal.journal import Journal
from ralphloop.journal.records import FinishedIteration, IterationRecord, RunRecord
from ralphloop.learning import store
from ralphloop.learning.aggregate import aggregate
from ralphloop.learning.model import Index, Learning, Note, NoteKind, NoteSource
from ralphloop.project import Project
from ralphloop.text.durations import iso

NOON = 1_794_744_000.0
RUN = "20261115-120000-abcdef"


def story(story_id: str = "US-1", title: str = "Add the export", **fields: Any) -> Story:
    """A story as the list has it."""
    return Story(id=story_id, title=title, **{"index": 0, **fields})


def note(text: str, **fields: Any) -> Note:
    """Something discovered."""
    return Note(**{"kind": NoteKind.DISCOVERY, "text": text, **fields})


def measured(text: str, **fields: Any) -> Note:
    """Something we saw ourselves."""
    return note(text, **{"source": NoteSource.CHECK, **fields})


def learning(task: str, *notes: Note | str, **fields: Any) -> Learning:
    """What an attempt at a story taught."""
    made = tuple(note(one) if isinstance(one, str) else one for one in notes)
    known = {"outcome": "passed", "timestamp": iso(NOON), "run": RUN}
    return Learning(task_id=task, notes=made, **{**known, **fields})


def index_of(*learnings: Learning, now: float = NOON) -> Index:
    """What these learnings say together."""
    return aggregate(learnings, now=now)


def keep(project: Project, *learnings: Learning) -> None:
    """Write learnings as capture would."""
    count = len(list(store.directory(project).glob("learning-*.yaml")))
    named = [item for one in learnings for note in one.notes for item in note.evidence]
    for kind, _, path in (item.partition(" ") for item in named):
        if kind == "file" and not (project.root / path).exists():
            (project.root / path).parent.mkdir(parents=True, exist_ok=True)
            (project.root / path).write_text("")
    for number, one in enumerate(learnings, count + 1):
        store.save(project, f"learning-x-20261115-120000-{number:03}.yaml", store.render(one))


def area_notes(area: str) -> tuple[Note, ...]:
    """Three different things to know about an area."""
    return (
        measured(f"new files in src/{area} are listed in src/{area}/registry.txt", category=area),
        measured(
            f"the {area} reads its limits from src/{area}/limits.toml at import", category=area
        ),
        Note(
            kind=NoteKind.FAILURE,
            text=f"`make {area}` failed: error: unknown unit in src/{area}/units.txt",
            lesson=f"went away with a change in `src/{area}/units.txt`",
            category=area,
            source=NoteSource.CHECK,
            evidence=(f"file src/{area}/units.txt",),
        ),
    )


def record(
    *,
    passed: bool = False,
    claimed: bool = True,
    said: str = "",
    files: Iterable[str] = (),
    checks: Iterable[dict[str, Any]] = (),
    tools: Iterable[dict[str, Any]] = (),
    error: str | None = None,
    recommendation: str = "",
    **more: Any,
) -> dict[str, Any]:
    """What the loop keeps of an iteration."""
    return {
        "analysis": {
            "story_claimed": claimed,
            "progress": bool(files),
            "error_signature": error,
            "status": {"recommendation": recommendation},
        },
        "verdict": {"passed": passed},
        "evidence": {"work_files": list(files), "checks": list(checks)},
        "response": {"final_text": said, "tools": list(tools), "denials": []},
        **more,
    }


def red(name: str, output: str) -> dict[str, Any]:
    """A check that failed."""
    return {"name": name, "status": "failed", "output_tail": output}


class Night:
    """A journal to which iterations are added one by one."""

    def __init__(self, project: Project, **config: Any) -> None:
        project.directory.mkdir(parents=True, exist_ok=True)
        self.journal = Journal.open(project.journal)
        if self.journal.find_run(RUN) is None:
            self.journal.begin_run(RunRecord(id=RUN, started_at=NOON, config=config))
        self.number = len(list(self.journal.every_iteration(RUN)))

    def add(
        self, task: str | None, kept: dict[str, Any], *, tokens: int = 100, **fields: Any
    ) -> int:
        """One finished iteration; returns its number."""
        self.number += 1
        at = NOON + 60 * self.number
        start = IterationRecord(run=RUN, n=self.number, started_at=at, story=task)
        self.journal.start_iteration(start)
        known = {"outcome": "completed", "decision": "continue", "finished_at": at + 30.5}
        spent = Expense(input_tokens=tokens, cost_usd=0.01)
        done = {**known, "record": kept, "spent": spent, **fields}
        self.journal.finish_iteration(FinishedIteration(run=RUN, n=self.number, **done))
        return self.number


def git(root: Path, *arguments: str, at: float = 0.0) -> str:
    """Run git, at some time where one is given, and give what it printed."""
    dated = {"GIT_COMMITTER_DATE": f"@{at:.0f} +0000", "GIT_AUTHOR_DATE": f"@{at:.0f} +0000"}
    env = {**os.environ, **(dated if at else {})}
    argv = ["git", *arguments]
    done = subprocess.run(argv, cwd=root, env=env, check=True, capture_output=True, text=True)
    return done.stdout.strip()


def repository(root: Path, *, at: float = 0.0) -> None:
    """A git repository with one commit."""
    git(root, "init", "--quiet")
    (root / ".gitignore").write_text(".ralph/\n")
    git(root, "add", "--all")
    git(root, "commit", "--quiet", "--message=begin", at=at)
