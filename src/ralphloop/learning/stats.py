"""One place for all numbers: runs, stories, money, tokens, failures, and what learning does.

A story that is opened again after it passed is a new one: ids return in the next story file.

Held out stories are compared with all others of the experiment, with 95 % intervals that also hold
for few (`benchmarks/bench_learning_intervals.py`): Newcombe's for pass rates; Welch's for attempts,
with one made-up story of two attempts on each side, because a handful that all passed at once would
look as if they could do nothing else; Welch's for the logarithms of dollars and tokens.
"""

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby
from statistics import fmean, variance
from typing import NamedTuple

from ralphloop.config.model import Config, LearningSection, policy_of
from ralphloop.core import readable
from ralphloop.core.grading import DOUBT
from ralphloop.core.iteration import LearningShare
from ralphloop.core.model import DoubterAsked, Outcome, Value
from ralphloop.core.policy import Policy
from ralphloop.journal.queries import Queries
from ralphloop.journal.records import IterationRecord
from ralphloop.learning import store
from ralphloop.learning.capturing import ended_as
from ralphloop.learning.skills import made_skills
from ralphloop.project import Project

MAX_RUNS = 500
ENOUGH_STORIES = 20
ENOUGH_HELD_OUT = 5
TOO_EARLY = "too early to tell"
_Z = 1.96
_SUMS = ("iterations", "cost_usd", "unpriced", "active_s", "waited_s")


class Difference(Value, kw_only=True, omit_defaults=False):
    """A difference with its 95 % interval: points of 1, attempts, or shares (-0.1: 10 % fewer)."""

    change: float
    low: float
    high: float


class LearningEffect(Value, kw_only=True, omit_defaults=False):
    """What carrying learnings changes; nothing where it is too early to tell."""

    n_with: int = 0
    n_without: int = 0
    first: Difference | None = None
    attempts: Difference | None = None
    cost: Difference | None = None
    tokens: Difference | None = None
    sentence: str = TOO_EARLY


@dataclass
class DoubterStats:
    """One that may only doubt: how often it was asked, and what came of its doubts."""

    asked: int = 0
    unheard: int = 0  # times that it gave no answer
    doubts: int = 0  # that it had, whatever came of them
    put: int = 0  # to the agent, once a story
    changed: int = 0  # of those: the next start on the story changed files
    unchanged: int = 0  # of those: it changed none; what is left was not answered yet
    tokens: int = 0
    cost_usd: float = 0.0
    cost_estimated: bool = False


@dataclass
class Stats:
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
    patterns: Counter[str] = field(default_factory=Counter)  # by their standing
    skills: tuple[str, ...] = ()
    stories_ended: int = 0
    stories_captured: int = 0
    prompts: int = 0  # that carried something
    prompt_tokens: int = 0  # that this added to all of them
    prompt_tokens_most: int = 0
    prompt_budget: int = 0
    effect: LearningEffect = field(default_factory=LearningEffect)
    doubters: dict[str, DoubterStats] = field(default_factory=dict)  # by their names


@dataclass(kw_only=True)
class TrialStory:
    """Everything that was done on one story until it ended."""

    first: bool = False  # it passed at its first attempt
    attempts: int = 0
    tokens: int = 0
    cost_usd: float = 0.0
    given: LearningShare = field(default_factory=LearningShare)  # to its first start
    ended: str = ""
    starts: set[tuple[str, int]] = field(default_factory=set)  # run and number
    unanswered: tuple[str, ...] = ()  # who doubted its last start


def gather(project: Project, journal: Queries, config: LearningSection) -> Stats:
    runs = journal.runs(MAX_RUNS)[::-1]
    totals = [run.totals for run in runs]
    settings = [readable(run.config, Config) for run in runs]
    stats = Stats(
        simulated={str(one.agent.name) for one in settings} == {"scripted"},
        runs=len(runs),
        runs_complete=sum(run.status == "complete" for run in runs),
        cost_estimated=any(one.cost_estimated for one in totals),
        tokens=sum(one.total_tokens for one in totals),
        prompt_budget=config.budget_tokens,
        **{name: sum(getattr(one, name) for one in totals) for name in _SUMS},
    )
    ledger = _Ledger()
    for run, config_then in zip(runs, settings, strict=True):
        finished = [one for one in journal.every_iteration(run.id) if one.finished_at is not None]
        _add_runaways(stats, policy_of(config_then), finished)
        rejections = journal.rejections(run.id)
        for iteration in finished:
            while rejections and rejections[0].after < iteration.n:
                ledger.take_back(rejections.pop(0).story)
            work = ledger.work_on(iteration)
            _add_iteration(stats, iteration, work)
            _add_doubts(stats, iteration, work)
            if iteration.record.verdict.passed:
                ledger.close(iteration.story)
        for rejection in rejections:
            ledger.take_back(rejection.story)
    works = ledger.works
    stats.stories.update(work.ended or "open" for work in works)
    _add_learning(stats, project, config, works)
    return stats


class _Ledger:
    """Work by story: one that is opened again after it passed is a new one, unless a person sent
    just that work back."""

    def __init__(self) -> None:
        self.works: list[TrialStory] = []
        self._unpassed: dict[str | None, TrialStory] = {}
        self._passed: dict[str | None, TrialStory] = {}

    def work_on(self, iteration: IterationRecord) -> TrialStory:
        """The work that an iteration belongs to."""
        story = iteration.story
        if story not in self._unpassed:
            self._unpassed[story] = TrialStory(given=iteration.record.learning)
            if story is not None:
                self.works.append(self._unpassed[story])
        return self._unpassed[story]

    def close(self, story: str | None) -> None:
        """It has passed."""
        self._passed[story] = self._unpassed.pop(story)

    def take_back(self, story: str) -> None:
        """It has not passed after all, and goes on."""
        if story in self._passed and story not in self._unpassed:
            work = self._passed.pop(story)
            work.ended = "open"
            self._unpassed[story] = work


def _add_iteration(stats: Stats, iteration: IterationRecord, work: TrialStory) -> None:
    ended = ended_as(iteration)
    if ended:
        work.ended = ended
    if ended and ended != "blocked":  # a question is no attempt that failed
        work.attempts += 1
    if ended == "passed" and work.attempts == 1:
        work.first = True
    work.tokens += iteration.total_tokens
    work.cost_usd += iteration.cost_usd
    work.starts.add((iteration.run, iteration.n))
    if iteration.outcome != Outcome.COMPLETED:
        stats.failures[iteration.outcome] += 1
    elif ended == "failed" and iteration.record.analysis.story_claimed:
        stats.failures["claimed, but not proven"] += 1
    if added := iteration.record.learning.tokens:
        stats.prompts += 1
        stats.prompt_tokens += added
        stats.prompt_tokens_most = max(stats.prompt_tokens_most, added)


def _add_doubts(stats: Stats, iteration: IterationRecord, work: TrialStory) -> None:
    """What those who may only doubt said of a start, and whether it answers what they said before.

    What older releases wrote down names only those who doubted, and not what they cost.
    """
    evidence = iteration.record.evidence
    has_worked = not Outcome(iteration.outcome).is_infrastructure
    if work.unanswered and has_worked:
        for name in work.unanswered:
            if evidence.files_changed:
                stats.doubters[name].changed += 1
            else:
                stats.doubters[name].unchanged += 1
        work.unanswered = ()
    doubting = [_doubter(words) for words in evidence.opinions or () if words.startswith(DOUBT)]
    asked = evidence.doubters or tuple(DoubterAsked(name=name, doubted=True) for name in doubting)
    for one in asked:
        found = stats.doubters.setdefault(one.name, DoubterStats())
        found.asked += 1
        found.unheard += int(bool(one.unheard))
        found.doubts += int(one.doubted)
        found.tokens += one.usage.total_tokens
        found.cost_usd += one.usage.dollars
        found.cost_estimated |= one.usage.estimated
    put = {_doubter(words) for words in iteration.record.verdict.asked if words.startswith(DOUBT)}
    work.unanswered = tuple(sorted(put.intersection(stats.doubters)))
    for name in work.unanswered:
        stats.doubters[name].put += 1


def _doubter(finding: str) -> str:
    """Whose words they are."""
    return finding.removeprefix(DOUBT).partition(":")[0]


def _add_runaways(stats: Stats, policy: Policy, finished: Sequence[IterationRecord]) -> None:
    """Starts in a row on one story that came to nothing; outages are no starts."""
    threshold = policy.no_progress_threshold
    is_strict = policy.preset == "strict"
    longest = threshold if is_strict else threshold + 1  # HALF_OPEN is one
    starts = [one for one in finished if not Outcome(one.outcome).is_infrastructure]
    for (_, progress), row in groupby(
        starts, key=lambda one: (one.story, one.record.analysis.progress)
    ):
        length = len(list(row))
        if not progress and length >= threshold:
            stats.runaways += 1
            if length <= longest:
                stats.runaways_prevented += 1


def _add_learning(
    stats: Stats, project: Project, config: LearningSection, works: Sequence[TrialStory]
) -> None:
    learnings = store.load_all(project).learnings
    index = store.load_index(project)
    # A story is captured if some pattern stands on what it taught.
    found_by = set(index.found_by)
    proven = {(one.run, one.iteration) for one in learnings if one.story in found_by}
    stats.learnings = len(learnings)
    stats.patterns.update(str(one.standing) for one in index.patterns)
    stats.skills = tuple(made_skills(project.root))
    ended = [work for work in works if work.ended]
    stats.stories_ended = len(ended)
    stats.stories_captured = sum(bool(work.starts & proven) for work in ended)
    trial = [work for work in ended if work.given.trial]
    with_them = [work for work in trial if not work.given.held_out]
    without = [work for work in trial if work.given.held_out]
    stats.effect = compare(with_them, without)
    if not config.holdout and not stats.effect.n_without:
        stats.effect = LearningEffect(sentence="not compared: learning.holdout is 0")


def compare(with_them: Sequence[TrialStory], without: Sequence[TrialStory]) -> LearningEffect:
    """Stories that were given what was learned against those that were held out."""
    n_with = len(with_them)
    n_without = len(without)
    if n_with + n_without < ENOUGH_STORIES or min(n_with, n_without) < ENOUGH_HELD_OUT:
        words = f"{TOO_EARLY} ({n_with} with learnings, {n_without} held out)"
        return LearningEffect(n_with=n_with, n_without=n_without, sentence=words)
    first = _share_difference(with_them, without)
    attempts = welch(_attempts(with_them), _attempts(without))
    tokens = _ratio(
        [float(one.tokens) for one in with_them], [float(one.tokens) for one in without]
    )
    cost = _ratio([one.cost_usd for one in with_them], [one.cost_usd for one in without])
    said = [
        f"passed at the first attempt {_words(first, 'more', 'less', 100, '{:.0f} points')} often",
        f"took {_words(attempts, 'more', 'fewer', 1, '{:.2f}')} attempts",
    ]
    if cost:
        said.append(f"cost {_words(cost, 'more', 'less', 100, '{:.0f} %')}")
    if tokens:
        said.append(f"used {_words(tokens, 'more', 'fewer', 100, '{:.0f} %')} tokens")
    found = filter(None, (first, attempts, cost, tokens))
    clear = any(not one.low <= 0 <= one.high for one in found)
    return LearningEffect(
        n_with=n_with,
        n_without=n_without,
        first=first,
        attempts=attempts,
        cost=cost,
        tokens=tokens,
        sentence=f"{'' if clear else 'no effect seen: '}stories with learnings {'; '.join(said)}"
        f" (95 % intervals; {n_with} with, {n_without} held out at random)",
    )


def _words(found: Difference, more: str, less: str, scale: float, form: str) -> str:
    def one(value: float) -> str:
        return f"{form.format(abs(value) * scale)} {less if value < 0 else more}"

    return f"{one(found.change)} ({one(found.low)} to {one(found.high)})"


def _share_difference(with_them: Sequence[TrialStory], without: Sequence[TrialStory]) -> Difference:
    """How much more often they passed at once: Newcombe's interval, each share with its own."""
    one = _wilson(sum(work.first for work in with_them), len(with_them))
    other = _wilson(sum(work.first for work in without), len(without))
    change = one.share - other.share
    down = math.hypot(one.share - one.low, other.high - other.share)
    up = math.hypot(one.high - one.share, other.share - other.low)
    return Difference(change=change, low=change - down, high=change + up)


def _attempts(works: Sequence[TrialStory]) -> list[float]:
    """The attempts of each story, and those of the made-up one."""
    return [2.0, *(float(work.attempts) for work in works)]


class _Share(NamedTuple):
    """A share of stories with its 95 % interval."""

    share: float
    low: float
    high: float


def _wilson(count: int, total: int) -> _Share:
    """The share of so many, with Wilson's interval."""
    share = count / total
    z2 = _Z * _Z / total
    middle = (share + z2 / 2) / (1 + z2)
    half = _Z * math.sqrt(share * (1 - share) / total + z2 / (4 * total)) / (1 + z2)
    return _Share(share, middle - half, middle + half)


def welch(with_them: Sequence[float], without: Sequence[float]) -> Difference:
    """The difference of two means whose spreads may differ."""
    a = variance(with_them) / len(with_them)
    b = variance(without) / len(without)
    change = fmean(with_them) - fmean(without)
    half = 0.0
    if a + b:
        freedom = (a + b) ** 2 / (a * a / (len(with_them) - 1) + b * b / (len(without) - 1))
        half = students_t(freedom) * math.sqrt(a + b)
    return Difference(change=change, low=change - half, high=change + half)


def students_t(freedom: float) -> float:
    """Student's t at 97.5 %, by its expansion around the normal (within 1 % from 2 on)."""
    return 1.96 + 2.372 / freedom + 2.822 / freedom**2 + 2.556 / freedom**3 + 1.59 / freedom**4


def _ratio(with_them: Sequence[float], without: Sequence[float]) -> Difference | None:
    """How many times as much; nothing where some of it is unknown."""
    if not all(value > 0 for value in (*with_them, *without)):
        return None
    found = welch([math.log(value) for value in with_them], [math.log(value) for value in without])
    return Difference(
        change=math.expm1(found.change), low=math.expm1(found.low), high=math.expm1(found.high)
    )
