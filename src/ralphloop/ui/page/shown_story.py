"""Stories as one decides about them on the page: the list by doubt, one story, the decision.

What is shown is `night.review`, the same as in a terminal.  A story that nobody decides about now
(open, asking, set aside) has a page of the same form, with what is known of it.
"""

from collections.abc import Sequence
from typing import NamedTuple

from ralphloop.core.model import CheckStatus
from ralphloop.journal.records import IterationRecord
from ralphloop.night.look import reading
from ralphloop.night.review import review_list, review_story
from ralphloop.night.review_values import ReviewList, StoryReview
from ralphloop.night.values import Night, StoryLook
from ralphloop.project import Project

_MOST_ITERATIONS = 50


class ShownStory(NamedTuple):
    """One story, and where it stands among those that wait for a person."""

    look: StoryLook | None  # as the list has it; None: only the journal knows it
    review: StoryReview | None  # None: there is nothing to decide about it now
    iterations: Sequence[IterationRecord]
    failed: IterationRecord | None  # the newest whose checks failed, if it is not done since
    position: int = 0  # among those that wait, from 1; 0: it does not
    waiting: int = 0
    next_story: str = ""  # after it, that waits
    is_live: bool = False  # a run goes on: nothing can be decided now

    @property
    def name(self) -> str:
        """The story's id, as it is written."""
        if self.review is not None:
            return self.review.entry.story
        return self.look.story.id if self.look is not None else ""


def shown_story(project: Project, night: Night, name: str) -> ShownStory | None:
    """Everything about a story; None where nobody knows it."""
    listed = review_list(project)
    entry = listed.item(name) if listed else None
    story = entry.story if entry else name
    look = next((one for one in night.stories if one.story.id == story), None)
    if look is None and entry is None:
        return None
    run = entry.run if entry and entry.run else (night.run.id if night.run else "")
    iterations: Sequence[IterationRecord] = ()
    if run:
        with reading(project) as journal:
            iterations = journal.story_iterations(run, story, _MOST_ITERATIONS)
    waiting = [one.story for one in listed.items] if listed else []
    return ShownStory(
        look=look,
        review=review_story(project, entry) if entry else None,
        iterations=iterations,
        failed=None if entry else _failed_last(iterations),
        position=waiting.index(story) + 1 if story in waiting else 0,
        waiting=len(waiting),
        next_story=next_of(listed, story),
        is_live=listed.is_live if listed else night.is_live,
    )


def next_of(listed: ReviewList | None, story: str) -> str:
    """The story that waits after this one, from the first again after the last; empty: none."""
    waiting = [one.story for one in listed.items] if listed else []
    others = [one for one in waiting if one != story]
    if not others:
        return ""
    if story not in waiting:
        return others[0]
    at = waiting.index(story)
    return others[at] if at < len(others) else others[0]


def _failed_last(iterations: Sequence[IterationRecord]) -> IterationRecord | None:
    for it in iterations:
        if any(check.status is CheckStatus.FAILED for check in it.checks):
            return it
    return None
