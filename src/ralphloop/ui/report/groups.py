"""Stories sorted by what their ending is worth, and what a person should do about them.  Pure."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Iterator

from ralphloop.core.endings import ENDINGS
from ralphloop.core.grading import Grade
from ralphloop.core.story import Story
from ralphloop.core.story_state import Standing
from ralphloop.night.values import Night, StoryLook
from ralphloop.text.plain import counted
from ralphloop.ui.report.tally import StoryTally, Tally
from ralphloop.ui.report.values import Group, Step, StoryLine
from ralphloop.ui.report.words import Teller

MOST_STORIES = 500
ALWAYS = ("verified", "checked", "claimed", "review", "failed", "waiting")  # even with none
_MOST_STEPS = 5
# In the order a person should look at them.
_GROUPS = (
    ("waiting", "Waiting for you", "?", "Only a person can answer what is asked here."),
    ("review", "Needs review", "!", "Checks are green, but tests or stories were weakened."),
    ("failed", "Failed", "✗", "Tried, and not passed."),
    ("claimed", "Only claimed", "~", "The agent says so; no check could prove it."),
    ("checked", "Checked", "✓", "All checks are green; none proves this story in particular."),
    ("verified", "Verified", "✓✓", "Its own proof passed, or a check turned green, or new tests."),
    ("by_hand", "By hand", "☞", "A person marked it as passed."),
    ("open", "Not finished", "○", "Not begun, or not done yet."),
    ("earlier", "Passed before this run", "·", "Nothing was done about them in this run."),
)
_GRADES: dict[str, str] = {
    Grade.NEEDS_REVIEW: "review",
    Grade.BY_HAND: "by_hand",
    Grade.CLAIMED: "claimed",
    Grade.CHECKED: "checked",
    Grade.VERIFIED: "verified",
}


class Librarian:
    """Knows where each story stands."""

    def __init__(self, say: Teller, tally: Tally, night: Night) -> None:
        self._say = say
        self._tally = tally
        self._stories = night.stories
        self._checks = [shlex.join(argv) for argv in night.session.frozen.checks]

    def groups(self) -> tuple[Group, ...]:
        """All groups that have stories, and those a reader always looks for."""
        sorted_in: dict[str, list[StoryLook]] = {key: [] for key, *_ in _GROUPS}
        for look in self._stories:
            sorted_in[self._key(look)].append(look)
        room, found = MOST_STORIES, []
        for key, title, mark, meaning in _GROUPS:
            members = sorted_in[key]
            if not members and key not in ALWAYS:
                continue
            shown = tuple(self._line(look, key) for look in members[:room])
            room -= len(shown)
            rest = len(members) - len(shown)
            found.append(Group(key, title, mark, meaning, len(members), shown, rest))
        return tuple(found)

    def _spent(self, look: StoryLook) -> StoryTally:
        return self._tally.stories.get(look.story.id, StoryTally())

    def _key(self, look: StoryLook) -> str:
        if look.standing is Standing.PASSED:
            key = _GRADES.get(look.grade, "claimed")
            here = look.story.id in self._tally.stories or key in ("review", "by_hand")
            return key if here else "earlier"
        if look.standing is Standing.BLOCKED:
            return "waiting"
        tried = look.state.attempts or self._spent(look).failed
        return "failed" if look.standing is Standing.SET_ASIDE or tried else "open"

    def _line(self, look: StoryLook, key: str) -> StoryLine:
        spent = self._spent(look)
        return StoryLine(
            id=self._say(look.story.id, 60) or "the prompt",
            title=self._say(look.story.title, 200) if look.story.id else "",
            reason=self._say(look.state.reason or _default_reason(key, spent)),
            attempts=spent.failed,
            iterations=spent.iterations,
            cost_usd=spent.cost_usd,
            unpriced=spent.unpriced,
            tokens=spent.tokens,
            seconds=spent.seconds,
            look=" && ".join(f"git show {commit}" for commit in spent.shows),
            proof=tuple(self._proof(look.story, spent)),
            bring_back=self._say(look.bring_back, 250) if key == "failed" else "",
        )

    def _proof(self, story: Story, spent: StoryTally) -> Iterator[str]:
        for name in spent.checks:
            if name == "verify" and story.verify:
                yield self._say(shlex.join(story.verify), 500)
            else:
                # A check is named after the beginning of its command line.
                yield self._say(next((c for c in self._checks if c.startswith(name)), name), 500)


def next_steps(groups: Iterable[Group], decision: str) -> tuple[Step, ...]:
    """What a person should do now, most urgent first."""
    by_key = {group.key: group for group in groups}
    steps: list[Step] = []
    for line in by_key["waiting"].stories[:_MOST_STEPS]:
        steps.append(Step(f"Answer {line.id}: {line.reason}"))
    for line in by_key["review"].stories[:_MOST_STEPS]:
        steps.append(Step(f"Review {line.id}: {line.reason}", line.look))
    for line in by_key["failed"].stories[:_MOST_STEPS]:
        if line.bring_back:
            words = f"{line.id} was set aside. To bring its unfinished work back:"
            steps.append(Step(words, line.bring_back))
    if claimed := by_key["claimed"].count:
        words = f"{counted(claimed, 'story')} {'is' if claimed == 1 else 'are'} only claimed"
        steps.append(Step(f"{words}: look at the change, and set checks.commands in ralph.toml."))
    if ending := ENDINGS.get(decision):
        steps.append(Step(ending.advice, ending.command))
    return tuple(steps)


def _default_reason(key: str, spent: StoryTally) -> str:
    if key == "open":
        return "begun, not done yet" if spent.iterations else "not begun"
    return ""
