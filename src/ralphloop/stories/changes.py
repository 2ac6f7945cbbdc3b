"""What an agent did to the story list while it ran.  Pure.

Only the supervisor says what passed and only a person says what is asked.  A changed mark is a
claim and is put back; a story that vanished is reported; one that asks for less than before is
tampering.  All other edits are simply the file as it is now.
"""

from collections import Counter
from collections.abc import Iterator

import msgspec

from ralphloop.core.model import Value
from ralphloop.core.story import Story, StoryList
from ralphloop.stories.names import essence, quoted


class Changes(Value, frozen=True, kw_only=True):
    """The difference between two readings of the list; empty means nothing of note."""

    passes_flipped: dict[str, bool] = msgspec.field(default_factory=dict)  # what the file says now
    removed: tuple[str, ...] = ()
    weakened: dict[str, tuple[str, ...]] = msgspec.field(
        default_factory=dict
    )  # what less, in words

    @property
    def marks_to_restore(self) -> dict[str, bool]:
        """What `StoryFile.mark_all` needs to put the claims back."""
        return {story_id: not passes for story_id, passes in self.passes_flipped.items()}


def compare(before: StoryList, after: StoryList) -> Changes:
    """Name everything that matters between two readings of one file."""
    old = {story.id: story for story in before.stories}
    new = {story.id: story for story in after.stories}
    kept = [(old[name], story) for name, story in new.items() if name in old]
    passed = {story.id for story in before.stories if story.passes}
    return Changes(
        # A new story that arrives as passed is a claim as well.
        passes_flipped={
            name: story.passes for name, story in new.items() if story.passes != (name in passed)
        },
        removed=tuple(name for name in old if name not in new),
        weakened={story.id: what for was, story in kept if (what := tuple(_weaker(was, story)))},
    )


def _weaker(was: Story, now: Story) -> Iterator[str]:
    yield from _lost_criteria(was.criteria, now.criteria)
    for name, words in (("verify", "verify command"), ("parent_spec", "parent spec")):
        asked, asks = getattr(was, name), getattr(now, name)
        if asked and asks != asked:
            yield f"the {words} was {'changed' if asks else 'removed'}"
    for name in ("title", "description"):
        if getattr(was, name).strip() and not getattr(now, name).strip():
            yield f"the {name} was emptied"
    if now.exit_signal and not was.exit_signal:
        yield "it was given the permission to end the run"


def _lost_criteria(was: tuple[str, ...], now: tuple[str, ...]) -> Iterator[str]:
    """Criteria that are gone; new punctuation, spacing or case is not a loss."""
    if was and not now:
        yield "all acceptance criteria were removed"
        return
    verb = "removed" if len(now) < len(was) else "changed"
    left = Counter(essence(criterion) for criterion in now)
    for criterion in was:
        left[essence(criterion)] -= 1
        if left[essence(criterion)] < 0:
            yield f"a criterion was {verb}: {quoted(criterion)}"
