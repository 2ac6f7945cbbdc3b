"""Whose work a line or a file of a branch is: the commit that wrote it names its story."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from ralphloop.forge.words import paths_in
from ralphloop.repo.git import Git

_MOST_COMMITS = 2_000
_MOST_STORIES = 5
_NAMES = "--format=%x00%H%x00%(trailers:key=Ralph-Story,valueonly,separator=%x20)%x00"
_SHA = re.compile(r"\^?([0-9a-f]{40,64})\b")


class BranchWork(NamedTuple):
    """What the commits of a branch did, by the story they were made for."""

    stories: dict[str, str]  # commit → story
    paths: dict[str, list[str]]  # path → stories that changed it, the newest first

    @property
    def all_stories(self) -> tuple[str, ...]:
        """Every story of the branch, the newest first."""
        return tuple(dict.fromkeys(self.stories.values()))


def work_on(git: Git, base: str, head: str) -> BranchWork:
    """The commits that a branch has and its base has not."""
    most = f"--max-count={_MOST_COMMITS}"
    args = ("log", most, _NAMES, "--name-only", "--no-renames", "-z", f"{base}..{head}", "--")
    fields = git.run(*args).decode("utf-8", "replace").split("\0")
    stories: dict[str, str] = {}
    paths: dict[str, list[str]] = {}
    story = ""
    at = 0
    while at < len(fields):
        field = fields[at].lstrip("\n")
        if _SHA.fullmatch(field) and at + 1 < len(fields):
            story = fields[at + 1].strip()
            if story:
                stories[field] = story
            at += 2
            continue
        if field and story:
            known = paths.setdefault(field, [])
            if story not in known:
                known.append(story)
        at += 1
    return BranchWork(stories, paths)


def owners_of_line(
    git: Git, work: BranchWork, path: str, line: int | None, commit: str
) -> tuple[str, ...]:
    """The story that wrote a line, else those that changed its file; empty: none of ours did."""
    if line and commit:
        args = ("blame", "--porcelain", "-L", f"{line},{line}", commit, "--", path)
        ended = git.attempt(*args)
        found = _SHA.match(ended.stdout.decode("utf-8", "replace"))
        if ended.returncode == 0 and found and found[1] in work.stories:
            return (work.stories[found[1]],)
    return tuple(work.paths.get(path, ())[:_MOST_STORIES])


def owners_of_text(work: BranchWork, texts: Iterable[str]) -> tuple[str, ...]:
    """The stories whose files a text names, else all of the branch."""
    found: dict[str, None] = {}
    for text in texts:
        for path in paths_in(text, work.paths):
            found |= dict.fromkeys(work.paths[path])
    return tuple(found or work.all_stories)[:_MOST_STORIES]


def commit_for(git: Git, base: str, story: str) -> str:
    """The newest commit of the branch that was made for a story; empty: there is none."""
    for commit, name in work_on(git, base, "HEAD").stories.items():
        if name == story:
            return commit
    return ""
