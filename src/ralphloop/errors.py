"""Every error a user can meet: what happened, what to do next, and the exit code it ends with.

The numbers are a contract with scripts (`docs/reference/exit-codes.md`); click's own 2 is our
"blocked", so usage errors are 64.  A `Finding` is what is found out before anything is spent.
"""

from enum import IntEnum, StrEnum
from typing import ClassVar, NamedTuple


class ExitCode(IntEnum):
    COMPLETE = 0
    HALTED = 1
    BLOCKED = 2
    LIMIT = 3
    NOTHING_RUNNABLE = 4
    USAGE = 64
    BAD_INPUT = 65
    REPO_NOT_READY = 66
    AGENT_UNAVAILABLE = 69
    INTERNAL = 70
    LOCKED = 75
    NOT_TRUSTED = 77
    INTERRUPTED = 130
    TERMINATED = 143


class RalphError(Exception):
    """An error with a next step for the person who reads it."""

    exit_code: ClassVar[ExitCode] = ExitCode.INTERNAL

    def __init__(self, message: str, next_step: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.next_step = next_step


class CircuitOpen(RalphError):
    exit_code = ExitCode.HALTED


class UsageError(RalphError):
    exit_code = ExitCode.USAGE


class InputError(RalphError):
    exit_code = ExitCode.BAD_INPUT

    def __init__(self, message: str, next_step: str = "", *, place: str = "") -> None:
        super().__init__(f"{place}: {message}" if place else message, next_step)
        self.place = place


# One fact, one sentence: what every command says before the first run.
NOTHING_RAN = "nothing has run here yet"
START_ONE = "`ralph run` starts one."


class NothingRan(UsageError):
    """Raised by every command that needs a run, where there was none: the same words and code."""

    def __init__(self) -> None:
        super().__init__(NOTHING_RAN, START_ONE)


def unreadable(error: OSError, path: object) -> InputError:
    reason = (error.strerror or str(error)).lower()
    return InputError(reason, "Name a file that is there and may be read.", place=str(path))


class RepositoryError(RalphError):
    exit_code = ExitCode.REPO_NOT_READY


class GitDisturbed(RepositoryError):
    """Git was killed, or met a lock: that says nothing about what it was asked, so ask again.

    `lock` is the file that was in the way; empty where git was killed.  `stopped` says that it was
    not waited for any longer because a person wanted the run to stop.
    """

    def __init__(
        self, message: str, next_step: str = "", *, lock: str = "", stopped: bool = False
    ) -> None:
        super().__init__(message, next_step)
        self.lock = lock
        self.stopped = stopped


class AgentUnavailable(RalphError):
    exit_code = ExitCode.AGENT_UNAVAILABLE


class GitHubUnavailable(RalphError):
    exit_code = ExitCode.AGENT_UNAVAILABLE


class NotOnGitHub(GitHubUnavailable):
    """What was asked for is not there, or this login may not see it."""


class JournalError(RalphError):
    exit_code = ExitCode.INTERNAL


class LockedError(RalphError):
    exit_code = ExitCode.LOCKED


class NotTrusted(RalphError):
    exit_code = ExitCode.NOT_TRUSTED


class Level(StrEnum):
    """The worst first."""

    ERROR = "error"  # a run does not begin
    WARNING = "warning"  # worth reading
    INFO = "info"  # how things stand
    OK = "ok"


class Finding(NamedTuple):
    level: Level
    message: str
    fix: str = ""
    code: str = ""  # what it is about, in one word
