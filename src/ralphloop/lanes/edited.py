"""The story file of the checkout, which a person may edit while lanes work.

The list of a run is the one in its branch.  What changed in the person's file since it was seen
last is their word: their text, with the marks that the journal knows, becomes a commit of the run's
branch, at once and between two landings.  Marks are not taken over: those of the checkout are as
old as the run, and agents are at work while they change.

Commits of theirs that change nothing else become part of the branch as well, so that their branch
can still be moved forward at the end.  A file in the middle of an edit changes nothing.  One that
an agent may have written, since its transcript names the checkout, waits for a person's commit.
"""

from __future__ import annotations

import hashlib
import shlex
from collections.abc import Iterator
from pathlib import Path

import msgspec

from ralphloop.atomic import kill_point
from ralphloop.core.events import StoriesEdited
from ralphloop.core.run_state import Book
from ralphloop.core.story import Story, StoryList
from ralphloop.core.story_state import Standing, States, state_of
from ralphloop.errors import InputError
from ralphloop.lanes.escape import names_it
from ralphloop.lanes.worktrees import stand
from ralphloop.lanes.yard import SIGNATURE, Yard, listed_in, repository_of
from ralphloop.loop.prepare import Setup
from ralphloop.repo.commit import with_trailers
from ralphloop.repo.set_aside import scratch_index
from ralphloop.repo.work_tree import Repository
from ralphloop.stories.names import label
from ralphloop.stories.source import load, marked, read

_MOST_SAID = 10
_SIGNED = SIGNATURE.partition("{")[0]


def digest(path: Path) -> str:
    """Of what the file holds; empty where it cannot be read."""
    try:
        return hashlib.sha256(read(path)).hexdigest()
    except InputError:
        return ""


def blob_at(repo: Repository, commit: str, path: str) -> str:
    """What git calls the content of a file in a commit; empty where there is none."""
    found = repo.git.attempt("rev-parse", "--verify", "--quiet", f"{commit}:{path}")
    return found.stdout.decode().strip()


def blob_of(repo: Repository, path: str, file: Path) -> str:
    """What git would call the content of a file if it were committed now."""
    return repo.git.attempt("hash-object", f"--path={path}", str(file)).stdout.decode().strip()


def way_to_have_it(home: Setup, book: Book) -> str:
    """The command that brings what landed into the checkout, and an edit of theirs to no harm."""
    command = f"git merge {book.branch}" if book.origin else f"git switch {book.branch}"
    repo, path, known = repository_of(home), listed_in(home), home.stories
    if book.own_list or known is None or path not in repo.dirty_paths():
        return command
    if blob_at(repo, "HEAD", path) == blob_at(repo, f"refs/heads/{book.branch}", path):
        return command
    name = shlex.quote(path if known.path.parent == repo.root else f":/{path}")
    command = f"git stash push {name} && {command}"
    taken = book.seen == digest(known.path)
    return f"{command} (it has your edit of {path})" if taken else f"{command} && git stash pop"


class Edits:
    """What a person does to the stories while the run goes on."""

    def __init__(self, yard: Yard) -> None:
        self.yard = yard
        self._looked = ("", "")  # the file and HEAD, as they were looked at last
        self._since = max(1, yard.runner.session.number + 1 - 2 * yard.book.count)

    def take_over(self) -> None:
        """Bring what changed onto the run's branch, and say it once; nothing may be landing."""
        yard, book, checkout, known = self.yard, self.yard.book, self.yard.checkout, None
        if not book.own_list and checkout.branch() == (book.on or book.origin):
            known = yard.home.stories
        if known is None or checkout.unfinished_operation():
            return
        now, head = digest(known.path), checkout.head() or ""
        if now == book.seen:
            self._since = min(self._at_work(), default=yard.runner.session.number + 1)
        if (now, head) == self._looked or (now == book.seen and head == book.origin_head):
            return
        self._looked = now, head
        text = self._edited(known.path) if now != book.seen else b""
        if text is None:
            return
        joined = head if self._joins(head) else ""
        self._bring(text, joined)
        yard.keep(seen=now, origin_head=joined or book.origin_head)

    def _edited(self, path: Path) -> bytes | None:
        """The person's text with the marks of the journal; None where it is not to be used yet."""
        runner = self.yard.runner
        try:
            data = read(path)
            stories = load(path, data=data).list
        except InputError as error:
            where = f"{path.name} in your checkout cannot be read"
            self._say([f"{where} ({error.message}); the stories stay as they were"])
            return None
        if self._is_agents(path):
            where = f"{path.name} in your checkout changed while an agent worked that names that"
            self._say([f"{where} place; it is taken over once you commit it"])
            return None
        before, states = runner.story_list(), runner.session.stories
        self._say([*_changes(before, stories, states)] if before else [])
        return marked(path, data, {it.id: _has_passed(states, it) for it in stories.stories})

    def _at_work(self) -> Iterator[int]:
        run = self.yard.runner.run
        return (it.n for it in self.yard.journal.unfinished_iterations(run))

    def _say(self, said: list[str]) -> None:
        more = [f"and {len(said) - _MOST_SAID} more changes"] if len(said) > _MOST_SAID else []
        if words := (*said[:_MOST_SAID], *more):
            self.yard.runner.emit(StoriesEdited(changes=words))
            self.yard.keep(edited=words)

    def _is_agents(self, file: Path) -> bool:
        """Whether an agent that has worked since may have written it."""
        yard, checkout, path = self.yard, self.yard.checkout, self.yard.listed
        if _SIGNED in checkout.git.line("log", "-1", "--format=%cn", "HEAD", "--", path):
            return True
        if blob_of(checkout, path, file) == blob_at(checkout, "HEAD", path):
            return False
        logs = yard.home.project.transcripts / yard.runner.run
        numbers = range(self._since, yard.runner.session.number + 1)
        return any(names_it(logs / f"{n}.log", checkout.root, [path]) for n in numbers)

    def _joins(self, head: str) -> bool:
        """Whether the person's commits can be part of the run: they change the stories only."""
        book, git = self.yard.book, self.yard.checkout.git
        if not book.origin or head == book.origin_head or not git.contains(head, book.origin_head):
            return False
        changed = git.names("diff", "--name-only", "--no-renames", "-z", book.origin_head, head)
        return changed == [self.yard.listed]

    def _bring(self, text: bytes, head: str) -> None:
        """A commit with this text, or the one it has, on the run's branch; after `head` as well."""
        yard, checkout, path, tip = self.yard, self.yard.checkout, self.yard.listed, self.yard.tip()
        with scratch_index(checkout, tip) as git:
            if text:
                args = ("hash-object", "-w", f"--path={path}", "--stdin")
                blob = git.run(*args, stdin=text).decode().strip()
                mode = git.line("ls-files", "--stage", "--", f":/{path}").partition(" ")[0]
                git.run("update-index", "--add", "--cacheinfo", f"{mode or '100644'},{blob},{path}")
            tree = git.line("write-tree")
            parents = [tip, head] if head and not git.contains(tip, head) else [tip]
            if len(parents) > 1 and git.contains(head, tip):
                parents = [head]
            commit = parents[0]
            if len(parents) > 1 or tree != git.line("rev-parse", f"{commit}^{{tree}}"):
                onto = [part for parent in parents for part in ("-p", parent)]
                words = with_trailers(f"{Path(path).name} as it was edited during the run", {})
                commit = git.line("commit-tree", tree, *onto, "-m", words)
        if commit == tip:
            return
        kill_point("edited.committed")
        ref, told = f"refs/heads/{yard.book.branch}", "ralph: stories were edited"
        checkout.git.writing().run("update-ref", "-m", told, ref, commit, tip)
        kill_point("edited.landed")
        stand(yard.landing, commit)
        yard.runner.forget()


def _changes(before: StoryList, now: StoryList, states: States) -> Iterator[str]:
    """What the person's list means for the run, a sentence for each story."""
    old = {story.id: story for story in before.stories}
    for story in now.stories:
        name, was = label(story.id), old.pop(story.id, None)
        has_passed = _has_passed(states, story)
        if was is None:
            yield f"{name} was added by you; it is worked on as well"
        elif _asks(was) != _asks(story):
            then = "it has passed and stays so" if has_passed else "its next start is told so"
            yield f"{name} was changed by you; {then}"
        if story.passes and not has_passed and not (was and was.passes):
            yield f"{name} was marked as passed by you; while lanes work only what lands counts"
    for name in old:
        yield f"{label(name)} was removed by you; it is not started any more"


def _has_passed(states: States, story: Story) -> bool:
    return state_of(states, story.id).standing is Standing.PASSED


def _asks(story: Story) -> Story:
    return msgspec.structs.replace(story, passes=False, index=0)
