"""Git has one stash for all work trees: what agents of lanes stash is given back to their lanes.

No setting gives a work tree a stash of its own, and no hook runs before `git stash pop`.  But every
commit that an agent stashes is signed by its lane.  So when an agent has ended it can be seen what
went astray: stashed in one lane, stashed no more, in none of that lane's files, and in those of
another.  It is taken out of the one and put into the other, each when its own agent has ended, and
said.  What was changed after it was popped cannot be taken out: the story does not land, and its
agent is told.  An entry of a person that was popped in a lane is put back where it was.

Commits that are stashed no more are found among the objects that were written since the run began.
"""

import hashlib
import os
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from itertools import islice
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ralphloop.core.model import Value
from ralphloop.lanes.pool import Lane, LanePool
from ralphloop.lanes.worktrees import SIGNED, LaneTree
from ralphloop.repo import beneath
from ralphloop.repo.git import Git, printable
from ralphloop.repo.set_aside import write_files
from ralphloop.room import read_regular
from ralphloop.text.plain import some

_SLACK_S = 2.0  # between the clocks of files and ours
_MOST_OBJECTS = 200_000
_MOST_FILES = 500
_LARGEST = 50 << 20
_NAMED = 5
_IN_THE_WAY = "refs/ralph/in-the-way/{}"  # what stood where a file is put back
_BEGINNINGS = (b"WIP on ", b"On ")
_WORDS = "all work trees share git's stash, and what was stashed in one was popped in another"


class Stashed(Value, kw_only=True):
    """What somebody stashed: every path that it changes, as it was then."""

    commit: str
    signer: str  # the committer, by name
    words: str  # git's, for its entry
    base: str  # the commit that it was stashed on
    untracked: str = ""  # the commit that holds what was not tracked
    tracked: dict[str, str] = msgspec.field(
        default_factory=dict
    )  # path to content; empty: it was deleted
    more: dict[str, str] = msgspec.field(default_factory=dict)  # the same of what was not tracked

    @property
    def files(self) -> dict[str, str]:
        return {**self.tracked, **self.more}


class StashPlace(Value, kw_only=True):
    """A lane, with the story that it held."""

    lane: int
    story: str
    is_right: bool = False  # it was put right


class Astray(Value, kw_only=True):
    """Work that lacks in the lane that stashed it, or is in another, till both are put right."""

    stashed: Stashed
    owner: StashPlace | None = None  # None: that has it
    taker: StashPlace | None = None  # None: nobody does


class Found(Value, kw_only=True):
    """Those paths of something stashed that a lane holds."""

    exact: tuple[str, ...] = ()  # just as they were stashed, and not as the lane began
    changed: tuple[str, ...] = ()  # in neither way


class PutRight(Value, kw_only=True):
    """What was put right in a lane, and what its agent has to do, in words."""

    remark: str = ""
    left: str = ""


async def hear_of_stashes(pool: LanePool, lane: Lane, before: Collection[str] | None) -> None:
    """Put stashes right, and let whoever judges the start of this lane hear of it."""
    done = put_stashes_right(pool, lane, before)
    workspace = lane.workspace
    if done.remark:
        workspace.remarks = (*workspace.remarks, done.remark)
    if done.left:
        workspace.astray = (*workspace.astray, done.left)


def put_stashes_right(pool: LanePool, lane: Lane, before: Collection[str] | None) -> PutRight:
    """Give back what went astray in the stash, once the agent of a lane has ended.

    `before` has the entries that were there when it started; None where that is not known.
    """
    run = pool.journal.find_run(pool.run.id)
    if run is None or not _was_touched(pool, run.started_at):
        return PutRight()
    known = [*_noted(pool), *_newly_astray(pool, run.started_at)]
    remarks = list[str]()
    lefts = list[str]()
    here = _place(pool, lane)
    for number, one in enumerate(known):
        if one.owner == here:
            if _is_absent(lane.place, one.stashed):
                _put_in(lane, one.stashed)
                _drop(pool, one.stashed.commit)
                remarks.append(f"put into lane {lane.number} again: {_names(one.stashed.files)}")
            known[number] = replace(one, owner=replace(here, is_right=True))
        elif one.taker == here:
            found = _found_in(pool, lane, one.stashed)
            _take_out(pool, lane, found.exact)
            remarks.append(f"taken out of lane {lane.number} again: {_names(found.exact)}")
            if found.changed:
                lefts.append(
                    f"`{one.stashed.words}`, stashed in another lane, was popped in this one, where"
                    f" it changed {_names(found.changed)}: take that out, it is not this story's"
                )
            known[number] = replace(one, taker=replace(here, is_right=True))
    if known:
        pool.journal.set_meta(_key(pool), known)
    remarks += _give_back(pool, lane, before or ())
    if remarks:
        lane.workspace.touched()
    return PutRight(
        remark=f"{_WORDS}; {'; '.join(remarks)}" if remarks else "", left="; ".join(lefts)
    )


def _key(pool: LanePool) -> str:
    return f"stash:{pool.run.id}"


def _names(paths: Iterable[str]) -> str:
    return some([printable(path) for path in sorted(paths)], _NAMED)


def _was_touched(pool: LanePool, since: float) -> bool:
    """Whether anything may have been stashed since then: git makes a lock beside the ref for it."""
    try:
        return (pool.checkout.common_dir / "refs").stat().st_mtime >= since - _SLACK_S
    except OSError:
        return False


def _noted(pool: LanePool) -> list[Astray]:
    """What was found to be astray before: each lane is put right in its own time."""
    try:
        return msgspec.convert(pool.journal.meta(_key(pool)) or [], list[Astray])
    except msgspec.ValidationError:
        return []  # another version wrote it


def _place(pool: LanePool, lane: Lane) -> StashPlace:
    return StashPlace(lane=lane.number, story=pool.note(lane.number).story)


def _newly_astray(pool: LanePool, since: float) -> list[Astray]:
    """What is in another lane than the one that stashed it, and what that one lacks instead.

    Where two pop at the same moment git may give both the same, and drop the other's unseen.
    """
    seen = {one.stashed.commit for one in _noted(pool)}
    still = pool.checkout.stashes()
    lanes = {lane.place.signature: lane for lane in pool.lanes.values()}
    made = dict[int, list[Stashed]]()
    for stashed in _stashed_since(pool, since):
        signer = next((name for name in lanes if name in stashed.signer), "")
        if signer and stashed.commit not in seen:
            made.setdefault(lanes[signer].number, []).append(stashed)
    lacking = {
        lane.number: [it for it in made.get(lane.number, ()) if _is_absent(lane.place, it)]
        for lane in lanes.values()
    }
    found = dict[str, Astray]()
    for owner in lanes.values():
        gone = [it for it in made.get(owner.number, ()) if it.commit not in still]
        for stashed, taker in ((it, other) for it in gone for other in lanes.values()):
            is_lacking = stashed in lacking[owner.number]
            if taker is owner or not _was_taken(pool, taker, stashed, is_lacking, lacking):
                continue
            found[stashed.commit] = Astray(
                stashed=stashed,
                owner=_place(pool, owner) if is_lacking else None,
                taker=_place(pool, taker),
            )
            for lost in lacking[taker.number][-1:]:
                alone = Astray(stashed=lost, owner=_place(pool, taker))
                found.setdefault(lost.commit, alone)
    return list(found.values())


def _was_taken(
    pool: LanePool,
    taker: Lane,
    stashed: Stashed,
    is_lacking: bool,
    lacking: Mapping[int, Sequence[Stashed]],
) -> bool:
    """Whether a lane has what another stashed: that one lacks it, or the lane lacks its own."""
    found = _found_in(pool, taker, stashed)
    if not found.exact or is_lacking:
        return bool(found.exact)
    nothing = _blob(taker.place, b"")  # files without content are alike by chance
    says_much = any(stashed.files[path] not in ("", nothing) for path in found.exact)
    return says_much and not found.changed and bool(lacking[taker.number])


def _stashed_since(pool: LanePool, since: float) -> Iterator[Stashed]:
    """Everything that agents of lanes stashed since then, also what is stashed no more."""
    git = pool.checkout.git
    names = islice(_written_since(pool.checkout.objects, since), _MOST_OBJECTS)
    asked = "".join(f"{name}\n" for name in names).encode()
    listed = git.run("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked)
    for line in listed.splitlines():
        name, _, kind = line.decode().partition(" ")
        stashed = _read(git, name) if kind == "commit" else None
        if stashed is not None and SIGNED in stashed.signer:
            yield stashed


def _written_since(objects: Path, since: float) -> Iterator[str]:
    """The names of loose objects that are no older."""
    for folder in objects.glob("[0-9a-f][0-9a-f]"):
        with suppress(OSError), os.scandir(folder) as entries:
            for entry in entries:
                if entry.stat().st_mtime >= since - _SLACK_S:
                    yield folder.name + entry.name


def _read(git: Git, commit: str) -> Stashed | None:
    """What a commit says was stashed; None where it is none of that, or too much to look at."""
    head, _, message = git.attempt("cat-file", "commit", commit).stdout.partition(b"\n\n")
    lines = head.splitlines()
    parents = [line[7:].decode() for line in lines if line.startswith(b"parent ")]
    signed = [line for line in lines if line.startswith(b"committer ")]
    if not message.startswith(_BEGINNINGS) or len(parents) < 2 or not signed:
        return None
    untracked = parents[2] if len(parents) > 2 else ""
    stashed = Stashed(
        commit=commit,
        signer=signed[0].decode("utf-8", "replace"),
        words=message.decode("utf-8", "replace").strip(),
        base=parents[0],
        untracked=untracked,
        tracked=_changed(git, parents[0], commit),
        more=_changed(git, "", untracked) if untracked else {},
    )
    paths = stashed.files
    is_plain = all(printable(path) == path for path in paths)
    return stashed if is_plain and len(paths) <= _MOST_FILES else None


def _changed(git: Git, base: str, commit: str) -> dict[str, str]:
    """Every path that differs between two commits, with its content in the second."""
    args = ("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", "--no-commit-id")
    between = (base, commit) if base else ("--root", commit)
    fields = git.run(*args, *between).split(b"\0")
    found = dict[str, str]()
    for meta, path in zip(fields[0::2], fields[1::2], strict=False):
        _, mode, _, content, _ = meta.decode().split(" ")
        found[os.fsdecode(path)] = content if int(mode, 8) else ""
    return found


def _contents(place: LaneTree, paths: Iterable[str]) -> dict[str, str]:
    """What git would call the content of each file that is there now; empty: there is none."""
    found = dict[str, str]()
    for path in paths:
        file = place.root / path
        data: bytes | None = None
        with suppress(OSError):
            if file.is_symlink():
                data = os.fsencode(file.readlink())
            elif file.is_file():
                data = read_regular(file, most=_LARGEST)
        found[path] = "" if data is None else _blob(place, data)
    return found


def _blob(place: LaneTree, data: bytes) -> str:
    """What git calls a content."""
    name = hashlib.new(place.repo.object_format)
    name.update(b"blob %d\0" % len(data) + data)
    return name.hexdigest()


def _contents_at(git: Git, commit: str, paths: Iterable[str]) -> dict[str, str]:
    """The same for a commit."""
    wanted = list(paths)
    asked = "".join(f"{commit}:{path}\n" for path in wanted).encode()
    answers = git.run("cat-file", "--batch-check=%(objectname)", stdin=asked).splitlines()
    names = ("" if line.endswith(b" missing") else line.decode() for line in answers)
    return dict(zip(wanted, names, strict=True))


def _is_absent(place: LaneTree, stashed: Stashed) -> bool:
    """Whether nothing of it is in the lane: all is as it was before it was done."""
    paths = stashed.files
    return _contents(place, paths) == _contents_at(place.repo.git, stashed.base, paths)


def _found_in(pool: LanePool, lane: Lane, stashed: Stashed) -> Found:
    """What of it is in a lane and was not there when the lane's story began."""
    paths = stashed.files
    base = pool.note(lane.number).base or stashed.base
    was = _contents_at(lane.place.repo.git, base, paths)
    now = _contents(lane.place, paths)
    exact = [path for path in paths if now[path] == paths[path] != was[path]]
    changed = [path for path in paths if now[path] not in (paths[path], was[path])]
    return Found(exact=tuple(exact), changed=tuple(changed))


def _put_in(lane: Lane, stashed: Stashed) -> None:
    """Bring what was stashed into the files of a lane."""
    repo = lane.place.repo
    for path, content in stashed.tracked.items():
        if not content:
            beneath.remove(repo.root, path)
    wanted = [path for path, content in stashed.tracked.items() if content]
    write_files(repo, stashed.commit, wanted, ref=_IN_THE_WAY.format(stashed.commit))
    if stashed.untracked:
        more = list(stashed.more)
        write_files(repo, stashed.untracked, more, ref=_IN_THE_WAY.format(stashed.untracked))


def _drop(pool: LanePool, commit: str) -> None:
    """Take an entry off the stash that is in its lane again."""
    git = pool.checkout.git.writing()
    entries = list(reversed(pool.checkout.stashes()))  # git counts from the newest
    if commit not in entries:
        return
    name = f"stash@{{{entries.index(commit)}}}"
    if pool.checkout.commit_of(name) == commit:
        git.attempt("stash", "drop", "--quiet", name)


def _take_out(pool: LanePool, lane: Lane, paths: Collection[str]) -> None:
    """Put files of a lane back to where its story began."""
    repo = lane.place.repo
    base = pool.note(lane.number).base
    was = _contents_at(repo.git, base, paths)
    for path in paths:
        if not was[path]:
            beneath.remove(repo.root, path)
    wanted = [path for path in paths if was[path]]
    write_files(repo, base, wanted, ref=_IN_THE_WAY.format(base))


def _give_back(pool: LanePool, lane: Lane, before: Collection[str]) -> Iterator[str]:
    """Put entries of a person back on the stash that were popped in this lane; what, in words."""
    git = pool.checkout.git
    for commit in sorted(set(before).difference(pool.checkout.stashes())):
        stashed = _read(git, commit)
        if stashed is None or SIGNED in stashed.signer:
            continue
        found = _found_in(pool, lane, stashed)
        if not found.exact or found.changed:
            continue  # they popped it themselves, or nobody can tell
        _take_out(pool, lane, found.exact)
        git.writing().run("stash", "store", "-m", stashed.words, commit)
        yield f"back on the stash is `{stashed.words}`, which was popped in lane {lane.number}"
