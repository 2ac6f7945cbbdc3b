"""One place for all numbers: runs, stories, money, tokens, failures, and what learning does.

Everything is read off the journal in one pass, run by run, page by page.  The iterations of a
story make one *work* on it; a story that is opened again after it passed is a new one, because ids
return in the next story file.

Whether carrying learnings changes what a story costs: tokens per story differ by factors,
so their logarithms are compared: the difference of the means with a 95 % interval (Welch) is a
ratio.  Under twenty stories nothing is said at all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from statistics import fmean, variance

from msgspec.structs import replace

from ralphloop.config.model import LearningSection
from ralphloop.core.model import Outcome, Value
from ralphloop.journal.queries import Queries
from ralphloop.journal.records import IterationRecord, RunRecord
from ralphloop.learning import skills, store
from ralphloop.learning.capturing import ended_as
from ralphloop.learning.model import Standing
from ralphloop.project import Project

MAX_RUNS = 500
_PAGE = 100


ENOUGH_STORIES = 20
_ENOUGH_EACH = 3
_Z = 1.959964
TOO_EARLY = "too early to tell"


class Effect(Value, kw_only=True, omit_defaults=False):
    """The observed difference; changes are shares, -0.1 is ten percent fewer tokens."""

    n_with: int = 0
    n_without: int = 0
    change: float | None = None
    low: float | None = None
    high: float | None = None
    controlled: bool = False  # by holding stories out
    sentence: str = TOO_EARLY


def compare(
    with_them: Sequence[int], without: Sequence[int], *, controlled: bool = False
) -> Effect:
    """Tokens of the stories that carried learnings against those that did not."""
    n_with, n_without = len(with_them), len(without)
    counted = Effect(n_with=n_with, n_without=n_without, controlled=controlled)
    if n_with + n_without < ENOUGH_STORIES:
        return counted
    if min(n_with, n_without) < _ENOUGH_EACH:
        return replace(counted, sentence=_nothing_to_compare(n_with, n_without))
    a = [math.log(value) for value in with_them]
    b = [math.log(value) for value in without]
    half = _half_width(a, b)
    middle = fmean(a) - fmean(b)
    low, change, high = (math.expm1(middle + side) for side in (-half, 0.0, half))
    words = _sentence(low, change, high, n_with, n_without)
    how = "every Nth story was held out" if controlled else "observed, not controlled"
    return replace(counted, change=change, low=low, high=high, sentence=f"{words}; {how}")


def _half_width(a: Sequence[float], b: Sequence[float]) -> float:
    share_a, share_b = variance(a) / len(a), variance(b) / len(b)
    spread = share_a + share_b
    if spread == 0:
        return 0.0
    freedom = spread**2 / (share_a**2 / (len(a) - 1) + share_b**2 / (len(b) - 1))
    return _t_quantile(freedom) * math.sqrt(spread)


def _t_quantile(freedom: float) -> float:
    """Student's t at 97.5 %, by its expansion around the normal (within 1 % from 2 on)."""
    z, f = _Z, max(2.0, freedom)
    return (
        z
        + (z**3 + z) / (4 * f)
        + (5 * z**5 + 16 * z**3 + 3 * z) / (96 * f**2)
        + (3 * z**7 + 19 * z**5 + 17 * z**3 - 15 * z) / (384 * f**3)
        + (79 * z**9 + 776 * z**7 + 1482 * z**5 - 1920 * z**3 - 945 * z) / (92160 * f**4)
    )


def _sentence(low: float, change: float, high: float, n_with: int, n_without: int) -> str:
    numbers = f"(95 %: {_percent(low)} to {_percent(high)}; n = {n_with} with, {n_without} without)"
    if low <= 0 <= high:
        return f"no effect seen: stories with learnings used {_percent(change)} tokens {numbers}"
    return f"stories with learnings used {_percent(change)} tokens {numbers}"


def _percent(share: float) -> str:
    return f"{abs(share):.0%} {'fewer' if share < 0 else 'more'}".replace("%", " %")


def _nothing_to_compare(n_with: int, n_without: int) -> str:
    which = "carried learnings" if n_with > n_without else "ran without learnings"
    return (
        f"nothing to compare with: nearly all of {n_with + n_without} stories {which};"
        " learning.holdout = 5 runs every fifth without"
    )


@dataclass
class Stats:
    """The numbers of one project."""

    simulated: bool = False  # no model was asked: the agent was scripted
    runs: int = 0
    runs_complete: int = 0
    stories: Counter[str] = field(default_factory=Counter)  # by how they ended
    iterations: int = 0
    cost_usd: float = 0.0
    cost_estimated: bool = False
    unpriced: int = 0  # starts whose cost nobody knows
    tokens: int = 0
    active_s: float = 0.0
    waited_s: float = 0.0
    failures: Counter[str] = field(default_factory=Counter)
    runaways: int = 0  # rows of starts on one story that came to nothing …
    runaways_prevented: int = 0  # … and were stopped when they should
    learnings: int = 0
    patterns: int = 0
    trusted: int = 0
    held_back: int = 0
    skills: tuple[str, ...] = ()
    stories_ended: int = 0
    stories_captured: int = 0
    prompts: int = 0  # that carried something
    prompt_tokens: int = 0  # that this added to all of them
    prompt_tokens_most: int = 0
    prompt_budget: int = 0
    effect: Effect = field(default_factory=Effect)


@dataclass
class _Work:
    """Everything that was done on one story until it ended."""

    carried: bool
    held_out: bool
    ended: str = ""
    tokens: int = 0
    starts: set[tuple[str, int]] = field(default_factory=set)  # run and number


def gather(project: Project, journal: Queries, config: LearningSection) -> Stats:
    """All numbers; of an empty journal all of them are zero."""
    stats = Stats(prompt_budget=config.budget_tokens)
    works = _Works()
    for run in journal.runs(MAX_RUNS)[::-1]:
        _add_run(stats, run)
        row = _Row(run)
        for iteration in _iterations(journal, run.id):
            _add_iteration(stats, iteration)
            row.add(stats, iteration)
            works.add(iteration)
        row.end(stats)
    stats.stories.update(work.ended or "open" for work in works.all)
    _add_learning(stats, project, config, works.all)
    return stats


def _iterations(journal: Queries, run: str) -> Iterator[IterationRecord]:
    after = 0
    while page := journal.iterations(run, after=after, limit=_PAGE):
        yield from (iteration for iteration in page if iteration.finished_at is not None)
        after = page[-1].n


def _add_run(stats: Stats, run: RunRecord) -> None:
    scripted = run.config.get("agent", {}).get("name") == "scripted"
    stats.simulated = scripted and (stats.simulated or not stats.runs)
    stats.runs += 1
    stats.runs_complete += run.status == "complete"
    stats.iterations += run.totals.iterations
    stats.cost_usd += run.totals.cost_usd
    stats.cost_estimated |= run.totals.cost_estimated
    stats.unpriced += run.totals.unpriced
    stats.tokens += run.totals.total_tokens
    stats.active_s += run.totals.active_s
    stats.waited_s += run.totals.waited_s


def _add_iteration(stats: Stats, iteration: IterationRecord) -> None:
    if iteration.outcome != Outcome.COMPLETED:
        stats.failures[iteration.outcome] += 1
    elif ended_as(iteration) == "failed" and iteration.record.analysis.story_claimed:
        stats.failures["claimed, but not proven"] += 1
    if added := iteration.record.learning.tokens:
        stats.prompts += 1
        stats.prompt_tokens += added
        stats.prompt_tokens_most = max(stats.prompt_tokens_most, added)


class _Row:
    """Starts in a row on one story that came to nothing."""

    def __init__(self, run: RunRecord) -> None:
        circuit = run.config.get("circuit", {})
        self._threshold = int(circuit.get("no_progress_threshold", 3))
        self._longest = self._threshold + (circuit.get("preset") != "strict")  # HALF_OPEN is one
        self._length, self._story = 0, ""

    def add(self, stats: Stats, iteration: IterationRecord) -> None:
        if Outcome(iteration.outcome).is_infrastructure:
            return
        progress = iteration.record.analysis.progress
        if progress or iteration.story != self._story:
            self.end(stats)
        self._story = iteration.story or ""
        self._length += not progress

    def end(self, stats: Stats) -> None:
        if self._length >= self._threshold:
            stats.runaways += 1
            stats.runaways_prevented += self._length <= self._longest
        self._length = 0


class _Works:
    """Iterations by the story they worked on."""

    def __init__(self) -> None:
        self.all: list[_Work] = []
        self._open: dict[str, _Work] = {}

    def add(self, iteration: IterationRecord) -> None:
        if iteration.story is None:
            return
        work = self._open.get(iteration.story) or self._begun(iteration)
        ended = ended_as(iteration)
        work.ended = ended or work.ended
        work.starts.add((iteration.run, iteration.n))
        work.tokens += iteration.total_tokens
        if ended == "passed":
            del self._open[iteration.story]

    def _begun(self, iteration: IterationRecord) -> _Work:
        work = _Work(
            carried=bool(iteration.record.learning.ids),
            held_out=iteration.record.learning.held_out,
        )
        self._open[iteration.story or ""] = work
        self.all.append(work)
        return work


def _add_learning(
    stats: Stats, project: Project, config: LearningSection, works: list[_Work]
) -> None:
    learnings, _ = store.load_all(project)
    proven = {(one.run, one.iteration) for one in learnings if one.captured}
    patterns = store.load_index(project).patterns
    stats.learnings, stats.patterns = len(learnings), len(patterns)
    stats.trusted = sum(one.is_trusted for one in patterns)
    stats.held_back = sum(one.standing is Standing.HELD_BACK for one in patterns)
    stats.skills = tuple(skills.ours(project.root, config.skills))
    ended = [work for work in works if work.ended]
    stats.stories_ended = len(ended)
    stats.stories_captured = sum(bool(work.starts & proven) for work in ended)
    stats.effect = _effect(ended)


def _effect(works: list[_Work]) -> Effect:
    """Stories that ended by themselves; those that wait for a person say nothing about cost."""
    told = [work for work in works if work.ended in ("passed", "set_aside") and work.tokens > 0]
    without = [work for work in told if not work.carried]
    return compare(
        [work.tokens for work in told if work.carried],
        [work.tokens for work in without],
        controlled=bool(without) and all(work.held_out for work in without),
    )
