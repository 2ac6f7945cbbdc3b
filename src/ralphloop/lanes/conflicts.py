"""What an agent is told of a conflict: its kind, where both sides are, and what to do.

Markers stand only where both sides fit into one file.  Everywhere else the path is as it landed,
and the story's own side is in the commit that was made of its work.
"""

import os
import shlex
from collections.abc import Sequence

from ralphloop.core.merging import Conflict, ConflictKind
from ralphloop.repo.git import printable
from ralphloop.text.plain import counted, some

_MOST_TOLD = 20
_MOST_JOINED = 5
_WITH_MARKERS = {
    ConflictKind.TEXT: "{path}: both sides changed the same lines.",
    ConflictKind.ADDED_LINES: (
        "{path}: both sides added lines at the same place, some of them the same. Mostly both are"
        " wanted, one after the other, and what is the same once."
    ),
    ConflictKind.BOTH_ADDED: "{path}: both sides added this file, each with its own content.",
}
_WITHOUT = {
    ConflictKind.BINARY: (
        "{path} is binary, so there is nothing to merge line by line and there are no markers. It"
        " is as it landed; yours: {show}. Choose one, or make one that serves both."
    ),
    ConflictKind.CHANGED_DELETED: (
        "{path}: you deleted it, and what landed changed it. It is there as it landed. Delete it"
        " again if it is really not needed any more, and take what changed in it to where it"
        " belongs now; otherwise leave it."
    ),
    ConflictKind.DELETED_CHANGED: (
        "{path}: what landed deleted it, and you changed it{moved}. It is not there; yours: {show}."
        " Bring what your story needs to where it belongs now, or back if it has to be there."
    ),
    ConflictKind.RENAMED_DELETED: (
        "{path}: what landed renamed {own} to this, and you deleted {own}. It is there as it"
        " landed. Delete it if it is really not needed any more; otherwise leave it."
    ),
    ConflictKind.RENAMED_APART: (
        "{path}: what landed gave the file this name, and you renamed it to {own}. It has the name"
        " that landed; yours: {show}. Take your changes over to one name, and use it everywhere."
    ),
    ConflictKind.RENAMED_ONTO: (
        "{path}: you renamed a file to {own}, where other content has landed. It is as it landed;"
        " yours: {show}. Choose another name, or bring both together."
    ),
    ConflictKind.DIRECTORY: (
        "{path}: one side has a file where the other has a directory. It is as it landed; yours is"
        " {own}: {show}. Give one of them another name, and use it everywhere."
    ),
    ConflictKind.LINK: (
        "{path} is a link on one side, so there is nothing to merge and there are no markers. It is"
        " as it landed; yours: {show}. Choose where it should lead."
    ),
    ConflictKind.SUBMODULE: (
        "{path} is a submodule on one side, and both changed it. It stands on the commit that"
        " landed; yours: {tree}. Merge yours in the submodule, commit there, and leave it there."
    ),
    ConflictKind.MODE: (
        "{path}: both sides added it, one as a program and one not. It is as it landed; yours:"
        " {tree}. Choose with chmod."
    ),
}


def told(conflicts: Sequence[Conflict], work: str) -> str:
    """What the agent has to do about them; `work` names the commit of what it had done."""
    many = counted(len(conflicts), "path", "is")
    lines = [f"The work on this story was put on top of what has landed, and {many} in conflict."]
    lines.append(f"All of that work as it was: git diff {work}~ {work}")
    with_markers = [it for it in conflicts if it.kind.has_markers]
    if with_markers:
        lines.append(
            "Both sides stand between conflict markers in these. Solve them so that what landed"
            " keeps working and your story is done as well; leave no marker."
        )
        lines += _bullets(with_markers, work)
    without = [it for it in conflicts if not it.kind.has_markers]
    if without:
        lines.append(
            "In these there are no markers; decide what becomes of both sides, so that what landed"
            " keeps working and your story is done as well."
        )
        lines += _bullets(without, work)
    return "\n".join(lines)


def _bullets(conflicts: Sequence[Conflict], work: str) -> list[str]:
    lines = [f"- {words_of(one, work)}" for one in conflicts[:_MOST_TOLD]]
    if len(conflicts) > _MOST_TOLD:
        lines.append(f"- and {len(conflicts) - _MOST_TOLD} more")
    return lines


def words_of(conflict: Conflict, work: str) -> str:
    """One conflict, by its kind."""
    path = _text(conflict.path)
    own = _text(conflict.own_path)
    form = {**_WITH_MARKERS, **_WITHOUT}[conflict.kind]
    moved = f" and renamed it to {own}" if conflict.own else ""
    return form.format(
        path=path,
        own=own,
        moved=moved,
        show=f"git show {shlex.quote(f'{work}:{own}')}",
        tree=f"git ls-tree {work} {shlex.quote(own)}",
    )


def names(conflicts: Sequence[Conflict]) -> list[str]:
    """The paths, each once."""
    return list(dict.fromkeys(_text(it.path) for it in conflicts))


def joined_words(paths: Sequence[bytes]) -> str:
    """That lines of both sides were taken where both only added some; empty where none were."""
    if not paths:
        return ""
    where = some([_text(path) for path in paths], _MOST_JOINED)
    return (
        f"in {where} both this story and what landed added lines at one place: both were taken,"
        " this story's after those that had landed"
    )


def given_up(conflict: Conflict, work: str) -> str:
    """What a person is told where a story let its own side go."""
    own = _text(conflict.own_path)
    what = f"git show {shlex.quote(f'{work}:{own}')}"
    if conflict.is_gone:
        what = f"that {own} was deleted"
    where = _text(conflict.path)
    return f"in the conflict over {where} what landed was kept, and given up: {what}"


def _text(path: bytes) -> str:
    return printable(os.fsdecode(path))
