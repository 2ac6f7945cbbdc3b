"""Which commits are a story's own: the one made for it, and those its agent made on the way."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from ralphloop.journal.records import IterationRecord

_HEX = re.compile(r"[0-9a-f]{7,64}")


class OwnCommits:
    """By story, what `git show` takes, oldest first: a commit, or a range `A..B`."""

    def __init__(self, commits: Mapping[int, str]) -> None:
        self.commits = commits  # iteration → the commit that was made for it
        self.by_story: dict[str, list[str]] = {}
        self._row = ("", "", False)  # story, HEAD before it, did the agent commit

    def see(self, it: IterationRecord) -> None:
        """Iterations in order; a row of them on one story belongs together."""
        story, head, own = self._row
        if story != (it.story or ""):
            story, head, own = it.story or "", it.head, False
        own = own or it.commits > 0
        if commit := self.commits.get(it.n):
            first = f"{head[:10]}.." if own and _HEX.fullmatch(head) else ""
            self.by_story.setdefault(story, []).append(f"{first}{commit[:10]}")
            head, own = commit, False
        self._row = (story, head, own)


def own_commits(
    iterations: Iterable[IterationRecord], commits: Mapping[int, str]
) -> dict[str, list[str]]:
    """Of the stories of a run."""
    found = OwnCommits(commits)
    for it in iterations:
        if it.finished_at is not None:
            found.see(it)
    return found.by_story
