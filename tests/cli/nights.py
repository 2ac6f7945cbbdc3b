"""Projects with a past: journals, transcripts and story files as runs leave them."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from ralphloop.config.load import load_config
from ralphloop.core.iteration import Iteration
from ralphloop.core.policy import Mode
from ralphloop.core.totals import Expense
from ralphloop.journal.journal import Journal
from ralphloop.journal.lock import RunLock
from ralphloop.journal.records import FinishedIteration, IterationRecord, RunRecord, RunStatus

RUN = "20260117-220000-abc123"


class Night:
    """One project with one journal, told step by step."""

    def __init__(self, root: Path, *, stories: int = 4, config: str = "") -> None:
        self.root = root
        self.start = time.time() - 3600
        self._n = 0
        (root / "ralph.toml").write_text(config)
        self.prd(stories)
        self.journal = Journal.open(root / ".ralph" / "journal.db")

    def prd(self, count: int, *, passed: int = 0) -> None:
        """Write so many stories, S-1 to S-n, the first ones passed."""
        listed = [
            {"id": f"S-{n}", "title": f"Story {n}", "priority": n, "passes": n <= passed}
            for n in range(1, count + 1)
        ]
        (self.root / "prd.json").write_text(json.dumps({"userStories": listed}))

    def begin(self, run: str = RUN, *, prd: str = "prd.json", mode: Mode = "script") -> Night:
        """Begin a run with the settings of the project, an hour ago."""
        config = load_config(self.root, env={}).config
        self.journal.begin_run(
            RunRecord(
                id=run,
                started_at=self.start,
                mode=mode,
                prd_path=prd,
                branch="main",
                pid=1,
                config=msgspec.to_builtins(config),
            )
        )
        self.run, self._n = run, 0
        return self

    def iterate(
        self,
        story: str | None = "S-1",
        *,
        transcript: bytes | None = b"",
        finished: bool = True,
        attempt: int = 1,
        **ending: Any,
    ) -> Night:
        """One more iteration; without an end it is the one that goes on."""
        self._n += 1
        at = self.start + self._n * 60
        self.journal.start_iteration(
            IterationRecord(run=self.run, n=self._n, started_at=at, story=story, attempt=attempt)
        )
        if transcript is not None:
            folder = self.root / ".ralph" / "transcripts" / self.run
            folder.mkdir(parents=True, exist_ok=True)
            (folder / f"{self._n}.log").write_bytes(transcript)
            (folder / f"{self._n}.log.stderr").write_bytes(b"a complaint\n")
            (folder / f"{self._n}.prompt.md").write_bytes(b"# Do it\n")
        if finished:
            self.finish(self._n, at + 30, **ending)
        return self

    def finish(
        self,
        n: int,
        at: float,
        *,
        outcome: str = "completed",
        decision: str = "continue",
        status: str = "IN_PROGRESS",
        spent: Expense | None = None,
        record: Mapping[str, Any] | None = None,
    ) -> Night:
        """The end of an iteration."""
        cost = Expense(
            cost_usd=0.5, input_tokens=100, output_tokens=10, files_modified=2, commits=1
        )
        self.journal.finish_iteration(
            FinishedIteration(
                run=self.run,
                n=n,
                finished_at=at,
                outcome=outcome,
                decision=decision,
                status=status,
                spent=spent or cost,
                record=msgspec.convert(record or {}, Iteration),
            )
        )
        return self

    def story(self, story: str, **state: Any) -> Night:
        """What the run knows of a story."""
        self.journal.put_stories(self.run, {story: state})
        return self

    def end(
        self,
        decision: str = "interrupted",
        reason: str = "",
        *,
        complete: bool = False,
        ago: float = 60,
    ) -> Night:
        """End the run, a minute ago unless told otherwise."""
        status = RunStatus.COMPLETE if complete else RunStatus.STOPPED
        self.journal.end_run(
            self.run, now=time.time() - ago, status=status, decision=decision, reason=reason
        )
        return self

    @contextmanager
    def held(self, run: str | None = None) -> Iterator[None]:
        """While this process holds the project, the run is alive."""
        directory = self.root / ".ralph"
        with RunLock(directory, run=run or self.run, now=time.time()):
            yield
