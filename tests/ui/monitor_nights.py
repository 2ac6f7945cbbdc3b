"""Nights to watch: journals written with the journal's own writer, minute by minute."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec

from ralphloop.core.breaker import BreakerState
from ralphloop.core.events import LoopEvent, event_of
from ralphloop.core.iteration import Iteration
from ralphloop.core.model import Circuit, Transition
from ralphloop.core.run_state import LanesState, RunState
from ralphloop.core.totals import Expense
from ralphloop.journal.journal import Journal
from ralphloop.journal.lock import RunLock
from ralphloop.journal.queries import CIRCUIT_KEY, PARTS
from ralphloop.journal.records import (
    FinishedIteration,
    IterationRecord,
    RunRecord,
    RunStatus,
)
from ralphloop.project import Project

EVENING = 1_794_780_000.0  # 2026-11-15 22:00 UTC
RUN = "20261115-220000-abc123"
TITLES = (
    "Customers find products by name",
    "Prices are shown in the customer's currency",
    "The cart survives a new session",
    "Checkout validates the address before payment",
    "Export orders as CSV for accounting",
    "Translate the manual into Volapük",
    "Rate limit the public API",
    "Administrators see failed payments within a minute",
)
CONFIG = {
    "agent": {"name": "claude", "model": "sonnet"},
    "limits": {"max_cost_usd": 10.0, "max_iterations": 50, "max_time": 36_000.0, "max_attempts": 3},
    "circuit": {"no_progress_threshold": 3, "same_error_threshold": 5},
}
FAILED = {
    "name": "pytest -q",
    "status": "failed",
    "duration_s": 41.3,
    "output_tail": "E   AssertionError: '9,99 €' != '9.99 €'\n1 failed, 61 passed in 41.21s",
    "failing_tests": ["tests/test_prices.py::test_decimal_comma"],
}
GREEN = {"name": "pytest -q", "status": "passed", "duration_s": 39.8}
LINT = {"name": "/usr/bin/ruff check .", "status": "passed", "duration_s": 0.4}


class Clock:
    """A clock that stands still until it is moved."""

    def __init__(self, now: float = EVENING) -> None:
        self.now = now

    def __call__(self) -> float:
        """Epoch seconds."""
        return self.now


class Night:
    """One run of one project, as the loop would write it."""

    def __init__(self, root: Path, *, titles: tuple[str, ...] = TITLES) -> None:
        self.project = Project(root)
        self.clock = Clock()
        self.n = 0
        self.lengths: list[int] = []
        root.mkdir(parents=True, exist_ok=True)
        self.titles = {f"US-{number:03}": title for number, title in enumerate(titles, 1)}
        self.write_stories()
        self.project.directory.mkdir(exist_ok=True)
        self.journal = Journal.open(self.project.journal)

    def write_stories(self, *passed: str) -> None:
        """The story file, with these marked as passed."""
        stories = [
            {
                "id": key,
                "title": title,
                "description": f"So that nobody has to ask: {title.lower()}.",
                "acceptanceCriteria": [title, "there is a test for it"],
                "passes": key in passed,
                "dependsOn": ["US-006"] if key == "US-007" else [],
            }
            for key, title in self.titles.items()
        ]
        (self.project.root / "prd.json").write_text(json.dumps({"userStories": stories}))

    def begin(self, prd_path: str = "prd.json", **config: Any) -> None:
        """Preflight is over."""
        self.journal.set_meta(f"frozen:{RUN}", {"baseline": [GREEN, LINT]})
        self.journal.begin_run(
            RunRecord(
                id=RUN,
                started_at=self.clock(),
                prd_path=prd_path,
                branch="feature/checkout",
                pid=os.getpid(),
                config=CONFIG | config,
            )
        )
        self.tell(
            "run_started",
            continued=False,
            project="shop",
            branch="feature/checkout",
            agent="claude",
            model="sonnet",
            stories=len(self.titles),
            passed=0,
            max_iterations=50,
            max_cost_usd=10.0,
            max_time_s=36_000.0,
            circuit="CLOSED",
        )

    def tell(self, kind: str, iteration: int | None = None, /, **data: Any) -> None:
        """One event, now."""
        event = LoopEvent(run=RUN, at=self.clock(), what=event_of(kind, data), iteration=iteration)
        self.journal.append_events([event])

    def start(self, story: str, attempt: int = 1, lane: int = 0) -> None:
        """An agent begins to work."""
        self.n += 1
        folder = self.project.transcripts / RUN
        folder.mkdir(parents=True, exist_ok=True)
        prompt = folder / f"{self.n}.prompt.md"
        prompt.write_text(f"# How to work\n\nWork on {story} and on nothing else.\n")
        self.journal.start_iteration(
            IterationRecord(
                run=RUN,
                n=self.n,
                started_at=self.clock(),
                story=story,
                attempt=attempt,
                prompt_path=str(prompt.relative_to(self.project.root)),
            )
        )
        self.tell(
            "iteration_started",
            self.n,
            story=story,
            title=self.titles[story],
            attempt=attempt,
            lane=lane,
            prompt_tokens=5_204,
            left_out=[],
        )

    def acts(self, *steps: str | dict[str, Any], every: float = 20.0) -> None:
        """What the agent says ("…") and does (Tool …), each with its result."""
        for step in steps:
            self.clock.now += every
            if isinstance(step, dict):
                self.tell("agent_event", self.n, **step)
            elif step.startswith("“"):
                self.tell("agent_event", self.n, kind="text", summary=step.strip("“”"))
            else:
                name = step.split(" ")[0]
                self.tell("agent_event", self.n, kind="tool", summary=step)
                self.tell("agent_event", self.n, kind="tool_result", summary=name, ok=True)

    def transcript(self, *, tokens: int) -> None:
        """One more message of the running agent, written now."""
        path = self.project.transcripts / RUN / f"{self.n}.log"
        usage = {"input_tokens": tokens, "output_tokens": tokens // 20}
        message = {
            "id": f"m{path.stat().st_size if path.exists() else 0}",
            "role": "assistant",
            "model": "sonnet",
            "content": [{"type": "text", "text": "Working on it."}],
            "usage": usage,
        }
        line = {"type": "assistant", "message": message, "parent_tool_use_id": None}
        with path.open("a") as file:
            file.write(json.dumps(line | {"session_id": "s"}) + "\n")
        os.utime(path, (self.clock(), self.clock()))

    def finish(
        self,
        story: str,
        *,
        passed: bool = False,
        claimed: bool | None = None,
        reason: str = "the agent does not call it done",
        checks: tuple[dict[str, Any], ...] = (),
        state: dict[str, Any] | None = None,
        outcome: str = "completed",
        decision: str = "continue",
        files: int = 2,
        cost: float = 0.42,
        circuit: BreakerState | None = None,
    ) -> None:
        """The agent is through, everything is measured and written down."""
        claimed = passed if claimed is None else claimed
        before = {} if state is None else state
        state = {"iterations": self.n, "reason": reason, "cost_usd": cost, **before}
        self.lengths.append(300 + 37 * (self.n % 5))
        run_state = RunState(lengths=tuple(self.lengths), breaker=circuit or BreakerState())
        self.journal.finish_iteration(
            FinishedIteration(
                run=RUN,
                n=self.n,
                finished_at=self.clock(),
                outcome=outcome,
                decision=decision,
                status="COMPLETE" if claimed else "IN_PROGRESS",
                spent=Expense(
                    cost_usd=cost,
                    input_tokens=21_400,
                    output_tokens=1_930,
                    cache_read_tokens=88_000,
                    tasks_completed=int(passed),
                ),
                record=msgspec.convert(
                    _record(outcome, passed, claimed, reason, checks, files), Iteration
                ),
                state=run_state,
                stories={story: state},
            )
        )
        self.tell("iteration_finished", self.n)
        if passed:
            grade = state["grade"]
            self.tell("story_passed", self.n, story=story, grade=grade, reasons=[reason])
            done = [key for key, one in self.journal.story_states(RUN).items() if one.proof.grade]
            self.write_stories(*done)

    def passes(self, story: str, grade: str = "verified") -> None:
        """A story from its start to its commit."""
        self.start(story)
        self.acts("“I will read the code first.”", "Read src/shop/app.py", "Edit src/shop/app.py")
        self.acts("Bash pytest -q", every=200.0)
        self.finish(
            story,
            passed=True,
            reason="tests were added and all is green",
            checks=(GREEN, LINT),
            state={"standing": "passed", "grade": grade},
        )

    def end(self, decision: str, reason: str, *, complete: bool = False) -> None:
        """The run is over."""
        status = RunStatus.COMPLETE if complete else RunStatus.STOPPED
        self.journal.end_run(RUN, now=self.clock(), status=status, decision=decision, reason=reason)

    @contextmanager
    def held(self, run: str = RUN) -> Iterator[None]:
        """A live process carries the run: ours."""
        with RunLock(self.project.directory, run=run, now=self.clock()):
            yield

    @contextmanager
    def held_elsewhere(self) -> Iterator[None]:
        """A process beside us carries it: wishes from below the carrier would be an agent's."""
        code = (
            "import sys; from pathlib import Path; from ralphloop.journal.lock import RunLock\n"
            "with RunLock(Path(sys.argv[1]), run=sys.argv[2], now=float(sys.argv[3])):\n"
            "    print('held', flush=True); sys.stdin.read()"
        )
        place, now = str(self.project.directory.resolve()), str(self.clock())
        argv, pipe = [sys.executable, "-c", code, place, RUN, now], subprocess.PIPE
        with subprocess.Popen(argv, stdin=pipe, stdout=pipe) as process:
            assert process.stdout is not None
            assert process.stdout.readline() == b"held\n"
            yield

    def requests(self) -> list[tuple[str, dict[str, Any]]]:
        """What was asked of the run and is not answered yet."""
        asked = self.journal.pending_requests(RUN)
        wishes = [(one.kind, msgspec.structs.replace(one.payload, by=None)) for one in asked]
        told = ((kind, msgspec.to_builtins(wish)) for kind, wish in wishes)
        return [(kind, {key: value for key, value in wish.items() if value}) for kind, wish in told]


def _record(
    outcome: str,
    passed: bool,
    claimed: bool,
    reason: str,
    checks: tuple[dict[str, Any], ...],
    files: int,
) -> dict[str, Any]:
    return {
        "end": {"duration_s": 204.0},
        "analysis": {
            "outcome": outcome,
            "progress": files > 0,
            "progress_reasons": [f"{files} files changed"] if files else [],
            "story_claimed": claimed,
            "confidence": 0.7,
            "status": {"status": "COMPLETE" if claimed else "IN_PROGRESS", "files_modified": files},
            "indicators": {"tests_passing": passed, "text_says_done": claimed},
            "warnings": [],
        },
        "decision": {"word": "continue", "reasons": ["the agent does not say that all is done"]},
        "verdict": {"passed": passed, "reasons": [reason]},
        "evidence": {
            "files_changed": files,
            "work_files": ["src/shop/app.py", "tests/test_app.py"][:files],
            "checks": list(checks),
        },
        "changed": {"count": files, "insertions": 40 * files, "deletions": 3 * files},
        "response": {
            "reader": "claude",
            "reason": "it ended with a good result",
            "final_text": "Done.\nAll tests are green.",
            "tool_calls": 3,
        },
        "prompt": {"characters": 20_816, "left_out": []},
    }


def half_open(at: float) -> BreakerState:
    """Three iterations without progress."""
    move = Transition(
        iteration=5,
        before=Circuit.CLOSED,
        after=Circuit.HALF_OPEN,
        reason="no progress in 3 iterations in a row",
        at=at,
    )
    return BreakerState(
        circuit=Circuit.HALF_OPEN, reason=move.reason, since=at, no_progress=3, history=(move,)
    )


def three_passed(night: Night) -> None:
    """A good evening: two proven stories, one that needed a second attempt, one aside."""
    night.begin()
    night.passes("US-001")
    night.start("US-002")
    night.acts("Edit src/shop/prices.py", every=240.0)
    night.finish(
        "US-002",
        claimed=True,
        reason="pytest -q failed",
        checks=(FAILED, LINT),
        state={"attempts": 1},
    )
    night.passes("US-002")
    night.passes("US-003", "checked")
    night.journal.put_stories(
        RUN,
        {
            "US-006": {
                "standing": "blocked",
                "attempts": 1,
                "reason": "Is there a Volapük dictionary?",
            }
        },
    )


def running(root: Path) -> Night:
    """An agent is at work on the fourth story."""
    night = Night(root)
    three_passed(night)
    night.start("US-004", attempt=2)
    night.acts(
        "“The address form has no server-side check yet; I will add one.”",
        "Read src/shop/checkout.py",
        "Edit src/shop/checkout.py",
        "Write tests/test_checkout.py",
    )
    night.tell("agent_event", night.n, kind="tool", summary="Bash pytest -q tests/test_checkout.py")
    night.transcript(tokens=48_000)
    night.clock.now += 12
    return night


def waiting(root: Path) -> Night:
    """A usage limit is waited for."""
    night = Night(root)
    three_passed(night)
    night.start("US-004")
    night.acts({"kind": "limit", "summary": "5-hour limit reached", "ok": False}, every=2.0)
    night.finish(
        "US-004",
        outcome="usage_limit",
        reason="the start failed (usage limit)",
        files=0,
        cost=0.0,
    )
    until = EVENING + 4_500
    reason = "usage limit reached, resets 23:15"
    night.journal.begin_wait(RUN, kind="quota", reason=reason, now=night.clock(), until=until)
    night.tell("waiting", kind="quota", reason=reason, until="2026-11-15T23:15:00Z", seconds=3478.0)
    night.clock.now += 20
    return night


def stuck(root: Path) -> Night:
    """Three iterations brought nothing: HALF_OPEN, and the next one has begun."""
    night = Night(root)
    three_passed(night)
    for attempt in (1, 2, 3):
        night.start("US-004", attempt)
        night.acts("“I am thinking about it.”", every=90.0)
        circuit = half_open(night.clock()) if attempt == 3 else BreakerState(no_progress=attempt)
        night.finish("US-004", files=0, state={"attempts": attempt}, circuit=circuit)
    night.tell(
        "circuit_changed",
        night.n,
        before="CLOSED",
        after="HALF_OPEN",
        reason="no progress in 3 iterations in a row",
    )
    night.start("US-004", 4)
    night.clock.now += 400
    return night


def finished(root: Path) -> Night:
    """Everything passed, one story only claimed and one for a person to review."""
    night = Night(root)
    night.begin()
    grades = ["verified"] * 5 + ["claimed", "needs review", "checked"]
    for story, grade in zip(night.titles, grades, strict=True):
        night.passes(story, grade)
    night.end("project_complete", "all 8 stories have passed", complete=True)
    night.clock.now += 3_600
    return night


def in_lanes(root: Path) -> Night:
    """Four at once: one lands, one is next, one came back, one is new; others wait."""
    night = Night(root)
    night.begin()
    night.passes("US-001")
    notes = {n: {"story": f"US-{n + 1:03}"} for n in range(1, 5)}
    night.journal.set_meta(
        PARTS[LanesState].format(RUN), {"count": 4, "lanes": notes, "branch": "ralph/x"}
    )
    night.start("US-004", lane=3)
    night.clock.now += 200
    night.finish("US-004", reason="conflict with US-001 in src/shop/app.py", state={"returns": 1})
    told = {"story": "US-004", "lane": 3, "reason": "conflict with US-001", "returns": 1}
    night.tell("story_returned", night.n, **told)
    night.start("US-002", lane=1)
    night.start("US-003", lane=2)
    night.acts({"kind": "result", "summary": "Done.", "ok": True}, every=60)
    night.tell("landing", night.n, story="US-003", lane=2, ahead=0)
    night.clock.now += 30
    night.tell("landing", night.n - 1, story="US-002", lane=1, ahead=1)
    night.start("US-004", lane=3)
    night.clock.now += 30
    night.start("US-005", lane=4)
    night.acts("Read src/shop/export.py")
    return night


def open_circuit(root: Path) -> Night:
    """It is over: one story asks, one is to be reviewed, one failed and was set aside."""
    night = Night(root)
    three_passed(night)
    night.start("US-004")
    night.acts("Edit src/shop/checkout.py")
    kept = "refs/ralph/aside/US-004/20261115"
    state = {"attempts": 1, "standing": "set_aside", "saved_ref": kept}
    night.finish("US-004", claimed=True, reason="pytest -q failed", checks=(FAILED,), state=state)
    night.passes("US-005", "needs review")
    reason = "still no progress after 4 iterations"
    night.end("circuit_open", reason)
    opened = BreakerState(
        circuit=Circuit.OPEN, reason=reason, no_progress=4, since=night.clock(), opened_count=1
    )
    night.journal.set_meta(CIRCUIT_KEY, opened)
    night.clock.now += 3_600
    return night
