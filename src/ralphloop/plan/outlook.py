"""What a plan looks like, what it is likely to take, and what its commands show now.

A story stands once in the tree, below the last of those it waits for.  What it will take is the
median of three or more stories that passed here, of its size or else of any; without such a past a
number would be an invention: only iterations are guessed, and it is said.

Commands are tried once, after a person said yes to just that: one that is green before anything was
done proves nothing, one that cannot start is refused, a red one is what a story begins with.
"""

import os
import shlex
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

from ralphloop.agents.environment import find_program
from ralphloop.core.handover import criteria_met
from ralphloop.core.model import CheckResult, CheckStatus, Story
from ralphloop.core.run_state import Standing
from ralphloop.core.totals import money
from ralphloop.errors import RalphError
from ralphloop.night.look import reading
from ralphloop.proc.sandbox import Box
from ralphloop.project import Project
from ralphloop.repo.checks import (
    Trouble,
    cannot_start,
    check_of,
    run_checks,
    verify_of,
    why_red,
)
from ralphloop.stories.names import label
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import counted, one_line

NOT_TRIED = "not tried"
GREEN = "green: proves nothing yet"
RED = "red"
MISSING = "expected red: missing"  # the tests it names are yet to be written
_TITLE = 54
_LONGEST = 100
_CRITERION = 240
_SIZES = {"S": 1.0, "M": 2.0, "L": 3.0}  # iterations, where nothing is known
_ENOUGH = 3
_MOST_RUNS = 50
_MUCH_CODE = 200_000  # bytes in the files that a story touches


def table(
    stories: Sequence[Story], sizes: Sequence[str], doubted: Collection[str], *, whole: bool
) -> Iterator[str]:
    """One line a story, its command below it, and what a model asks of it in full."""
    wide = max(len(label(story.id)) for story in stories)
    for story, size in zip(stories, sizes, strict=True):
        number = len(story.criteria)
        mark = "!" if story.id in doubted else " "
        criteria = "1 criterion" if number == 1 else f"{number or 'no'} criteria"
        title = f"{one_line(story.title, _TITLE):<{_TITLE}}"
        yield f"{mark} {label(story.id):<{wide}}  {title}  {size}  {criteria}"
        command = f"verify: {one_line(shlex.join(story.verify), _LONGEST)}" if story.verify else ""
        yield f"  {'':{wide}}  {command or 'no verify: the checks alone decide'}"
        for criterion in story.criteria if whole else ():
            yield f"  {'':{wide}}  - {one_line(criterion, _CRITERION)}"


def tree(stories: Sequence[Story]) -> Iterator[str]:
    place = {story.id: number for number, story in enumerate(stories)}
    above = {}
    for story in stories:
        known = [name for name in story.depends_on if name in place]
        above[story.id] = max(known, key=place.__getitem__, default="")
    stack = [(story, "", "") for story in reversed(stories) if not above[story.id]]
    while stack:
        story, branch, margin = stack.pop()
        others = [label(name) for name in story.depends_on if name != above[story.id]]
        also = f" ({'also ' * bool(above[story.id])}after {', '.join(others)})" if others else ""
        yield f"{branch}{label(story.id)} {one_line(story.title, _TITLE)}{also}"
        below = [one for one in stories if above[one.id] == story.id]
        for child in reversed(below):
            turn, bar = ("└─ ", "   ") if child is below[-1] else ("├─ ", "│  ")
            stack.append((child, f"{margin}{turn}", f"{margin}{bar}"))


class PastStory(NamedTuple):
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


def size_of(story: Story, root: Path) -> str:
    most = max(len(story.criteria), len(story.touches))
    bulk = 0
    for place in story.touches[:20]:
        with suppress(OSError, ValueError):  # a pattern, or what is not there yet, has no size
            bulk += (root / place).stat().st_size
    if most > 6 or bulk > _MUCH_CODE:
        return "L"
    return "S" if most <= 3 and bulk <= _MUCH_CODE // 4 else "M"


def past_stories(project: Project, listed: Iterable[Story]) -> list[PastStory]:
    """The stories that passed here and still stand in the list; time is by their iterations."""
    found: dict[str, PastStory] = {}
    known = {story.id: size_of(story, project.root) for story in listed}
    with suppress(RalphError), reading(project) as journal:  # who needs it says what is wrong
        for run in reversed(journal.runs(_MOST_RUNS)):
            each = (run.totals.active_s - run.totals.waited_s) / max(1, run.totals.iterations)
            for name, it in journal.story_states(run.id).items():
                if it.standing is Standing.PASSED and it.totals.iterations and name in known:
                    time = it.totals.iterations * each
                    found[name] = PastStory(
                        known[name], it.totals.iterations, it.totals.cost_usd, time
                    )
    return list(found.values())


def estimated(sizes: Sequence[str], past: Sequence[PastStory]) -> Estimate:
    if len(past) < _ENOUGH:
        words = "a guess from their sizes: too few stories have passed here to know what they cost"
        return Estimate(sum(_SIZES[size] for size in sizes), None, None, words)
    same = {size: [one for one in past if one.size == size] for size in _SIZES}
    own = [same[size] if len(same[size]) >= _ENOUGH else past for size in sizes]
    by = "by size" if all(of is not past for of in own) else "whatever their size"
    return Estimate(
        sum(median(one.iterations for one in of) for of in own),
        sum(median(one.dollars for one in of) for of in own) or None,
        sum(median(one.seconds for one in of) for of in own) or None,
        f"the median of {counted(len(past), 'story')} that passed here, {by}",
    )


def shown_by(result: CheckResult) -> str:
    """What a story's own command shows before anybody works on it, as a run calls it."""
    if result.status is CheckStatus.PASSED:
        return GREEN
    return MISSING if result.ran_nothing else RED


def held_already(story: Story, result: CheckResult) -> Iterator[str]:
    """The criteria that are seen as met before the story, each as a sentence."""
    for number in criteria_met(story, [result]):
        criterion = one_line(story.criteria[number - 1], _LONGEST)
        yield f"holds already, so it proves nothing of this story: {criterion}"


class TriedOnce(NamedTuple):
    """A command that was run once."""

    result: CheckResult | None  # None: it cannot be started
    trouble: Trouble | None  # what no story would make better about it


def try_once(
    argv: Sequence[str],
    root: Path,
    patience: float,
    box: Box | None,
    tell: Callable[[str], None],
    *,
    proves_story: bool = False,
) -> TriedOnce:
    """Run a command once: what came out, and what no story would make better about it.

    One that proves a story is run as a run does it: where it finds no test, it is red.
    """
    if trouble := cannot_start(argv, found=find_program(argv[0], os.environ, root) is not None):
        return TriedOnce(None, trouble)
    tell(f"trying {shlex.join(argv)}")
    wanted = verify_of(argv, patience, box) if proves_story else check_of(argv, patience, box)
    (result,) = run_checks([wanted], root)
    is_red = result.status is CheckStatus.FAILED and not result.ran_nothing
    return TriedOnce(result, why_red(argv, result.output_tail) if is_red else None)
