"""How large a story is, and what stories of that size cost here before.

The size comes from what a story asks and what it touches: criteria, places, and how much code lies
in those places.  What it will cost comes from the journal: the median of the stories that passed
here, of the same size where there are three of them, of any size where there are three at all.
Without such a past a number would be an invention; only iterations are guessed then, and it is
said.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

from ralphloop.core.story import Story
from ralphloop.core.story_state import Standing, load_states
from ralphloop.core.totals import money
from ralphloop.errors import RalphError
from ralphloop.night.look import reading
from ralphloop.project import Project
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import counted

_SIZES = {"S": 1.0, "M": 2.0, "L": 3.0}  # iterations, where nothing is known
_ENOUGH = 3
_MOST_RUNS = 50
_MOST_ITERATIONS = 20_000
_MOST_FILES = 200
_MUCH_CODE = 200_000  # bytes in the files that a story touches


class Past(NamedTuple):
    """What one passed story took."""

    size: str
    iterations: float
    dollars: float
    seconds: float


class Estimate(NamedTuple):
    """What a plan is likely to take, and how that is known; None: unknown."""

    iterations: float
    dollars: float | None
    seconds: float | None
    basis: str

    def words(self) -> str:
        told = [f"about {counted(max(1, round(self.iterations)), 'iteration')}"]
        told += [money(self.dollars)] if self.dollars is not None else []
        told += [format_duration(self.seconds)] if self.seconds is not None else []
        return f"{', '.join(told)} ({self.basis})"


def size_of(story: Story, touches: Sequence[str], root: Path) -> str:
    """Small, medium or large."""
    criteria, places = len(story.criteria), len(touches)
    bulk = sum(_bytes_in(root, pattern) for pattern in touches[:20])
    if criteria > 6 or places > 6 or bulk > _MUCH_CODE:
        return "L"
    return "S" if criteria <= 3 and places <= 3 and bulk <= _MUCH_CODE // 4 else "M"


def _bytes_in(root: Path, pattern: str) -> int:
    """How much lies in the files of a pattern; one that leads out or is odd has none."""
    if pattern.startswith(("/", "~")) or ".." in pattern or "**" in pattern:
        return 0
    try:
        found = [path for _, path in zip(range(_MOST_FILES), root.glob(pattern), strict=False)]
        return sum(path.stat().st_size for path in found if path.is_file())
    except (OSError, ValueError, NotImplementedError):
        return 0


def past_stories(project: Project, listed: Iterable[Story]) -> list[Past]:
    """The stories that passed here and still stand in the list, with what they took."""
    known = {story.id: story for story in listed}
    used: dict[str, list[float]] = defaultdict(lambda: [0.0, 0.0, 0.0])
    passed: set[str] = set()
    if not project.journal.exists():
        return []
    try:
        with reading(project) as journal:
            seen = 0
            for run in journal.runs(_MOST_RUNS):
                states = load_states(journal.story_states(run.id))
                passed |= {k for k, state in states.items() if state.standing is Standing.PASSED}
                for it in journal.every_iteration(run.id, brief=True):
                    if it.story is not None and it.finished_at is not None and it.counted:
                        took = used[it.story]
                        took[0] += 1
                        took[1] += it.cost_usd
                        took[2] += max(0.0, it.finished_at - it.started_at)
                    seen += 1
                    if seen > _MOST_ITERATIONS:
                        break
    except RalphError:
        return []  # whoever needs the journal says what is wrong with it
    sized = {name: size_of(known[name], (), project.root) for name in passed & known.keys()}
    return [Past(size, *used[name]) for name, size in sized.items() if name in used]


def estimated(sizes: Sequence[str], past: Sequence[Past]) -> Estimate:
    """The sum over the stories of a plan."""
    if len(past) < _ENOUGH:
        words = "a guess from their sizes: too few stories have passed here to know what they cost"
        return Estimate(sum(_SIZES[size] for size in sizes), None, None, words)
    same = {size: [one for one in past if one.size == size] for size in _SIZES}
    enough = {size: of if len(of) >= _ENOUGH else list(past) for size, of in same.items()}
    own = [enough[size] for size in sizes]
    dollars = sum(median(one.dollars for one in of) for of in own)
    exact = all(enough[size] is same[size] for size in sizes)
    words = f"the median of {counted(len(past), 'story')} that passed here"
    return Estimate(
        sum(median(one.iterations for one in of) for of in own),
        dollars if dollars > 0 else None,
        sum(median(one.seconds for one in of) for of in own),
        words + (", by size" if exact else ", whatever their size"),
    )
