"""Stories sorted by what their ending is worth, and what a person should do about them.  Pure."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from ralphloop.core.endings import ENDINGS
from ralphloop.core.grading import Grade
from ralphloop.core.story import Story, StoryList
from ralphloop.text.plain import counted
from ralphloop.ui.report.tally import StoryTally, Tally
from ralphloop.ui.report.values import Group, Step, StoryLine
from ralphloop.ui.report.words import Teller

MOST_STORIES = 500
PASSED = ("review", "claimed", "checked", "verified", "by_hand", "earlier")
ALWAYS = ("verified", "checked", "claimed", "review", "failed", "waiting")  # even with none
_MOST_STEPS = 5
_HEX = re.compile(r"[0-9a-f]{7,64}")
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
_GRADES = {
    Grade.NEEDS_REVIEW: "review",
    Grade.BY_HAND: "by_hand",
    Grade.CLAIMED: "claimed",
    Grade.CHECKED: "checked",
    Grade.VERIFIED: "verified",
}


class Librarian:
    """Knows where each story stands."""

    def __init__(
        self,
        say: Teller,
        tally: Tally,
        *,
        states: Mapping[str, Mapping[str, Any]],
        checks: Iterable[Iterable[str]],
        commits: Mapping[int, str],
    ) -> None:
        self._say = say
        self._tally = tally
        self._states = states
        self._checks = [shlex.join(argv) for argv in checks]
        self._commits = commits

    def groups(self, stories: StoryList | None) -> tuple[Group, ...]:
        """All groups that have stories, and those a reader always looks for."""
        sorted_in: dict[str, list[Story]] = {key: [] for key, *_ in _GROUPS}
        for story in self._known(stories):
            sorted_in[self._key(story)].append(story)
        room, found = MOST_STORIES, []
        for key, title, mark, meaning in _GROUPS:
            members = sorted_in[key]
            if not members and key not in ALWAYS:
                continue
            shown = tuple(self._line(story, key) for story in members[:room])
            room -= len(shown)
            rest = len(members) - len(shown)
            found.append(Group(key, title, mark, meaning, len(members), shown, rest))
        return tuple(found)

    def _known(self, stories: StoryList | None) -> Iterator[Story]:
        """The list's stories, then those only the journal remembers."""
        listed = stories.stories if stories else ()
        yield from listed
        ids = {story.id for story in listed}
        for other in sorted(self._states.keys() - ids):
            if other or not listed:
                yield Story(
                    id=other, title="no longer in the story list" if listed else "", index=0
                )

    def _key(self, story: Story) -> str:
        state = self._states.get(story.id, {})
        standing = state.get("standing", "open")
        if standing == "passed":
            key = _GRADES.get(state.get("grade", ""), "claimed")
            here = story.id in self._tally.stories or key in ("review", "by_hand")
            return key if here else "earlier"
        if standing == "blocked":
            return "waiting"
        if standing == "set_aside" or state.get("attempts", 0):
            return "failed"
        return "by_hand" if story.passes and not state else "open"

    def _line(self, story: Story, key: str) -> StoryLine:
        state = self._states.get(story.id, {})
        spent = self._tally.stories.get(story.id, StoryTally())
        saved = self._say(state.get("saved_ref", ""), 200) if key == "failed" else ""
        return StoryLine(
            id=self._say(story.id, 60) or "the prompt",
            title=self._say(story.title, 200),
            reason=self._say(state.get("reason", "") or _default_reason(key, spent)),
            attempts=int(state.get("attempts", 0)),
            iterations=spent.iterations,
            cost_usd=spent.cost_usd,
            tokens=spent.tokens,
            seconds=spent.seconds,
            unpriced=spent.unpriced,
            look=self._look(state, spent),
            proof=tuple(self._proof(story, spent)),
            bring_back=f"git cherry-pick --no-commit {shlex.quote(saved)}" if saved else "",
        )

    def _look(self, state: Mapping[str, Any], spent: StoryTally) -> str:
        """The command that shows the story's commits; empty where there are none."""
        first = str(state.get("start_head", ""))
        last = self._commits.get(spent.passed_in) or str(state.get("end_head", ""))
        if first == last or not _HEX.fullmatch(last):
            return ""
        if not _HEX.fullmatch(first):
            return f"git show {last[:10]}"
        return f"git diff {first[:10]}..{last[:10]}"

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
