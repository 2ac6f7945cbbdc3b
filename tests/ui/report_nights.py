"""Nights to report on: journals written with the journal's own writer, as the loop would."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec

from ralphloop.core.events import LoopEvent, event_of
from ralphloop.core.iteration import AnyEffect, Iteration, SaveLeftovers
from ralphloop.core.model import Story, StoryList
from ralphloop.core.run_state import Standing
from ralphloop.core.totals import Expense
from ralphloop.journal.holder import Holder
from ralphloop.journal.journal import Journal
from ralphloop.journal.records import FinishedIteration, IterationRecord, RunRecord, RunStatus
from ralphloop.night.look import RecordedRun, config_of, look_at
from ralphloop.project import Project
from ralphloop.ui.report.assemble import build
from ralphloop.ui.report.values import Report

EVENING = 1_794_780_000.0  # 2026-11-15 22:00 UTC
START = hashlib.sha1(b"start").hexdigest()
RUN = "20261115-220000-abc123"
GREEN = {"name": "pytest -q", "status": "passed", "duration_s": 40.0}
VERIFY = {"name": "verify", "status": "passed", "duration_s": 4.0}
HOSTILE = (
    "<script>alert(1)</script>",
    "\u202egnp.exe\u202c שלום עולם مرحبا",
    "👩‍👩‍👧‍👦 🏳️‍🌈 emoji",
    "x" * 10_240,
    "](http://example.com) ![](http://example.com/a.png) @everyone `rm -rf /` | a | b | #12",
    "\x1b[31mred\x1b[0m\x00 </title></svg><img src=x onerror=alert(2)>",
    "${{7*7}} {{ 7*7 }} {% raw %}",
)


def story_list(*stories: Story) -> StoryList:
    """A list in file order."""
    return StoryList(stories=stories, source="prd.json")


def story(number: int, title: str = "", **more: Any) -> Story:
    """Story US-<number>."""
    return Story(id=f"US-{number}", title=title or f"Story {number}", index=number, **more)


class Night:
    """One run, written minute by minute."""

    def __init__(self, journal: Journal, run: str = RUN, **config: Any) -> None:
        self.journal = journal
        self.run = run
        self.now = EVENING
        self.n = 0
        limits = {"max_cost_usd": 10.0, "max_iterations": 50, "max_time": 36_000.0}
        self.journal.set_meta(f"frozen:{run}", {"checks": [["pytest", "-q"]]})
        self.journal.begin_run(
            RunRecord(
                id=run,
                started_at=self.now,
                prd_path="prd.json",
                branch="ralph/checkout",
                head=START,
                config={"agent": {"name": "claude", "model": "opus"}, "limits": limits, **config},
            )
        )
        self.event("run_started", continued=False, circuit="CLOSED")

    def event(self, type_: str, iteration: int | None = None, /, **data: Any) -> None:
        """Something the loop told everybody."""
        what = event_of(type_, data)
        event = LoopEvent(run=self.run, at=self.now, what=what, iteration=iteration)
        self.journal.append_events([event])

    def iteration(
        self,
        story: str | None,
        *,
        minutes: float = 6.0,
        cost: float = 0.4,
        outcome: str = "completed",
        decision: str = "continue",
        status: str = "IN_PROGRESS",
        analysis: dict[str, Any] | None = None,
        verdict: dict[str, Any] | None = None,
        checks: list[dict[str, Any]] | None = None,
        effects: tuple[AnyEffect, ...] = (),
        state: dict[str, Any] | None = None,
        head: str = START,
        commits: int = 0,
        **record: Any,
    ) -> int:
        """One start of the agent to its end, and what became of the story."""
        self.n += 1
        self.journal.start_iteration(
            IterationRecord(run=self.run, n=self.n, started_at=self.now, story=story, head=head)
        )
        self.now += minutes * 60
        spent = sum(check.get("duration_s", 0.0) for check in checks or ())
        self.journal.finish_iteration(
            FinishedIteration(
                run=self.run,
                n=self.n,
                finished_at=self.now,
                outcome=outcome,
                decision=decision,
                status=status,
                spent=Expense(
                    cost_usd=cost,
                    commits=commits,
                    input_tokens=4_000,
                    output_tokens=int(cost * 5_000),
                    cache_read_tokens=int(cost * 200_000),
                ),
                record=msgspec.convert(
                    {
                        "analysis": analysis or {},
                        "verdict": verdict or {"passed": False},
                        "evidence": {"checks": checks} if checks else {},
                        "end": {"duration_s": minutes * 60 - spent},
                        **record,
                    },
                    Iteration,
                ),
                effects=effects,
                stories={story or "": state} if state is not None else {},
            )
        )
        return self.n

    def passes(self, story: str, grade: str = "verified", reason: str = "", **more: Any) -> int:
        """An iteration after which a story has passed."""
        return self.iteration(
            story,
            status="COMPLETE",
            analysis={"story_claimed": True, "progress": True},
            verdict={"passed": True, "grade": grade, "reasons": [reason or "all is green"]},
            checks=[GREEN, VERIFY] if "verify" in reason else [GREEN],
            state={
                "standing": "passed",
                "grade": grade,
                "reason": reason or "tests were added and all is green",
                "iterations": 1,
                "start_head": START,
            },
            **more,
        )

    def wait(
        self, minutes: float, kind: str = "quota", reason: str = "usage limit reached"
    ) -> None:
        """The run sleeps."""
        until = self.now + minutes * 60
        self.journal.begin_wait(self.run, kind=kind, reason=reason, now=self.now, until=until)
        self.now = until
        self.journal.end_wait(self.run, now=self.now)

    def end(self, decision: str, reason: str = "") -> None:
        """The run is over."""
        done = decision == "project_complete"
        self.journal.end_run(
            self.run,
            now=self.now,
            status=RunStatus.COMPLETE if done else RunStatus.STOPPED,
            decision=decision,
            reason=reason,
        )


def eventful(journal: Journal) -> StoryList:
    """A night in which nearly everything happened."""
    night = Night(journal)
    night.event("preflight", said=[], warnings=["git has no upstream; nothing is pushed"])
    night.passes("US-1", minutes=14, cost=0.82)
    night.iteration(
        "US-2",
        minutes=9,
        cost=0.61,
        analysis={"story_claimed": True, "exit_signal": True, "progress": True},
        verdict={"passed": False, "reasons": ["pytest -q failed"]},
        checks=[{"name": "pytest -q", "status": "failed", "duration_s": 38.0}],
        findings=["tests/test_cart.py: 3 tests were skipped"],
    )
    night.passes("US-2", "needs review", "tests/test_cart.py: 3 tests were skipped", minutes=12)
    night.iteration("US-3", minutes=1, cost=0.02, outcome="usage_limit", status="")
    night.wait(95, reason="usage limit reached, resets 2026-11-16T00:11:00Z")
    night.passes("US-3", "checked", "pytest -q green", minutes=21, cost=1.34)
    night.iteration(
        "US-4",
        minutes=7,
        outcome="transient",
        status="",
        response={"reason": "API Error 529: overloaded"},
    )
    night.wait(1, "outage", "the start ended transient (1 in a row)")
    for attempt in range(1, 4):
        moved = {"iteration": night.n + 1, "before": "CLOSED", "after": "HALF_OPEN"}
        night.iteration(
            "US-4",
            minutes=8,
            cost=0.45,
            analysis={
                "stuck": [{"name": "same_error", "detail": "E: no such column: total"}],
                "transition": {**moved, "reason": "3 iterations without progress", "at": night.now}
                if attempt == 3
                else None,
            },
            verdict={"passed": False, "reasons": ["the agent does not call it done"]},
            response={"denials": [{"tool": "Bash", "summary": "curl https://example.com"}]},
            leftovers=["4242 node server.js"] if attempt == 2 else [],
            effects=(SaveLeftovers(story="US-4"),) if attempt == 3 else (),
            state={
                "standing": "set_aside" if attempt == 3 else "open",
                "reason": "3 attempts failed: no such column: total",
                "attempts": attempt,
                "saved_ref": f"refs/ralph/set-aside/{RUN}/9",
                "start_head": "b" * 40,
            },
        )
    night.event("request_answered", kind="budget", answer="raised by $5.00 and 0s", request=1)
    journal.set_meta(f"desk:{RUN}", {"extra": {"cost_usd": 5.0}})
    night.passes("US-5", "claimed", "no check could prove it", minutes=11)
    night.passes("US-6", reason="its own verify command passed", minutes=17, cost=0.93)
    night.iteration(
        "US-7",
        minutes=4,
        status="BLOCKED",
        analysis={"status": {"recommendation": "Which tax rate applies to gift cards?"}},
        state={
            "standing": "blocked",
            "reason": "Which tax rate applies to gift cards?",
            "attempts": 1,
        },
    )
    journal.put_stories(
        RUN, {"US-8": {"standing": "passed", "grade": "by hand", "reason": "marked by a person"}}
    )
    night.end("blocked", "US-7 waits for a person: Which tax rate applies to gift cards?")
    titles = (
        "Cart keeps its items after a reload", "Discounts are applied before tax",
        "Prices are shown in the visitor's currency", "Order history can be filtered by date",
        "Receipts are sent as PDF", "Checkout works with the keyboard alone",
        "Gift cards", "Imprint page", "Refunds",
    )  # fmt: skip
    return story_list(
        *(
            story(n, title, verify=("pytest", "-q", "tests/test_keys.py") if n == 6 else None)
            for n, title in enumerate(titles, 1)
        )
    )


def told(
    journal: Journal,
    stories: StoryList | None,
    *,
    commits: Mapping[int, str] | None = None,
    secrets: tuple[str, ...] = (),
    live: bool = False,
) -> Report:
    """The report of the newest run, what passed in it marked in the story file."""
    run = journal.latest_run()
    assert run is not None
    states = journal.story_states(run.id).items()
    passed = {story: True for story, state in states if state.standing is Standing.PASSED}
    project = Project(Path("shop"))
    night = look_at(
        project,
        journal,
        run,
        now=run.last_activity,
        holder=Holder(run.id, "script", 1, "here", EVENING) if live else None,
        known=(config_of(project, run), (stories.with_passes(passed) if stories else None, "")),
    )
    return build(RecordedRun(night, run, journal, commits or {}), secrets)


def open_journal(place: Path) -> Journal:
    """A new journal where a project would have it."""
    return Journal.open(place / ".ralph" / "journal.db")
