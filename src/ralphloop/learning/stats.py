"""One place for all numbers: runs, stories, money, tokens, failures, and what learning does.

Everything is read off the journal in one pass, run by run.  The iterations of a story make one
*work* on it; a story that is opened again after it passed is a new one, because ids return in the
next story file.

Whether carrying learnings changes what a story costs: tokens per story differ by factors, so their
logarithms are compared, and the difference of the means with its 95 % interval is a ratio.  Under
twenty stories nothing is said at all.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import fmean, variance

from msgspec.structs import replace

from ralphloop.config.model import Config, LearningSection, policy_of
from ralphloop.core import readable
from ralphloop.core.iteration import LearningShare
from ralphloop.core.model import Outcome, Value
from ralphloop.core.policy import Policy, Preset
from ralphloop.journal.queries import Queries
from ralphloop.journal.records import IterationRecord
from ralphloop.learning import store
from ralphloop.learning.capturing import ended_as
from ralphloop.learning.model import PatternStanding
from ralphloop.learning.publish import generated_skills
from ralphloop.project import Project

MAX_RUNS = 500
ENOUGH_STORIES = 20
_ENOUGH_EACH = 3
TOO_EARLY = "too early to tell"
_NOTHING_TO_COMPARE = (
    "nothing to compare with: nearly all of {} stories {};"
    " learning.holdout = 5 runs every fifth without"
)


class LearningEffect(Value, kw_only=True, omit_defaults=False):
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
) -> LearningEffect:
    """Tokens of the stories that carried learnings against those that did not."""
    n_with, n_without = len(with_them), len(without)
    counted = LearningEffect(n_with=n_with, n_without=n_without, controlled=controlled)
    if n_with + n_without < ENOUGH_STORIES:
        return counted
    if min(n_with, n_without) < _ENOUGH_EACH:
        which = "carried learnings" if n_with > n_without else "ran without learnings"
        return replace(counted, sentence=_NOTHING_TO_COMPARE.format(n_with + n_without, which))
    a, b = ([math.log(value) for value in values] for values in (with_them, without))
    # The smaller group alone says how sure we are: rather too wide an interval than too narrow.
    half = students_t(min(n_with, n_without) - 1) * math.sqrt(
        variance(a) / n_with + variance(b) / n_without
    )
    low, change, high = (math.expm1(fmean(a) - fmean(b) + side) for side in (-half, 0.0, half))
    words = (
        f"{'no effect seen: ' if low <= 0 <= high else ''}stories with learnings used"
        f" {_percent(change)} tokens (95 %: {_percent(low)} to {_percent(high)};"
        f" n = {n_with} with, {n_without} without);"
        f" {'every Nth story was held out' if controlled else 'observed, not controlled'}"
    )
    return replace(counted, change=change, low=low, high=high, sentence=words)


def students_t(freedom: int) -> float:
    """Student's t at 97.5 %, by its expansion around the normal (within 1 % from 2 on)."""
    return 1.96 + 2.372 / freedom + 2.822 / freedom**2 + 2.556 / freedom**3 + 1.59 / freedom**4


def _percent(share: float) -> str:
    return f"{abs(share):.0%} {'fewer' if share < 0 else 'more'}".replace("%", " %")


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
    effect: LearningEffect = field(default_factory=LearningEffect)


@dataclass
class _Work:
    """Everything that was done on one story until it ended."""

    given: LearningShare  # to its first start
    ended: str = ""
    tokens: int = 0
    starts: set[tuple[str, int]] = field(default_factory=set)  # run and number


def gather(project: Project, journal: Queries, config: LearningSection) -> Stats:
    """All numbers; of an empty journal all of them are zero."""
    runs = journal.runs(MAX_RUNS)[::-1]
    totals = [run.totals for run in runs]
    settings = [readable(run.config, Config) for run in runs]
    stats = Stats(
        simulated={str(one.agent.name) for one in settings} == {"scripted"},
        runs=len(runs),
        runs_complete=sum(run.status == "complete" for run in runs),
        iterations=sum(one.iterations for one in totals),
        cost_usd=sum(one.cost_usd for one in totals),
        cost_estimated=any(one.cost_estimated for one in totals),
        unpriced=sum(one.unpriced for one in totals),
        tokens=sum(one.total_tokens for one in totals),
        active_s=sum(one.active_s for one in totals),
        waited_s=sum(one.waited_s for one in totals),
        prompt_budget=config.budget_tokens,
    )
    works: list[_Work] = []
    unpassed: dict[str, _Work] = {}  # by story
    for run, config_then in zip(runs, settings, strict=True):
        finished = [one for one in journal.every_iteration(run.id) if one.finished_at is not None]
        _add_runaways(stats, policy_of(config_then), finished)
        for iteration in finished:
            _add_iteration(stats, iteration)
            if iteration.story is not None:
                if iteration.story not in unpassed:
                    unpassed[iteration.story] = _Work(given=iteration.record.learning)
                    works.append(unpassed[iteration.story])
                work = unpassed[iteration.story]
                work.ended = ended_as(iteration) or work.ended
                work.tokens += iteration.total_tokens
                work.starts.add((iteration.run, iteration.n))
                if iteration.record.verdict.passed:
                    del unpassed[iteration.story]
    stats.stories.update(work.ended or "open" for work in works)
    _add_learning(stats, project, config, works)
    return stats


def _add_iteration(stats: Stats, iteration: IterationRecord) -> None:
    if iteration.outcome != Outcome.COMPLETED:
        stats.failures[iteration.outcome] += 1
    elif ended_as(iteration) == "failed" and iteration.record.analysis.story_claimed:
        stats.failures["claimed, but not proven"] += 1
    if added := iteration.record.learning.tokens:
        stats.prompts += 1
        stats.prompt_tokens += added
        stats.prompt_tokens_most = max(stats.prompt_tokens_most, added)


def _add_runaways(stats: Stats, policy: Policy, finished: Sequence[IterationRecord]) -> None:
    """Starts in a row on one story that came to nothing; outages are no starts."""
    threshold = policy.no_progress_threshold
    longest = threshold + (policy.preset is not Preset.STRICT)  # HALF_OPEN is one
    starts = [one for one in finished if not Outcome(one.outcome).is_infrastructure]
    for (_, progress), row in groupby(
        starts, key=lambda one: (one.story, one.record.analysis.progress)
    ):
        length = len(list(row))
        if not progress and length >= threshold:
            stats.runaways += 1
            stats.runaways_prevented += length <= longest


def _add_learning(
    stats: Stats, project: Project, config: LearningSection, works: Sequence[_Work]
) -> None:
    learnings, _ = store.load_all(project)
    proven = {(one.run, one.iteration) for one in learnings if one.captured}
    patterns = store.load_index(project).patterns
    stats.learnings, stats.patterns = len(learnings), len(patterns)
    stats.trusted = sum(one.is_trusted for one in patterns)
    stats.held_back = sum(one.standing is PatternStanding.HELD_BACK for one in patterns)
    stats.skills = tuple(generated_skills(project.root, config.skills))
    ended = [work for work in works if work.ended]
    stats.stories_ended = len(ended)
    stats.stories_captured = sum(bool(work.starts & proven) for work in ended)
    # Stories that wait for a person say nothing about cost.
    told = [work for work in ended if work.ended in ("passed", "set_aside") and work.tokens > 0]
    without = [work for work in told if not work.given.ids]
    stats.effect = compare(
        [work.tokens for work in told if work.given.ids],
        [work.tokens for work in without],
        controlled=bool(without) and all(work.given.held_out for work in without),
    )
