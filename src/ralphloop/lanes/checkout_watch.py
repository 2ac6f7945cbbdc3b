"""The checkout while lanes work: a person may edit the stories in it, and an agent may go astray.

The list of a run is the one in its branch.  What changed in the person's file is their word: their
text becomes a commit of that branch, between two landings, but with the marks of the journal, since
those of the checkout are as old as the run.  Commits of theirs that change nothing else become part
of it as well, so that their branch can still be moved forward at the end.  A file in the middle of
an edit changes nothing; one that an agent may have written waits for a person's commit.

An agent can go astray only without a sandbox.  Git signs the reflogs with its lane's name, so what
it moved is known.  Files are its doing only if its transcript names the checkout: a person may have
saved them.  What was before is written ahead, for whoever judges the start after a crash.
"""

import hashlib
import os
import re
import shlex
from collections.abc import Iterable, Iterator
from contextlib import suppress
from itertools import islice
from pathlib import Path
from typing import NamedTuple

import msgspec

from ralphloop.core.events import LaneLeft, StoriesEdited
from ralphloop.core.model import StoryList, Value
from ralphloop.core.run_state import LanesState, Standing, States, state_of
from ralphloop.errors import InputError
from ralphloop.lanes.branch import bring_list
from ralphloop.lanes.branch_names import holds_what_landed
from ralphloop.lanes.found_stories import with_found
from ralphloop.lanes.pool import Lane, LanePool, repository_of
from ralphloop.lanes.worktrees import SIGNED
from ralphloop.loop.begin import Round
from ralphloop.loop.prepare import Setup
from ralphloop.repo.git import printable
from ralphloop.repo.snapshot import Snapshot
from ralphloop.repo.work_tree import Repository
from ralphloop.room import open_regular
from ralphloop.stories.names import label
from ralphloop.stories.source import load, marked, read
from ralphloop.text.plain import one_line, some

_MOST_SAID = 10
_MOST_PATHS = 10_000
_MOST_READ = 4 << 20
_CHUNK = 1 << 20
_LONGEST_PATH = 1 << 13


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
    return repo.git.attempt("hash-object", f"--path={path}", str(file)).stdout.decode().strip()


def way_to_have_it(home: Setup, book: LanesState) -> str:
    """The command that brings what landed into the checkout, and an edit of theirs to no harm."""
    repo = repository_of(home)
    path = home.site.listed
    known = home.stories
    name = holds_what_landed(repo, book)
    here = repo.branch()
    follows = book.origin or name != book.branch or here in (*book.left, book.branch)
    command = f"git merge {name}" if follows else f"git switch {name}"
    if book.own_list or known is None or path not in repo.dirty_paths():
        return command
    if blob_at(repo, "HEAD", path) == blob_at(repo, f"refs/heads/{book.branch}", path):
        return command
    name = shlex.quote(path if known.path.parent == repo.root else f":/{path}")
    command = f"git stash push {name} && {command}"
    taken = book.seen == digest(known.path)
    return f"{command} (it has your edit of {path})" if taken else f"{command} && git stash pop"


class _Looked(NamedTuple):
    """The person's story file and their HEAD."""

    file: str = ""  # a digest of what it holds
    head: str = ""


class Edits:
    """What a person changes of the stories in their checkout, brought onto the run's branch."""

    def __init__(self, pool: LanePool) -> None:
        self.pool = pool
        self._looked = _Looked()  # as they were looked at last
        self._since = max(1, pool.run.session.number + 1 - 2 * pool.book.count)

    def take_over(self) -> None:
        """Bring what changed onto the run's branch, and say it once; nothing may be landing."""
        pool = self.pool
        book = self.pool.book
        checkout = self.pool.checkout
        known = None
        if not book.own_list and checkout.branch() == (book.on or book.origin):
            known = pool.home.stories
        if known is None or checkout.unfinished_operation():
            return
        now = digest(known.path)
        head = checkout.head() or ""
        git = checkout.git
        if now == book.seen:
            at_work = pool.journal.unfinished_iterations(pool.run.id)
            self._since = at_work[0].n if at_work else pool.run.session.number + 1
        looked = _Looked(now, head)
        if looked in (self._looked, _Looked(book.seen, book.origin_head)):
            return
        text = self._edited(known.path) if now != book.seen else b""
        if text is None:
            self._looked = looked
            return
        joined = ""
        old = book.origin_head
        if book.origin and head != old and git.contains(head, old):
            changed = git.names("diff", "--name-only", "--no-renames", "-z", old, head)
            if changed == [pool.home.site.listed]:  # they change the stories only
                joined = head
        name = Path(pool.home.site.listed).name
        bring_list(pool, text, joined, f"{name} as it was edited during the run")
        pool.keep(seen=now, origin_head=joined or old)
        self._looked = looked

    def _edited(self, path: Path) -> bytes | None:
        """The person's text with the marks of the journal; None where it is not to be used yet."""
        run = self.pool.run
        workspace = self.pool.workspace
        try:
            data = with_found(self.pool, path, read(path))
            stories = load(path, data=data).list
        except InputError as error:
            where = f"{path.name} in your checkout cannot be read"
            self._say([f"{where} ({error.message}); the stories stay as they were"])
            return None
        checkout = self.pool.checkout
        listed = self.pool.home.site.listed
        signed = checkout.git.line("log", "-1", "--format=%cn", "HEAD", "--", listed)
        is_committed = blob_of(checkout, listed, path) == blob_at(checkout, "HEAD", listed)
        logs = self.pool.home.project.transcripts / run.id
        numbers = range(self._since, run.session.number + 1)  # of those that worked since
        named = (names_it(logs / f"{n}.log", checkout.root, [listed]) for n in numbers)
        if SIGNED in signed or (not is_committed and any(named)):
            where = f"{path.name} in your checkout changed while an agent worked that names that"
            self._say([f"{where} place; it is taken over once you commit it"])
            return None
        before = workspace.story_list()
        states = run.session.stories
        self._say([*_changes(before, stories, states)] if before else [])
        passed = {
            it.id: state_of(states, it.id).standing is Standing.PASSED for it in stories.stories
        }
        return marked(path, data, passed)

    def _say(self, said: list[str]) -> None:
        more = [f"and {len(said) - _MOST_SAID} more changes"] if len(said) > _MOST_SAID else []
        if words := (*said[:_MOST_SAID], *more):
            self.pool.run.emit(StoriesEdited(changes=words))
            self.pool.keep(edited=words)


def _changes(before: StoryList, now: StoryList, states: States) -> Iterator[str]:
    """What the person's list means for the run, a sentence for each story."""
    old = {story.id: story for story in before.stories}
    for story in now.stories:
        name = label(story.id)
        was = old.pop(story.id, None)
        has_passed = state_of(states, story.id).standing is Standing.PASSED
        if was is None:
            yield f"{name} was added by you; it is worked on as well"
        elif msgspec.structs.replace(was, passes=story.passes, index=story.index) != story:
            then = "it has passed and stays so" if has_passed else "its next start is told so"
            yield f"{name} was changed by you; {then}"
        if story.passes and not has_passed and not (was and was.passes):
            yield f"{name} was marked as passed by you; while lanes work only what lands counts"
    for name in old:
        yield f"{label(name)} was removed by you; it is not started any more"


class Surroundings(Value, kw_only=True):
    """Everything outside of a lane before its agent starts."""

    n: int  # the iteration
    logs: dict[str, int]
    checkout: Snapshot


def watch(pool: LanePool, lane: Lane, begun: Round) -> None:
    """Remember how long every reflog is and what the checkout holds, before an agent starts."""
    logs = dict.fromkeys(map(str, _logs(pool)), 0)
    for path in logs:
        with suppress(OSError):
            logs[path] = Path(path).stat().st_size
    before = Surroundings(n=begun.number, logs=logs, checkout=pool.outside.tree())
    pool.journal.set_meta(_key(pool, lane), before)
    lane.workspace.astray = ()


def report_work_outside(pool: LanePool, lane: Lane, number: int, story: str) -> tuple[str, ...]:
    """What the agent of a start did outside of its lane, in words; told where it did anything.

    Another process may have watched it.  Nothing where its agent never began.
    """
    try:
        before = msgspec.convert(pool.journal.meta(_key(pool, lane)), Surroundings)
    except msgspec.ValidationError:
        return ()  # there is none, or another version wrote it
    if before.n != number:
        return ()
    found = [*_moved(pool, lane, before)]
    after = pool.outside.tree()
    if after.tree != before.checkout.tree:
        transcript = pool.home.project.transcripts / pool.run.id / f"{number}.log"
        known = pool.outside.known(before.checkout).tree
        paths = [change.path for change in pool.outside.changes(known, after.tree)]
        if names_it(transcript, pool.checkout.root, paths):
            names = some([printable(it) for it in paths], 5)
            found.append(f"it changed files of your checkout ({names})")
    if not found:
        return ()
    words = f"the agent left its lane {lane.place.root}: {'; '.join(found[:5])}"
    pool.run.emit(LaneLeft(story=story, lane=lane.number, reason=words), number)
    return (words,)


def _key(pool: LanePool, lane: Lane) -> str:
    return f"outside:{pool.run.id}:{lane.number}"


def _logs(pool: LanePool) -> Iterator[Path]:
    common = pool.checkout.common_dir
    yield common / "logs" / "HEAD"
    yield from sorted(common.glob("worktrees/*/logs/HEAD"))
    for folder, _, names in os.walk(common / "logs" / "refs" / "heads"):
        yield from (Path(folder, name) for name in names)


def _moved(pool: LanePool, lane: Lane, before: Surroundings) -> Iterator[str]:
    """Branches that were there and HEADs of other work trees that it moved."""
    common = pool.checkout.common_dir
    sign = lane.place.signature.encode()
    branches = common / "logs" / "refs" / "heads"
    mine = {lane.place.repo.git_dir / "logs" / "HEAD", branches / lane.place.branch}
    for path in _logs(pool):
        is_branch = path.is_relative_to(branches)
        if path in mine or (is_branch and str(path) not in before.logs):
            continue  # a branch of its own is no harm
        lines: list[bytes] = []
        with suppress(OSError), open_regular(path) as file:
            file.seek(before.logs.get(str(path), 0))
            lines = file.read(_MOST_READ).splitlines()
        for who, _, what in (line.partition(b"\t") for line in lines):
            if sign in who:
                said = one_line(what.decode("utf-8", "replace"), 80)
                name = path.relative_to(branches).as_posix() if is_branch else ""
                place = f"moved the branch {name}" if name else "worked in another work tree"
                yield f"it {place} ({said})"
                break


def names_it(transcript: Path, root: Path, paths: Iterable[str]) -> bool:
    """Whether the transcript names the place; hidden directories (tools, logs) are no sign."""
    plain = re.escape(os.fsencode(root))
    name = re.escape(os.fsencode(root.name))
    some_paths = islice(paths, _MOST_PATHS)  # each is a part of the pattern
    hidden = [re.escape(os.fsencode(path)) for path in some_paths if path.startswith(".")]
    behind = b"|".join([rb"(?![\w.-]|/\.)", *(b"/" + path for path in hidden)])
    pattern = re.compile(rb"(?:" + plain + rb"|\.\./" + name + rb")(?:" + behind + rb")")
    with suppress(OSError), open_regular(transcript) as file:
        rest = b""
        while chunk := file.read(_CHUNK):
            if pattern.search(rest + chunk):
                return True
            rest = chunk[-_LONGEST_PATH:]
    return False
