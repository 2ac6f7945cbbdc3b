"""A box around a program: what it may write, what it does not see, whom it can reach.

Bubblewrap does it; here its command line is made, a value from values.  The whole machine is
read-only, `/tmp`, `/run` and the processes are the program's own, and on that plan of places come,
the deeper the later: what may be written, what below it stays read-only, what is not there.  Every
directory between a writable place and a guarded one is a place too, else it could be moved away and
put there anew.  Variables are withheld before bubblewrap starts: they could be read inside.

SIGINT would end bubblewrap, and the program with it, before it could say what it cost; so everybody
of the tree is asked but the box itself, which passes the exit code on, crashes as 128 + n.
"""

import errno
import os
import sys
from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path, PurePosixPath

import msgspec

from ralphloop.text.lazy_regex import LazyRegex

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
    *("--tmpfs", "/dev", "--tmpfs", "/dev/shm", "--symlink", "/proc/self/fd", "/dev/fd"),  # noqa: S108
    *(
        word
        for fd, name in enumerate(("stdin", "stdout", "stderr"))
        for word in ("--symlink", f"/proc/self/fd/{fd}", f"/dev/{name}")
    ),
    *(
        word
        for name in ("null", "zero", "full", "random", "urandom")
        for word in ("--dev-bind", f"/dev/{name}", f"/dev/{name}")
    ),
)
_SIGNALLED = 128
_LAST_SIGNAL = 64
_REFUSED = LazyRegex(r"Read-only file system|Permission denied|EROFS|EACCES")
_PATH = LazyRegex(r"(?<![\w./~-])/(?:[\w.@+,~-]{1,255}/){0,40}[\w.@+,~-]{1,255}")
_SYSTEM = ("/bin/", "/boot/", "/dev/", "/etc/", "/lib", "/proc/", "/sbin/", "/sys/", "/usr/")
_MOST_REFUSED = 5
_LOOKED_AT = 256 * 1024


class Place(StrEnum):
    WRITE = "write"
    READ = "read"
    EMPTY = "empty"  # a directory that is there and holds nothing
    BLANK = "blank"  # a file that is there and holds nothing


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
        self,
        argv: Sequence[str],
        cwd: Path,
        env: Mapping[str, str],
        *,
        write: Iterable[str] = (),
    ) -> tuple[list[str], dict[str, str]]:
        """Command line and environment of a start; a program that is not there is an OSError."""
        import shutil

        named = str(cwd / argv[0]) if "/" in argv[0] else argv[0]
        if shutil.which(named, path=env.get("PATH")) is None:
            raise FileNotFoundError(errno.ENOENT, "no such program", argv[0])
        return self.around(argv, cwd.resolve(), write=write), self.environment(env)

    def around(
        self, argv: Sequence[str], cwd: str | Path, *, write: Iterable[str] = ()
    ) -> list[str]:
        """The command line that runs a program in the box; `write`: for this start alone."""
        places = {**self.places, **dict.fromkeys(write, Place.WRITE)}
        words = [self.program, *_SEPARATE, "--cap-drop", "ALL", "--die-with-parent"]
        words += [] if self.network == OPEN else ["--unshare-net"]
        devices = _FEW_DEVICES if self.few_devices else ("--dev", "/dev")
        words += ["--ro-bind", "/", "/", *devices, "--proc", "/proc"]
        words += ["--ro-bind", "/proc/sys", "/proc/sys"]
        for path in sorted(places, key=lambda path: (len(PurePosixPath(path).parts), path)):
            words += _mount(places[path], path)
        words += self._relayed()
        if self.relay:
            here = str(Path(__file__).with_name("relay.py"))
            inner = [address for _, address in listeners(self.network)]
            argv = [sys.executable, "-I", "-S", here, self.relay, *inner, "--", *argv]
        return [*words, "--chdir", str(cwd), "--", *argv]

    def _relayed(self) -> list[str]:
        """Ports below 1024 may be listened on there: the network is the program's own."""
        if not self.relay:
            return []
        hosts = ["--ro-bind", f"{self.relay}/hosts", "/etc/hosts"]
        return ["--cap-add", "CAP_NET_BIND_SERVICE", "--ro-bind", self.relay, self.relay, *hosts]

    def environment(self, env: Mapping[str, str]) -> dict[str, str]:
        kept = {k: v for k, v in env.items() if k not in self.withheld and k not in _SESSION}
        if "TMPDIR" in kept:
            kept["TMPDIR"] = _OWN[0]
        return {**kept, BOXED: "1"}

    def disarm(self) -> list[str]:
        """Take away what came into being and must not; what it was."""
        found = [path for path in self.absent if os.path.lexists(path)]
        if found:
            import shutil
        for path in found:
            if os.path.isdir(path) and not os.path.islink(path):  # noqa: PTH112, PTH114
                shutil.rmtree(path, ignore_errors=True)
            else:
                Path(path).unlink(missing_ok=True)
        return found

    def may_write(self, path: str) -> bool:
        """True where the plan lets a program write."""
        for place in (path, *map(str, PurePosixPath(path).parents)):
            if place in self.places:
                return self.places[place] is not Place.READ
        return path.startswith("/dev/")


def _mount(kind: Place, path: str) -> tuple[str, ...]:
    match kind:
        case Place.WRITE:
            return "--bind", path, path
        case Place.READ:
            return "--ro-bind", path, path
        case Place.EMPTY:
            return "--tmpfs", path
        case Place.BLANK:
            return "--ro-bind", os.devnull, path


def plan(
    *,
    write: Iterable[str] = (),
    read: Iterable[str] = (),
    hide_directories: Iterable[str] = (),
    hide_files: Iterable[str] = (),
    show: Iterable[str] = (),
    allow: Iterable[str] = (),
) -> dict[str, Place]:
    """Places from lists of paths, each a list of its own meaning; a later one wins for a path.

    `show` is what must be seen where something above it is hidden; `allow` is written although
    something above it is read-only.
    """
    places = dict.fromkeys(_OWN, Place.EMPTY)
    places |= dict.fromkeys(hide_directories, Place.EMPTY)
    places |= dict.fromkeys(hide_files, Place.BLANK)
    hidden = [path for path, kind in places.items() if kind is Place.EMPTY]
    for path in show:
        if places.get(path) is None and any(_is_below(path, above) for above in hidden):
            places[path] = Place.READ
    writable = list(write)
    places |= dict.fromkeys(writable, Place.WRITE)
    guarded = list(read)
    for path in guarded:
        places |= dict.fromkeys(_between(path, writable), Place.WRITE)
    places |= dict.fromkeys(guarded, Place.READ)
    return places | dict.fromkeys(allow, Place.WRITE)


def _is_below(path: str, above: str) -> bool:
    return path == above or path.startswith(f"{above.rstrip('/')}/")


def _between(path: str, writable: Sequence[str]) -> list[str]:
    """The directories above a guarded path that lie in a writable one."""
    above = [str(parent) for parent in PurePosixPath(path).parents]
    return [p for p in above if any(_is_below(p, top) and p != top for top in writable)]


def listeners(network: Sequence[str]) -> list[tuple[str, str]]:
    """Each allowed name with the address it seems to have inside; loopback is itself."""
    found, next_number = [], 2
    for address in network:
        host, _, port = address.rpartition(":")
        host = host.strip("[]")
        seen = "127.0.0.1" if host == "localhost" else host
        if not (seen.startswith("127.") or seen == "::1"):
            seen, next_number = f"127.0.0.{next_number}", next_number + 1
        found.append((host, f"{seen}:{port}"))
    return found


def hosts_file(network: Sequence[str]) -> str:
    lines = ["127.0.0.1 localhost", "::1 localhost"]
    for host, address in listeners(network):
        if host != "localhost" and not host.startswith("127.") and ":" not in host:
            lines.append(f"{address.rpartition(':')[0]} {host}")
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
            paths = [path for path in _PATH.findall(line[:2000]) if not box.may_write(path)]
            found |= dict.fromkeys(paths[:1])
    return list(found)


def in_words(refused: Sequence[str]) -> list[str]:
    """What was refused, each with the line that would allow it."""
    said = []
    for path in refused:
        fact = f"the sandbox kept {path} from being written"
        line = f'[sandbox] write = ["{PurePosixPath(path).parent}"]'
        said.append(fact if path.startswith(_SYSTEM) else f"to allow it: {line} ({fact})")
    return said
