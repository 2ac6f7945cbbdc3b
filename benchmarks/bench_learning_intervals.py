"""How often the intervals of `ralph stats` hold what is true, on simulated projects.

    bench_learning_intervals.py [PROJECTS]

In each project the agent passes at each attempt with a fixed chance, one with what was learned and
one without, and one story in five is held out at random.  The *null* agents ignore what they are
given, the others are helped or harmed by it.  Prints the share of projects whose interval holds
the truth: 95 of 100 is what is said, 93 to 97 what is kept.
"""

from __future__ import annotations

import math
import random
import sys
from collections import Counter

from ralphloop.learning.stats import TrialStory, compare

MOST_ATTEMPTS = 4
AGENTS = {  # the chance to pass at an attempt, with and without what was learned
    "null": (0.6, 0.6),
    "null, a good one": (0.8, 0.8),
    "helped": (0.9, 0.4),
    "helped a little": (0.75, 0.6),
    "harmed": (0.4, 0.7),
}
_LOG_TOKENS = (9.0, 0.5)  # of a story: its size times its attempts


def _attempts(p: float) -> list[float]:
    """How likely each number of attempts is; the last one is where a story is given up."""
    likely = [p * (1 - p) ** n for n in range(MOST_ATTEMPTS - 1)]
    return [*likely, 1 - sum(likely)]


def _told(chance: random.Random, p: float) -> TrialStory:
    (attempts,) = chance.choices(range(1, MOST_ATTEMPTS + 1), _attempts(p))
    tokens = max(1, round(math.exp(chance.gauss(*_LOG_TOKENS)) * attempts))
    return TrialStory(first=attempts == 1, attempts=attempts, tokens=tokens)


def _truth(p: float) -> tuple[float, float, float]:
    """First-attempt pass rate, attempts, and the mean logarithm of what they make of the tokens."""
    likely = list(enumerate(_attempts(p), 1))
    logs = sum(share * math.log(n) for n, share in likely)
    return p, sum(share * n for n, share in likely), logs


def coverage(name: str, *, projects: int, seed: int) -> dict[str, float]:
    """The share of projects whose intervals hold the truth, by what is compared."""
    chance, held, counted = random.Random(f"{name} {seed}"), Counter[str](), 0
    given, without = AGENTS[name]
    (first, tries, logs), (first_0, tries_0, logs_0) = _truth(given), _truth(without)
    truth = {
        "first": first - first_0,
        "attempts": tries - tries_0,
        "tokens": math.expm1(logs - logs_0),
    }
    while counted < projects:
        sides: dict[bool, list[TrialStory]] = {True: [], False: []}
        for _ in range(chance.randint(40, 160)):
            is_held_out = chance.random() < 0.2
            sides[is_held_out].append(_told(chance, without if is_held_out else given))
        effect = compare(sides[False], sides[True])
        if effect.first is not None:
            counted += 1
            for what, true in truth.items():
                found = getattr(effect, what)
                held[what] += found.low <= true <= found.high
    return {what: held[what] / projects for what in truth}


def main(projects: int) -> int:
    """Print the coverage for every kind of agent; 1 where one is out of bounds."""
    wrong = False
    for name in AGENTS:
        found = coverage(name, projects=projects, seed=1)
        wrong |= not all(0.93 <= share <= 0.97 for share in found.values())
        words = ", ".join(f"{what} {share:.1%}" for what, share in found.items())
        print(f"{name:<20} {words} of {projects} projects")
    return int(wrong)


if __name__ == "__main__":
    sys.exit(main(int(sys.argv[1]) if len(sys.argv) > 1 else 10_000))
