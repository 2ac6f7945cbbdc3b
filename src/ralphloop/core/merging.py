"""Putting one side's changes onto another's: what paths alone decide, and what is in conflict.

Both sides began with the same tree: `landed` is what the branch holds now, `own` a story's work.
Git's own merge would ask attributes and drivers of the tree, which an agent can write, and would
leave files of its invention (`name~HEAD`) where two sides do not fit; here nothing decides but the
two lists of changes.  Contents that both sides changed are left for whoever can read them.

Where the sides do not fit, the path stays as it landed, and the conflict says of which kind it is:
no side is dropped without a word.  Paths are bytes, as git has them.
"""

import re
from collections.abc import Iterable
from enum import StrEnum

from ralphloop.core import Value

FILE = "100644"
LINK = "120000"
SUBMODULE = "160000"


class ConflictKind(StrEnum):
    TEXT = "text"
    ADDED_LINES = "added lines"  # both added lines at one place, some of them the same
    BOTH_ADDED = "both added"  # one file, of different text
    BINARY = "binary"
    CHANGED_DELETED = "changed/deleted"  # landed: changed, own: deleted
    DELETED_CHANGED = "deleted/changed"
    RENAMED_DELETED = "renamed/deleted"
    RENAMED_APART = "renamed apart"  # to two names
    RENAMED_ONTO = "renamed onto another"
    DIRECTORY = "directory/file"
    LINK = "link"
    SUBMODULE = "submodule"
    MODE = "mode"

    @property
    def has_markers(self) -> bool:
        """Whether both sides can stand in one file, between conflict markers."""
        return self in (ConflictKind.TEXT, ConflictKind.ADDED_LINES, ConflictKind.BOTH_ADDED)


MARKER_SIZE = 113  # of the markers in what `take_both` reads: no line of a file looks like them
_MARKER = re.compile(rb"([<|=>])\1{%d}(?:[ \r\n]|$)" % (MARKER_SIZE - 1))
_WORD = re.compile(rb"\w+")
_ABOUT_THE_NEXT_LINE = (b"@", b"#[", b"[")  # a line before what is added, such as `@Test`


class Additions(Value, kw_only=True):
    """Both sides of a file at the places where they meet."""

    text: bytes  # with both, what landed first
    only_added: bool  # neither side changed or removed a line there
    same: tuple[bytes, ...] = ()  # lines that both added, and that stand for something of its own


def take_both(shown: bytes) -> Additions:
    """A file with the lines of both sides wherever they meet.

    `shown` has both between markers of that size, and what was there before, as `git merge-file
    --diff3` writes them.
    """
    taken: list[bytes] = []
    same: list[bytes] = []
    sides: dict[bytes, list[bytes]] = {}
    part = b""  # the marker that we are behind; empty: no conflict
    only_added = True
    for line in shown.splitlines(keepends=True):
        marker = line[:1]
        if not _MARKER.match(line):
            if part:
                sides[part].append(line)
            else:
                taken.append(line)
        elif marker == b">":
            landed = sides[b"<"]
            own = sides[b"="]
            taken += [*landed, *own]
            same += _outstanding(landed) & _outstanding(own)
            only_added = only_added and not sides[b"|"]
            part = b""
        else:
            if marker == b"<":
                sides = {b"<": [], b"|": [], b"=": []}
            part = marker
    return Additions(text=b"".join(taken), only_added=only_added, same=tuple(same))


def _outstanding(lines: Iterable[bytes]) -> set[bytes]:
    """Those lines that name something: two of them would be one too many.

    They are the ones that are indented least, unless they are a bracket, a single word or about
    the line behind them; a heading is one even as a single word.
    """
    filled = [line.rstrip() for line in lines if line.strip()]
    least = min((len(line) - len(line.lstrip()) for line in filled), default=0)
    found = set()
    for line in filled:
        text = line[least:]
        if text[:1].isspace() or text.startswith(_ABOUT_THE_NEXT_LINE):
            continue
        if text.startswith(b"#") or len(_WORD.findall(text)) > 1:
            found.add(text)
    return found


class Entry(Value, kw_only=True):
    """What a tree holds at a path."""

    mode: str
    name: str  # of the object

    @property
    def kind(self) -> str:
        """The mode, whether it is a program or not."""
        return self.mode if self.mode in (LINK, SUBMODULE) else FILE

    @property
    def is_file(self) -> bool:
        """Whether it has contents that could be lines."""
        return self.kind == FILE


class SideChange(Value, kw_only=True):
    """What one side did to a path; without `old` it added it, without `new` it deleted it."""

    path: bytes  # where it is now, or was
    old: Entry | None = None
    new: Entry | None = None
    source: bytes = b""  # where it was, if it was renamed

    @property
    def began(self) -> bytes:
        """Its path in the tree both sides began with."""
        return self.source or self.path

    @property
    def is_other_kind(self) -> bool:
        """Whether a file became a link, or the other way round."""
        return self.old is not None and self.new is not None and self.old.kind != self.new.kind


class Conflict(Value, kw_only=True):
    kind: ConflictKind
    path: bytes  # where the landed side has it, or had it
    own: bytes = b""  # where the other side has it, if elsewhere
    is_gone: bool = False  # the other side has nothing there

    @property
    def own_path(self) -> bytes:
        return self.own or self.path


class Put(Value, kw_only=True):
    """An entry of the other side that is taken over as it is."""

    entry: Entry
    source: bytes = b""  # what goes from the landed tree with it


class Contents(Value, kw_only=True):
    """A file that both sides changed, for somebody who can read it."""

    path: bytes  # in the landed tree
    own: bytes  # in the other side's
    target: bytes  # where the result belongs
    mode: str
    base: str = ""  # names of contents; empty: there was none before
    theirs: str
    ours: str
    source: bytes = b""  # what goes from the landed tree with it

    def clash(self, kind: ConflictKind) -> Conflict:
        """The same, found to be in conflict."""
        place = self.target if kind.has_markers else self.path
        return Conflict(kind=kind, path=place, own=self.own if self.own != place else b"")


class MergePlan(Value, kw_only=True):
    """What has to be done to the landed tree."""

    puts: dict[bytes, Put]
    gone: frozenset[bytes]
    contents: tuple[Contents, ...]
    conflicts: tuple[Conflict, ...]


def plan(landed: Iterable[SideChange], own: Iterable[SideChange]) -> MergePlan:
    """How the changes of one side are put onto what landed."""
    planning = _Planning(tuple(landed))
    for change in own:
        planning.take(change)
    return planning.done()


class _Planning:
    def __init__(self, landed: tuple[SideChange, ...]) -> None:
        self._began = {it.began: it for it in landed if it.old is not None}
        self._stands = {it.path: it.new for it in landed if it.new is not None}
        self._above = {directory for path in self._stands for directory in _directories(path)}
        self._puts: dict[bytes, Put] = {}
        self._gone: set[bytes] = set()
        self._contents: dict[bytes, Contents] = {}
        self._conflicts: list[Conflict] = []

    def take(self, own: SideChange) -> None:
        there = self._began.get(own.began) if own.old is not None else None
        if there is None:
            self._take_alone(own)
        elif own.new is None:
            self._take_deletion(own, there)
        elif there.new is None:
            self._conflicts.append(self._deleted(own))
        elif own.source and there.source and own.path != there.path:
            self._clash(ConflictKind.RENAMED_APART, there.path, own.path)
        elif (own.source or there.source) and (own.is_other_kind or there.is_other_kind):
            self._clash(ConflictKind.LINK, there.path, own.path)
        elif own.source and own.path != there.path:
            self._meet(own.old, there.new, own, own.path, there.path)
        else:
            self._meet(own.old, there.new, own, there.path, b"")

    def _take_alone(self, own: SideChange) -> None:
        """What landed left it alone; but something new may stand where it goes."""
        is_new = own.old is None or bool(own.source)
        if own.new is None:
            self._gone.add(own.path)
        elif is_new and own.path in self._stands:
            self._meet(None, self._stands[own.path], own, own.path, own.source)
        else:
            self._puts[own.path] = Put(entry=own.new, source=own.source)

    def _take_deletion(self, own: SideChange, there: SideChange) -> None:
        if there.new is None:
            return
        kind = ConflictKind.RENAMED_DELETED if there.source else ConflictKind.CHANGED_DELETED
        elsewhere = own.path if there.source else b""
        self._conflicts.append(Conflict(kind=kind, path=there.path, own=elsewhere, is_gone=True))

    def _deleted(self, own: SideChange) -> Conflict:
        """The conflict over a file that landed as deleted, or as something else in its way."""
        kind = ConflictKind.DELETED_CHANGED
        met = own.began
        blocking = [it for it in _directories(own.began) if it in self._stands]
        if own.began in self._above:
            kind = ConflictKind.DIRECTORY
        elif blocking:
            kind = ConflictKind.DIRECTORY
            met = blocking[0]
        return Conflict(kind=kind, path=met, own=own.path if own.path != met else b"")

    def _meet(
        self, base: Entry | None, theirs: Entry, own: SideChange, target: bytes, source: bytes
    ) -> None:
        """Both sides have something of their own; `target` is where it belongs together.

        What landed has it there, or at `source`, which then goes.
        """
        ours = own.new
        path = target
        if source and base is not None:
            path = source  # it is not there yet
        if ours is None:
            return
        is_taken = target in self._puts or target in self._contents
        if is_taken or (path != target and target in self._stands):
            self._clash(ConflictKind.RENAMED_ONTO, path, own.path)
            return
        decided = _of_both(base, theirs, ours)
        if decided is not None:
            if decided != theirs or source:
                self._puts[target] = Put(entry=decided, source=source)
        elif SUBMODULE in (theirs.mode, ours.mode):
            self._clash(ConflictKind.SUBMODULE, path, own.path)
        elif LINK in (theirs.mode, ours.mode):
            self._clash(ConflictKind.LINK, path, own.path)
        elif theirs.name == ours.name:
            self._clash(ConflictKind.MODE, path, own.path)
        else:
            self._contents[target] = Contents(
                path=path,
                own=own.path,
                target=target,
                mode=_decided(base.mode if base else None, theirs.mode, ours.mode) or theirs.mode,
                base=base.name if base is not None and base.is_file else "",
                theirs=theirs.name,
                ours=ours.name,
                source=source,
            )

    def _clash(self, kind: ConflictKind, path: bytes, own: bytes) -> None:
        elsewhere = own if own != path else b""
        self._conflicts.append(Conflict(kind=kind, path=path, own=elsewhere))

    def done(self) -> MergePlan:
        self._find_directories()
        return MergePlan(
            puts=self._puts,
            gone=frozenset(self._gone),
            contents=tuple(self._contents.values()),
            conflicts=tuple(self._conflicts),
        )

    def _find_directories(self) -> None:
        """A file where what landed has a directory, or the other way round."""
        wanted: dict[bytes, Put | Contents] = {**self._puts, **self._contents}
        leaving = {it.source for it in wanted.values()} | self._gone
        standing = frozenset(self._stands.keys() - leaving)
        above = {directory for path in standing for directory in _directories(path)}
        for path in wanted:
            met = next((it for it in _directories(path) if it in standing), None)
            if path in above:
                met = path
            if met is not None:
                self._puts.pop(path, None)
                self._contents.pop(path, None)
                self._clash(ConflictKind.DIRECTORY, met, path)


def _of_both(base: Entry | None, theirs: Entry, ours: Entry) -> Entry | None:
    """One that has what each side changed, where they changed different things of it."""
    if ours in (theirs, base):
        return theirs
    if theirs == base:
        return ours
    if not (theirs.is_file and ours.is_file):
        return None
    mode = _decided(base.mode if base else None, theirs.mode, ours.mode)
    name = _decided(base.name if base else None, theirs.name, ours.name)
    return Entry(mode=mode, name=name) if mode and name else None


def _decided(base: str | None, theirs: str, ours: str) -> str | None:
    if ours in (theirs, base):
        return theirs
    return ours if theirs == base else None


def _directories(path: bytes) -> list[bytes]:
    """Every directory above a path, the nearest last."""
    parts = path.split(b"/")
    return [b"/".join(parts[:count]) for count in range(1, len(parts))]
