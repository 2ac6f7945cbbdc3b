"""One place for all numbers: runs, stories, money, tokens, failures, and what learning does.

Everything is read off the journal in one pass, run by run.  The iterations of a story make one
*work* on it; a story that is opened again after it passed is a new one, because ids return in the
next story file.  Whether learning helps is `effect`'s to say.
"""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import groupby

from ralphloop.config.model import Config, LearningSection, policy_of
from ralphloop.core import readable
from ralphloop.core.iteration import LearningShare
from ralphloop.core.model import Outcome
from ralphloop.core.policy import Policy, Preset
from ralphloop.journal.queries import Queries
from ralphloop.journal.records import IterationRecord
from ralphloop.learning import store
from ralphloop.learning.capturing import ended_as
from ralphloop.learning.effect import LearningEffect, TrialStory, compare
from ralphloop.learning.skills import made_skills
from ralphloop.project import Project

MAX_RUNS = 500
_SUMS = ("iterations", "cost_usd", "unpriced", "active_s", "waited_s")


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


@dataclass(kw_only=True)
class _Work(TrialStory):
    """Everything that was done on one story until it ended."""

    given: LearningShare  # to its first start
    ended: str = ""
    starts: set[tuple[str, int]] = field(default_factory=set)  # run and number

    def add(self, iteration: IterationRecord) -> None:
        ended = ended_as(iteration)
        self.attempts += bool(ended)
        self.first |= ended == "passed" and self.attempts == 1
        self.ended = ended or self.ended
        self.tokens += iteration.total_tokens
        self.cost_usd += iteration.cost_usd
        self.starts.add((iteration.run, iteration.n))


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
                work.add(iteration)
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
    with_them, without = (
        [work for work in trial if work.given.held_out is held_out] for held_out in (False, True)
    )
    stats.effect = compare(with_them, without)
    if not config.holdout and not stats.effect.n_without:
        stats.effect = LearningEffect(sentence="not compared: learning.holdout is 0")
