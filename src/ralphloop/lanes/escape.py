"""Who left its lane: an agent that moved another branch or worked in another work tree.

Git commands of a lane's agent sign the reflogs with the lane's name (the committer's name in its
environment), so what moved is known to be the agent's, also while a person works in the checkout.
Files that changed there are the agent's only if its transcript names that place: a person may have
saved them.  In the sandbox none of this can happen.

What was before is written ahead, so that whoever judges the start after a crash looks as well.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

from ralphloop.core.events import LaneLeft
from ralphloop.core.model import Value
from ralphloop.lanes.yard import SIGNATURE, Lane, Yard
from ralphloop.loop.begin import Begun
from ralphloop.loop.runner import lane_branch
from ralphloop.repo.git import printable
from ralphloop.repo.snapshot import Snapshot
from ralphloop.room import open_regular
from ralphloop.text.plain import one_line, some

_MOST_READ = 4 << 20
_CHUNK = 1 << 20
_LONGEST_PATH = 1 << 13


class Surroundings(Value, kw_only=True):
    """Everything outside of a lane before its agent starts."""

    n: int  # the iteration
    logs: dict[str, int]
    checkout: Snapshot


def watch(yard: Yard, lane: Lane, begun: Begun) -> None:
    """Remember how long every reflog is and what the checkout holds; look again before judging."""
    logs = {str(path): _size(path) for path in _logs(yard)}
    before = Surroundings(n=begun.number, logs=logs, checkout=yard.outside.tree())
    yard.journal.set_meta(_key(yard, lane), before)
    watch_again(yard, lane, begun.number, begun.story.id if begun.story else "")


def watch_again(yard: Yard, lane: Lane, number: int, story: str) -> None:
    """The same for a start that another process watched; nothing where its agent never began."""
    lane.runner.left_lane = None
    try:
        before = msgspec.convert(yard.journal.meta(_key(yard, lane)), Surroundings)
    except msgspec.ValidationError:
        return  # there is none, or another version wrote it
    transcript = yard.home.project.transcripts / yard.runner.run / f"{number}.log"

    def left() -> str:
        words = _left(yard, lane, before, transcript)
        if words:
            told = LaneLeft(story=story, lane=lane.number, reason=words)
            lane.runner.emit(told, number)
        return words

    if before.n == number:
        lane.runner.left_lane = left


def _key(yard: Yard, lane: Lane) -> str:
    return f"outside:{yard.runner.run}:{lane.number}"


def _left(yard: Yard, lane: Lane, before: Surroundings, transcript: Path) -> str:
    """What the agent did outside of its lane, in words; empty where it stayed."""
    found = [*_moved(yard, lane, before), *_changed(yard, before, transcript)]
    if not found:
        return ""
    return f"the agent left its lane {lane.place.root}: {'; '.join(found[:5])}"


def _logs(yard: Yard) -> Iterator[Path]:
    common = yard.checkout.common_dir
    yield common / "logs" / "HEAD"
    yield from sorted(common.glob("worktrees/*/logs/HEAD"))
    for folder, _, names in os.walk(common / "logs" / "refs" / "heads"):
        yield from (Path(folder, name) for name in names)


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _moved(yard: Yard, lane: Lane, before: Surroundings) -> Iterator[str]:
    """Branches that were there and HEADs of other work trees that it moved."""
    common, sign = yard.checkout.common_dir, SIGNATURE.format(lane.number).encode()
    branches = common / "logs" / "refs" / "heads"
    mine = {lane.place.repo.git_dir / "logs" / "HEAD", branches / lane_branch(lane.number)}
    for path in _logs(yard):
        is_branch = path.is_relative_to(branches)
        if path in mine or (is_branch and str(path) not in before.logs):
            continue  # a branch of its own is no harm
        for line in _since(path, before.logs.get(str(path), 0)):
            who, _, what = line.partition(b"\t")
            if sign in who:
                said = one_line(what.decode("utf-8", "replace"), 80)
                name = path.relative_to(branches).as_posix() if is_branch else ""
                place = f"moved the branch {name}" if name else "worked in another work tree"
                yield f"it {place} ({said})"
                break


def _since(path: Path, size: int) -> list[bytes]:
    try:
        with open_regular(path) as file:
            file.seek(size)
            return file.read(_MOST_READ).splitlines()
    except OSError:
        return []


def _changed(yard: Yard, before: Surroundings, transcript: Path) -> Iterator[str]:
    """Files of the checkout that changed meanwhile, if its words name that place."""
    after = yard.outside.tree()
    if after.tree == before.checkout.tree:
        return
    paths = yard.outside.diff(yard.outside.known(before.checkout), after).paths
    if names_it(transcript, yard.checkout.root, paths):
        yield f"it changed files of your checkout ({some([printable(it) for it in paths], 5)})"


def names_it(transcript: Path, root: Path, paths: Iterable[str]) -> bool:
    """Whether the transcript holds the place, as it is or from the lanes' directory.

    Its hidden directories are no sign: an agent may use an environment or read a log in them.
    """
    plain, name = re.escape(os.fsencode(root)), re.escape(os.fsencode(root.name))
    hidden = [re.escape(os.fsencode(path)) for path in paths if path.startswith(".")]
    behind = b"|".join([rb"(?![\w.-]|/\.)", *(b"/" + path for path in hidden)])
    pattern = re.compile(rb"(?:" + plain + rb"|\.\./" + name + rb")(?:" + behind + rb")")
    try:
        with open_regular(transcript) as file:
            rest = b""
            while chunk := file.read(_CHUNK):
                if pattern.search(rest + chunk):
                    return True
                rest = chunk[-_LONGEST_PATH:]
    except OSError:
        return False
    return False
