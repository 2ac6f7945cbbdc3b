"""The one place that runs git.

No prompts, pager or editor; the C locale, so that messages can be recognised; NUL-separated output,
so that any file name survives.  Paths travel as `str` with surrogates (`os.fsdecode`), and reach
git as literal pathspecs on stdin, so that a file named `*` or `-rf` is only itself.

`Git(root)` is for reading: it takes no optional locks.  `Git(root).writing()` is for the few
commands that change the user's repository; the user's hooks and filters run there as always, in a
box where there is one.  Git itself is never taken from a place that an agent could write
(`proc.programs`), nor is anything that it starts outside of a box.

Of a status renames are never asked for, so every record is one path; paths stay bytes there.  What
lies in repositories inside this one is not asked of git, which would obey their settings: that is
looked at by `inner`.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

import msgspec
from msgspec.structs import replace

from ralphloop.errors import GitDisturbed, RepositoryError
from ralphloop.proc import programs
from ralphloop.proc.run import CommandEnd, marked, run_command
from ralphloop.proc.sandbox import Box

READ_TIMEOUT_S = 120.0
WRITE_TIMEOUT_S = 600.0  # a large checkout, a hook that runs a test suite
ANYHOW = (0, 1, 128)  # exit codes, where no answer is as good as none
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_TRIES = 3
_PAUSE_S = 0.2
_DEADLY = (signal.SIGABRT, signal.SIGKILL, signal.SIGBUS, signal.SIGSEGV, signal.SIGTERM)
_LOCKED = re.compile(  # git's words for a lock that somebody else holds, or has left
    rb"'(?P<lock>[^'\n]+\.lock)': File exists|lock config file (?P<config>[^\n]+): File exists"
)

# Where git would look instead of the directory it runs in: what `git rev-parse --local-env-vars`
# lists, but for configuration given by variables.
OTHER_REPOSITORY = frozenset(
    "GIT_ALTERNATE_OBJECT_DIRECTORIES GIT_COMMON_DIR GIT_DIR GIT_GRAFT_FILE GIT_IMPLICIT_WORK_TREE"
    " GIT_INDEX_FILE GIT_NAMESPACE GIT_OBJECT_DIRECTORY GIT_PREFIX GIT_REPLACE_REF_BASE"
    " GIT_SHALLOW_FILE GIT_WORK_TREE".split()
)
# And what changes its answers, or asks somebody who is not there: without GPG_TTY a passphrase
# prompt cannot take over the terminal.
_FOREIGN_VARIABLES = OTHER_REPOSITORY.union(
    "GIT_ASKPASS GIT_DIFF_OPTS GIT_EXTERNAL_DIFF GIT_GLOB_PATHSPECS GIT_ICASE_PATHSPECS"
    " GIT_LITERAL_PATHSPECS GIT_NOGLOB_PATHSPECS GIT_QUARANTINE_PATH GIT_TRACE2_PARENT_SID GPG_TTY"
    " SSH_ASKPASS".split()
)
_QUIET = {
    "GIT_TERMINAL_PROMPT": "0",
    "GIT_EDITOR": ":",
    "GIT_PAGER": "cat",
    "LC_ALL": "C",
    "LANGUAGE": "",
}
_ALWAYS = ("core.quotepath=off", "core.fsmonitor=false")
# What runs filters of the work tree although it only reads: they are confined as hooks are.
_MAY_START = (("status",), ("hash-object",), ("diff",))
# No housekeeping process may outlive our command.
_WHEN_WRITING = ("gc.auto=0", "maintenance.auto=false")


def never() -> bool:
    """False: what waits for this to be true waits to the end."""
    return False


class Git(msgspec.Struct, frozen=True, dict=True):
    cwd: Path
    config: tuple[str, ...] = ()
    env: Mapping[str, str] = {}
    read_only: bool = True
    box: Box | None = None  # for what may start hooks and filters, which an agent may have written
    is_over: Callable[[], bool] = never  # whether nobody waits for its answer any more

    def writing(self) -> Git:
        return replace(self, read_only=False)

    def adapted(self, *, config: Iterable[str] = (), env: Mapping[str, str] | None = None) -> Git:
        return replace(self, config=(*self.config, *config), env={**self.env, **(env or {})})

    def confined(self, box: Box | None) -> Git:
        """The same git in a box whenever it writes; None: never."""
        return replace(self, box=box)

    def until(self, is_over: Callable[[], bool]) -> Git:
        """The same git, whose commands end when that is so."""
        return replace(self, is_over=is_over)

    def run(
        self, *args: str, stdin: bytes = b"", timeout_s: float = 0.0, ok: Collection[int] = (0,)
    ) -> bytes:
        """Standard output of a command that ends well; RepositoryError otherwise."""
        ended = self.attempt(*args, stdin=stdin, timeout_s=timeout_s)
        if ended.timed_out or ended.overflowed or ended.returncode not in ok:
            raise failure(args, ended)
        return ended.stdout

    def attempt(self, *args: str, stdin: bytes = b"", timeout_s: float = 0.0) -> CommandEnd:
        """How a command ended; raises GitDisturbed where that is no answer to what was asked."""
        ended = self.once(*args, stdin=stdin, timeout_s=timeout_s)
        if not self.read_only and lock_in_the_way(ended):
            raise failure(args, ended)
        return ended

    def once(self, *args: str, stdin: bytes = b"", timeout_s: float = 0.0) -> CommandEnd:
        """The same, whatever lock it met; raises where git was killed, which has no answer at all.

        Who only reads is asked again at once; who writes may have done so.
        """
        tries_left = _TRIES if self.read_only else 1
        while True:
            ended = self._start(*args, stdin=stdin, timeout_s=timeout_s)
            killed_by = self._killed_by(ended)
            if not killed_by:
                return ended
            tries_left -= 1
            if not tries_left:
                break
            time.sleep(_PAUSE_S)
        command = f"git {args[0]}" if args else "git"
        raise GitDisturbed(
            f"{command} was killed (signal {killed_by})",
            "Is there enough memory? Then: ralph run --continue",
        )

    def _killed_by(self, ended: CommandEnd) -> int:
        """The signal that ended a command which nobody here wanted to end; 0: none did."""
        if ended.timed_out or ended.overflowed or ended.stopped:
            return 0
        if ended.returncode < 0:
            return -ended.returncode
        is_boxed = self.box is not None and not self.read_only  # where it is told as by a shell
        by_signal = ended.returncode - 128
        return by_signal if is_boxed and by_signal in _DEADLY else 0

    def _start(self, *args: str, stdin: bytes, timeout_s: float) -> CommandEnd:
        """Run git once, in its box where it may start programs of others; how it ended."""
        box = self.box if args[:1] in _MAY_START or not self.read_only else None
        timeout_s = timeout_s or (READ_TIMEOUT_S if self.read_only else WRITE_TIMEOUT_S)
        try:
            argv = self.command(*args)
            env = self.environment if box is None else self.inherited
            if box is not None:
                # Where variables of ours let git write: a record, an index of our own.
                named = filter(None, map(self.env.get, ("GIT_TRACE2_EVENT", "GIT_INDEX_FILE")))
                places = sorted({str(Path(path).parent.resolve()) for path in named})
                inside = box.start(argv, self.cwd, env, write=places)
                argv = inside.argv
                env = inside.env
            return run_command(
                argv, cwd=self.cwd, env=env, stdin=stdin, timeout_s=timeout_s, stop=self.is_over
            )
        except FileNotFoundError as error:
            if not self.cwd.is_dir():
                raise RepositoryError(f"the directory {self.cwd} does not exist") from error
            raise RepositoryError(
                "git was not found", "install git and make sure it is on PATH"
            ) from error
        except OSError as error:
            raise RepositoryError(f"git could not be started: {error}") from error
        finally:
            if box is not None:
                box.disarm()

    def command(self, *args: str) -> list[str]:
        """The whole command line of a git with these words."""
        settings = [*_ALWAYS]
        if not self.read_only:
            settings += _WHEN_WRITING
        settings += self.config
        words = [programs.program("git")]
        for setting in settings:
            words += ["-c", setting]
        return [*words, *args]

    def names(self, *args: str, stdin: bytes = b"", ok: Collection[int] = (0,)) -> list[str]:
        """The paths that a command prints, each with a NUL behind it."""
        return [os.fsdecode(it) for it in self.run(*args, stdin=stdin, ok=ok).split(b"\0") if it]

    def contains(self, commit: str | None, part: str) -> bool:
        """Whether a commit has another one behind it; what is not here is not known to."""
        args = ("merge-base", "--is-ancestor", part, commit or "")
        return bool(commit) and self.attempt(*args).returncode == 0

    def line(self, *args: str, ok: Collection[int] = (0,)) -> str:
        return os.fsdecode(self.run(*args, ok=ok)).removesuffix("\n")

    @cached_property
    def inherited(self) -> dict[str, str]:
        """What git gets in a box.  Made once: reading all of ours takes as long as a process."""
        kept = {k: v for k, v in os.environ.items() if k not in _FOREIGN_VARIABLES}
        locks = {"GIT_OPTIONAL_LOCKS": "0"} if self.read_only else {}
        made = {**kept, **_QUIET, **locks, **self.env}
        return made if self.read_only else marked(made)  # hooks take long

    @cached_property
    def environment(self) -> dict[str, str]:
        """What git gets outside of any box; hooks that nobody confines have the person's PATH."""
        is_plain = not (self.read_only or programs.confines())
        return self.inherited if is_plain else programs.trusted_environment(self.inherited)


def lock_in_the_way(ended: CommandEnd) -> str:
    """The lock because of which a command failed; empty where it did not."""
    found = _LOCKED.search(ended.stderr) if ended.returncode != 0 else None
    if found is None:
        return ""
    return os.fsdecode(found["lock"] or found["config"] + b".lock")


def failure(args: Sequence[str], ended: CommandEnd) -> RepositoryError:
    command = f"git {args[0]}" if args else "git"
    if lock := lock_in_the_way(ended):
        return GitDisturbed(f"{command} failed: {first_lines(ended.stderr)}", lock=lock)
    if ended.stopped:
        return RepositoryError(f"{command} was stopped before it was through")
    if ended.timed_out:
        return RepositoryError(f"{command} did not finish within {ended.given_s:g} s")
    if ended.overflowed:
        return RepositoryError(f"{command} printed more than can be read")
    said = first_lines(ended.stderr) or f"exit code {ended.returncode}"
    return RepositoryError(f"{command} failed: {said}")


def first_lines(output: bytes) -> str:
    """The first lines of an output that say something, as one bounded text."""
    lines = output.decode("utf-8", "replace").splitlines()
    said = [line.rstrip() for line in lines if line.strip()][:6]
    return "\n".join(line[:500] for line in said)


def printable(path: str) -> str:
    """A path as one line of text that any encoder takes."""
    text = path.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return _CONTROL.sub(lambda found: f"\\x{ord(found[0]):02x}", text)


def nul_ended(records: Iterable[bytes]) -> bytes:
    """Records as git's `-z` options read them."""
    return b"".join(record + b"\0" for record in records)


def literal_pathspecs(paths: Iterable[str]) -> bytes:
    """Paths as NUL-separated pathspecs from the repository's root that match only themselves."""
    return nul_ended(b":(top,literal)" + os.fsencode(path) for path in paths)


PATHSPECS_ON_STDIN = ("--pathspec-from-file=-", "--pathspec-file-nul")
STATUS_ARGS = tuple(
    "status --porcelain=v2 -z --branch --no-ahead-behind --no-renames --untracked-files=all"
    " --ignore-submodules=dirty".split()
)


class StatusEntry(msgspec.Struct, frozen=True):
    """One path that is not the same in HEAD, index and work tree."""

    path: bytes
    staged: str  # HEAD against index: one of .MTADU
    unstaged: str  # index against work tree; "?" for an untracked path
    submodule: str  # "N..." or "S" + commit, modified, untracked flags
    mode: bytes = b""  # in the work tree; empty: untracked, or unmerged
    was: bytes = b""  # the mode in HEAD; empty: untracked, or unmerged

    @property
    def is_untracked(self) -> bool:
        return self.unstaged == "?"

    @property
    def is_new(self) -> bool:
        """HEAD does not have it, whether somebody staged it or not."""
        return self.is_untracked or self.staged == "A" or self.unstaged == "A"

    @property
    def was_submodule(self) -> bool:
        return self.was == b"160000"

    @property
    def is_unmerged(self) -> bool:
        return "U" in (self.staged, self.unstaged) or self.staged == self.unstaged in ("A", "D")


class StatusReport(msgspec.Struct, frozen=True):
    head: str | None  # None: no commit yet
    branch: str | None  # None: detached
    entries: list[StatusEntry]


def parse_status(output: bytes) -> StatusReport:
    """What `git status` with our words (`STATUS_ARGS`) has printed."""
    head = ""
    branch = ""
    entries: list[StatusEntry] = []
    for record in filter(None, output.split(b"\0")):
        if record.startswith(b"# branch.oid "):
            head = record[13:].decode("utf-8", "backslashreplace")
        elif record.startswith(b"# branch.head "):
            branch = record[14:].decode("utf-8", "backslashreplace")
        elif record.startswith(b"?"):
            entries.append(StatusEntry(record[2:], ".", "?", "N..."))
        elif not record.startswith(b"#"):
            is_ordinary = record.startswith(b"1")
            fields = record.split(b" ", 8 if is_ordinary else 10)  # the path is the last of them
            both = fields[1].decode()
            entries.append(
                StatusEntry(
                    path=fields[-1],
                    staged=both[0],
                    unstaged=both[1],
                    submodule=fields[2].decode(),
                    mode=fields[5] if is_ordinary else b"",
                    was=fields[3] if is_ordinary else b"",
                )
            )
    return StatusReport(
        head=None if head == "(initial)" else head,
        branch=None if branch == "(detached)" else branch,
        entries=entries,
    )
