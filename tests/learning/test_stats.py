"""All numbers in one place, read off the journal."""

from __future__ import annotations

from typing import Any

import pytest

from ralphloop.config.model import LearningSection
from ralphloop.journal.queries import JournalReader
from ralphloop.learning import store
from ralphloop.learning.capturing import capture
from ralphloop.learning.stats import Stats, gather
from ralphloop.project import Project
from tests.learning.support import NOON, RUN, Night, record, red, story

CARRIED = {"ids": ["0123abcd"], "tokens": 120}


def numbers(project: Project, night: Night) -> Stats:
    """Everything that can be counted there."""
    return gather(project, night.journal, LearningSection())


def test_without_a_journal_there_are_no_numbers(project: Project) -> None:
    """A project that never ran has zeros and says it is too early."""
    with JournalReader.open(project.journal) as journal:
        found = gather(project, journal, LearningSection())
    assert (found.runs, found.iterations, found.stories_ended) == (0, 0, 0)
    assert found.effect.sentence.startswith("too early to tell")


def test_stories_and_failures_are_counted(project: Project) -> None:
    """Each story once by how it ended; failures by what they were."""
    night = Night(project)
    night.add("A", record(checks=[red("make", "error: x")]))
    night.add("A", record(passed=True, files=["a.py"]))
    night.add("B", record(), status="BLOCKED")
    night.add("C", record(), outcome="timeout")
    night.add("D", record(claimed=False, files=["d.py"]))
    night.add("E", record(), outcome="transient")
    found = numbers(project, night)
    assert found.stories == {"passed": 1, "blocked": 1, "failed": 1, "open": 2}
    assert found.failures == {"claimed, but not proven": 1, "timeout": 1, "transient": 1}
    assert (found.runs, found.iterations, found.tokens) == (1, 6, 600)


def test_a_story_opened_again_is_a_new_one(project: Project) -> None:
    """Ids return in the next story file; what passed before is not mixed in."""
    night = Night(project)
    for _ in range(3):
        night.add("US-1", record(passed=True, files=["a.py"]))
    assert numbers(project, night).stories == {"passed": 3}


def test_the_capture_rate_is_per_story(project: Project) -> None:
    """A story is captured if a pattern stands on it; changed files alone, or outages, are none."""
    night = Night(project)
    for name, files in (
        ("A", ["src/a.py", "src/b.py"]),
        ("B", ["src/c.py", "src/b.py"]),
        ("C", ["lib/x.py", "lib/y.py"]),
        ("D", []),
    ):
        number = night.add(name, record(passed=True, files=files))
        for path in files:
            (project.root / path).parent.mkdir(exist_ok=True)
            (project.root / path).write_text("")
        capture(project, night.journal, RUN, number, story(name, title=f"Do {name}"))
    night.add("E", record(), outcome="usage_limit")
    store.rebuild(project, now=NOON)
    found = numbers(project, night)
    assert (found.stories_captured, found.stories_ended) == (2, 4)


def test_what_carrying_costs(project: Project) -> None:
    """Tokens added to prompts: how many, on how many, at most."""
    night = Night(project)
    night.add("A", record(passed=True, learning={"ids": ["a"], "tokens": 100}))
    night.add("B", record(passed=True, learning={"ids": ["a"], "tokens": 300}))
    night.add("C", record(passed=True))
    found = numbers(project, night)
    assert (found.prompts, found.prompt_tokens, found.prompt_tokens_most) == (2, 400, 300)


def test_only_stories_of_the_experiment_are_compared(project: Project) -> None:
    """Held out stories against those given something; early ones, however big, are on no side."""
    night = Night(project)
    for n in range(8):
        night.add(f"E-{n}", record(passed=True), tokens=90_000)
    for n in range(24):
        trial: dict[str, Any] = {"trial": True, **({"held_out": True} if n % 4 == 3 else CARRIED)}
        night.add(f"S-{n}", record(passed=True, learning=trial), tokens=900 + n % 5)
    effect = numbers(project, night).effect
    assert (effect.n_with, effect.n_without) == (18, 6)
    assert effect.tokens is not None
    assert abs(effect.tokens.change) < 0.01
    assert "no effect seen" in effect.sentence


def test_all_attempts_count_for_the_side_of_the_first(project: Project) -> None:
    """Tokens, dollars and attempts of a story belong together, also where it is given up."""
    night = Night(project)
    for n in range(10):
        held = {"trial": True, "held_out": True}
        night.add(f"W-{n}", record(learning=held), tokens=500 + n)
        night.add(f"W-{n}", record(passed=True, learning=held), tokens=500)
        night.add(
            f"L-{n}", record(passed=True, learning={"trial": True, **CARRIED}), tokens=400 + n
        )
    effect = numbers(project, night).effect
    assert (effect.n_with, effect.n_without) == (10, 10)
    assert effect.tokens is not None
    assert effect.tokens.change == pytest.approx(-0.6, abs=0.02)
    assert effect.attempts is not None
    assert effect.attempts.change == pytest.approx(-1, abs=0.1)
    assert effect.first is not None
    assert effect.first.change == 1


def test_without_a_comparison_none_is_claimed(project: Project) -> None:
    """Who switches the comparison off is told that there is none."""
    found = gather(project, Night(project).journal, LearningSection(holdout=0))
    assert found.effect.sentence == "not compared: learning.holdout is 0"


@pytest.mark.parametrize(
    "rows, seen, prevented",
    [([2], 0, 0), ([3], 1, 1), ([4], 1, 1), ([5], 1, 0), ([4, 9, 3], 3, 2)],
)
def test_PRD_metric_runaway_loops(
    rows: list[int], seen: int, prevented: int, project: Project
) -> None:
    """Three starts without progress on a story are a runaway; it may take one more to stop it."""
    night = Night(project, circuit={"preset": "standard", "no_progress_threshold": 3})
    for number, length in enumerate(rows):
        for _ in range(length):
            night.add(f"S-{number}", record(claimed=False))
            night.add(f"S-{number}", record(), outcome="transient")
    found = numbers(project, night)
    assert (found.runaways, found.runaways_prevented) == (seen, prevented)


def test_a_scripted_night_is_called_a_simulation(project: Project) -> None:
    """Numbers that no model made are marked."""
    night = Night(project, agent={"name": "scripted"})
    assert numbers(project, night).simulated
