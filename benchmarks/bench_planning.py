"""Deciding what starts next with thousands of stories and hundreds in flight.

Run: .venv/bin/python benchmarks/bench_planning.py
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable

from ralphloop.core.model import Story, StoryList
from ralphloop.core.planning import assign, who_starts
from ralphloop.core.run_state import LandingReturns, StoryState

STORIES = 5_000
IN_FLIGHT = 200
MOST_MS = 50.0
Decides = Callable[..., object]
DECIDES: dict[str, Decides] = {"who starts": who_starts, "and why others wait": assign}


def stories(count: int, seed: int = 1) -> StoryList:
    """Stories that each expect to change a few places of a large project."""
    dice = random.Random(seed)
    places = [f"src/part{n % 40}/module{n}/" for n in range(2_000)]
    found = []
    for number in range(count):
        touches = tuple(f"{dice.choice(places)}file{dice.randrange(9)}*.py" for _ in range(3))
        found.append(Story(id=f"US-{number}", title="x", index=number, touches=touches))
    return StoryList(stories=tuple(found), source="prd.json")


def milliseconds(decide: Decides, flying: int, room: int) -> float:
    """CPU time, the best of five."""
    known = stories(STORIES)
    names = [story.id for story in known.stories]
    states = {
        name: StoryState(landing=LandingReturns(collided=(names[-1 - number],)))
        for number, name in enumerate(names[:500])
    }
    taken = []
    for _ in range(5):
        began = time.process_time()
        decide(known, states, flying=names[:flying], room=room)
        taken.append((time.process_time() - began) * 1_000)
    return min(taken)


def main() -> int:
    """Print a line for each decision; 1 where one takes too long."""
    missed = False
    for name, decide in DECIDES.items():
        alone = milliseconds(decide, 0, 1)
        for room in (1, 10, IN_FLIGHT):
            took = milliseconds(decide, IN_FLIGHT, room)
            missed |= decide is who_starts and took > MOST_MS
            print(
                f"{name}: {STORIES} stories, {IN_FLIGHT} in flight, room for {room:3}: {took:6.1f}"
                f" ms ({took / alone:4.1f} times what it takes with none in flight; limit"
                f" {MOST_MS:.0f} ms)"
            )
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
