"""A box around a program: what it may write, what it does not see, whom it can reach.

Bubblewrap makes the whole machine read-only, but for a plan of places, the deeper the later.  Every
directory between a writable place and a guarded one is a place too, else it could be moved away and
put there anew.  Variables are withheld before bubblewrap starts: they could be read inside.

SIGINT would end bubblewrap, and the program with it, before it could say what it cost: everybody is
asked but the box itself, which passes the exit code on, crashes as 128 + n.
"""

import errno
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path, PurePosixPath
from typing import NamedTuple

import msgspec

from ralphloop.core.sentences import TO_ALLOW, TO_LET_USE_GIT
from ralphloop.text.plain import LazyRegex, any_case, some

OPEN: tuple[str, ...] = ("open",)
NONE: tuple[str, ...] = ("none",)
BOXED = "RALPH_SANDBOX"  # how a program knows that it is in one
PROGRAM = "bwrap"
_OWN = ("/tmp", "/run", "/var/tmp")  # noqa: S108 - the program's own, and empty
# Sockets and screens of the person's session: what they name is not there.
_SESSION = frozenset(
    "SSH_AUTH_SOCK SSH_AGENT_PID GPG_AGENT_INFO DBUS_SESSION_BUS_ADDRESS XDG_RUNTIME_DIR DISPLAY"
    " WAYLAND_DISPLAY XAUTHORITY TMUX STY DOCKER_HOST".split()
)
_SEPARATE = ("--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts")
_FEW_DEVICES = (
    "--tmpfs /dev --tmpfs /dev/shm --symlink /proc/self/fd /dev/fd"
    " --symlink /proc/self/fd/0 /dev/stdin --symlink /proc/self/fd/1 /dev/stdout"
    " --symlink /proc/self/fd/2 /dev/stderr --dev-bind /dev/null /dev/null"
    " --dev-bind /dev/zero /dev/zero --dev-bind /dev/full /dev/full"
    " --dev-bind /dev/random /dev/random --dev-bind /dev/urandom /dev/urandom"
).split()
_SIGNALLED = 128
_LAST_SIGNAL = 64
_REFUSED = any_case(r"read-only file system|permission denied|\bEROFS\b|\bEACCES\b")
_PATH = LazyRegex(r"(?<![\w./~-])/(?:[\w.@+,~-]{1,255}/){0,40}[\w.@+,~-]{1,255}")
_SYSTEM = ("/bin/", "/boot/", "/dev/", "/etc/", "/lib", "/proc/", "/sbin/", "/sys/", "/usr/")
# Below the home directory: what decides who comes in, what is started, and what ralph believes.
_NEVER_WRITTEN = (
    ".ssh .gnupg .aws .config/ralph .config/autostart .config/systemd .config/git"
    " .local/state/ralph"
).split()
_GIT = ".git"
_MOST_REFUSED = 5
_LOOKED_AT = 256 * 1024


class Place(StrEnum):
    WRITE = "write"
    READ = "read"
    EMPTY = "empty"  # a directory that is there and holds nothing
    BLANK = "blank"  # a file that is there and holds nothing


class BoxedStart(NamedTuple):
    """How a program is begun in a box."""

    argv: list[str]
    env: dict[str, str]


class Listener(NamedTuple):
    """An allowed address, and where it seems to be inside."""

    host: str
    seen: str  # its address inside
    port: int


class Box(msgspec.Struct, frozen=True, kw_only=True):
    """One plan, for any number of starts."""

    program: str  # bubblewrap, by its whole path
    places: dict[str, Place]
    network: tuple[str, ...] = OPEN
    relay: str = ""  # the directory of its sockets, where there are addresses
    few_devices: bool = False  # no pseudo-terminals: with them nobody but root has low ports
    withheld: frozenset[str] = frozenset()
    absent: tuple[str, ...] = ()  # what must not come into being where something may be written

    def start(
        self, argv: Sequence[str], cwd: Path, env: Mapping[str, str], *, write: Iterable[str] = ()
    ) -> BoxedStart:
        """Command line and environment of a start, which may `write` more; OSError: no program."""
        import shutil

        named = str(cwd / argv[0]) if "/" in argv[0] else argv[0]
        if shutil.which(named, path=env.get("PATH")) is None:
            raise FileNotFoundError(errno.ENOENT, "no such program", argv[0])
        places = {**self.places, **dict.fromkeys(write, Place.WRITE)}
        words = [self.program, *_SEPARATE, "--cap-drop", "ALL", "--die-with-parent"]
        if self.network != OPEN:
            words.append("--unshare-net")
        devices = _FEW_DEVICES if self.few_devices else ["--dev", "/dev"]
        words += ["--ro-bind", "/", "/", *devices, "--proc", "/proc"]
        words += ["--ro-bind", "/proc/sys", "/proc/sys"]
        for path in sorted(places, key=lambda path: (len(PurePosixPath(path).parts), path)):
            if places[path] is Place.EMPTY:
                words += ["--tmpfs", path]
            elif places[path] is Place.WRITE:
                words += ["--bind", path, path]
            else:
                seen = _blank_for(path) if places[path] is Place.BLANK else path
                words += ["--ro-bind", seen, path]
        if self.relay:
            # Ports below 1024 may be listened on there: the network is the program's own.
            words += ["--cap-add", "CAP_NET_BIND_SERVICE", "--ro-bind", self.relay, self.relay]
            words += ["--ro-bind", f"{self.relay}/hosts", "/etc/hosts"]
            here = str(Path(__file__).with_name("relay.py"))
            inner = [f"{it.seen}:{it.port}" for it in listeners(self.network)]
            argv = [sys.executable, "-I", "-S", here, self.relay, *inner, "--", *argv]
        kept = {k: v for k, v in env.items() if k not in self.withheld and k not in _SESSION}
        if "TMPDIR" in kept:
            kept["TMPDIR"] = _OWN[0]
        words += ["--chdir", str(cwd.resolve()), "--", *argv]
        return BoxedStart(words, {**kept, BOXED: "1"})

    def disarm(self) -> None:
        """Take away what came into being and must not."""
        for path in filter(os.path.lexists, self.absent):
            if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
                import shutil

                shutil.rmtree(path, ignore_errors=True)
            else:
                Path(path).unlink(missing_ok=True)

    @property
    def writable(self) -> list[str]:
        """The places that may be written."""
        return [path for path, place in self.places.items() if place is Place.WRITE]

    @property
    def writes_git(self) -> bool:
        """Whether any of git's own directory may be written."""
        places = (PurePosixPath(at).parts for at, it in self.places.items() if it is Place.WRITE)
        return any(_GIT in parts for parts in places)

    def may_write(self, path: str) -> bool:
        for place in (path, *map(str, PurePosixPath(path).parents)):
            if place in self.places:
                return self.places[place] is not Place.READ
        return path.startswith("/dev/")


def plan(
    *,
    write: Sequence[str] = (),
    read: Sequence[str] = (),
    hide_directories: Sequence[str] = (),
    hide_files: Sequence[str] = (),
    show: Sequence[str] = (),
    allow: Sequence[str] = (),
) -> dict[str, Place]:
    """Places from lists of paths; for one path a later list wins.

    `show` is what must be seen where something above it is hidden; `allow` is written although
    something above it is read-only.
    """
    hidden = (*_OWN, *hide_directories)
    places = dict.fromkeys(hidden, Place.EMPTY) | dict.fromkeys(hide_files, Place.BLANK)
    writable = set(map(PurePosixPath, write))
    for path in show:
        # Hidden by what is nearest to it: in a writable place it is seen, and stays writable.
        marked = {*writable, *map(PurePosixPath, hidden)}
        nearest = next((it for it in PurePosixPath(path).parents if it in marked), None)
        if path not in places and nearest is not None and nearest not in writable:
            places[path] = Place.READ
    places |= dict.fromkeys(write, Place.WRITE)
    guarded = set(map(PurePosixPath, read))
    for above in (parent for path in read for parent in PurePosixPath(path).parents):
        nearest = next((it for it in above.parents if it in writable or it in guarded), None)
        if nearest is not None and nearest not in guarded:
            places[str(above)] = Place.WRITE
    places |= dict.fromkeys(read, Place.READ)
    return places | dict.fromkeys(allow, Place.WRITE)


def listeners(network: Sequence[str]) -> list[Listener]:
    """Each allowed address, with where it seems to be inside; loopback is itself."""
    found: list[Listener] = []
    next_number = 2
    for address in network:
        host, _, port = address.rpartition(":")
        host = host.strip("[]")
        seen = "127.0.0.1" if host == "localhost" else host
        if not (seen.startswith("127.") or seen == "::1"):
            seen = f"127.0.0.{next_number}"
            next_number += 1
        found.append(Listener(host, seen, int(port)))
    return found


def hosts_file(network: Sequence[str]) -> str:
    """The names of the allowed addresses, as `/etc/hosts` has them."""
    lines = ["127.0.0.1 localhost", "::1 localhost"]
    for host, seen, _ in listeners(network):
        if host != "localhost" and not host.startswith("127.") and ":" not in host:
            lines.append(f"{seen} {host}")
    return "\n".join(lines) + "\n"


def exit_code_of(code: int | None) -> int | None:
    """The exit code of a program in a box, a signal as a negative number again."""
    if code is None or not _SIGNALLED < code <= _SIGNALLED + _LAST_SIGNAL:
        return code
    return _SIGNALLED - code


def refused_paths(text: str, box: Box) -> list[str]:
    """Paths that the box kept a program from writing, by what the program says."""
    found: dict[str, None] = {}
    for line in text[-_LOOKED_AT:].splitlines():
        if len(found) < _MOST_REFUSED and _REFUSED.search(line):
            told = _paths_in(line[:2000], box)
            found |= dict.fromkeys([path for path in told if not box.may_write(path)][:1])
    return list(found)


def _paths_in(line: str, box: Box) -> list[str]:
    """The paths that a line names; one with a space only in a known place."""
    odd = [place for place in box.places if place in line and not _PATH.fullmatch(place)]
    if not odd:
        return _PATH.findall(line)
    place = max(odd, key=len)
    rest = line.partition(place)[2]
    inside = _PATH.match(rest)
    return [place + (inside[0] if inside else "")]


def in_words(refused: Sequence[str], box: Box | None = None) -> list[str]:
    """What was refused, each line that would allow it once; some things nobody should allow.

    `box` is the one that refused it: where git's directory may be written, the rest of it may not.
    """
    by_advice = dict[str, list[str]]()
    for path in refused:
        is_settled = box is not None and box.writes_git and _GIT in PurePosixPath(path).parts
        by_advice.setdefault("" if is_settled else _what_allows(path), []).append(path)
    said = []
    for advice, paths in by_advice.items():
        if advice:
            fact = f"the sandbox kept {some(paths, 1)} from being written"
            said.append(f"{advice} ({fact})")
        else:
            said += [f"the sandbox kept {path} from being written" for path in paths]
    return said


def _what_allows(path: str) -> str:
    """The line that would let a path be written; empty where nobody should."""
    directory = PurePosixPath(path).parent
    if _GIT in PurePosixPath(path).parts:
        return f'{TO_LET_USE_GIT} git = "guarded"'
    if path.startswith(_SYSTEM) or _is_never_to_be_written(directory):
        return ""
    whole = _cache_around(directory)
    return f'{TO_ALLOW} write = ["{whole or directory}"]'


def _cache_around(directory: PurePosixPath) -> PurePosixPath | None:
    """The cache that a directory is a part of, whose other parts would be refused next."""
    home = os.environ.get("HOME") or "/"
    caches = PurePosixPath(os.environ.get("XDG_CACHE_HOME") or f"{home}/.cache")
    if directory == caches or not directory.is_relative_to(caches):
        return None
    whole = caches / directory.relative_to(caches).parts[0]
    return None if _is_never_to_be_written(whole) else whole


def _is_never_to_be_written(directory: PurePosixPath) -> bool:
    """True for what we would run or believe outside of the box, and for what lies around it."""
    home = Path(os.environ.get("HOME") or "/")
    ours = [Path(sys.prefix), Path(sys.base_prefix), Path(__file__).parents[1], home]
    ours += [Path(place) for place in os.environ.get("PATH", "").split(":") if place]
    kept = [*ours, *(path.resolve() for path in ours)]
    if any(PurePosixPath(path).is_relative_to(directory) for path in kept):
        return True
    kept = [path for path in kept if path not in (home, home.resolve())]
    kept += [home / word for word in _NEVER_WRITTEN]
    return any(directory.is_relative_to(path) for path in kept)


def _blank_for(path: str) -> str:
    """What stands in the place of a hidden file: nothing, in a form its readers understand."""
    blank = Path(__file__).parent / "blank" / f"blank{PurePosixPath(path).suffix}"
    return str(blank) if blank.exists() else os.devnull
