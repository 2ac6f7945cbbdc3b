"""What is found out before anything is spent: how bad it is, what it is, what to do about it."""

from __future__ import annotations

from enum import StrEnum
from typing import NamedTuple


class Level(StrEnum):
    """The worst first."""

    ERROR = "error"  # a run does not begin
    WARNING = "warning"  # worth reading
    INFO = "info"  # how things stand
    OK = "ok"


class Finding(NamedTuple):
    """One thing to know before a run begins."""

    level: Level
    message: str
    fix: str = ""
    code: str = ""  # what it is about, in one word
