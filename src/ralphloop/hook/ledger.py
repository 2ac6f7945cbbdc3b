"""What a loop inside a session remembers between two hooks, beyond what every run does."""

from __future__ import annotations

import msgspec

from ralphloop.core.model import Value
from ralphloop.journal.queries import Queries
from ralphloop.journal.store import Journal
from ralphloop.workspace.repo import Places


class Ledger(Value, kw_only=True):
    """One loop's own notes; they live in the journal, under the run."""

    only: str | None = None  # --story
    prefix: str = ""  # of the commands as this person types them: /ralph or /ralph:ralph
    specs_dir: str = ""
    prompt: str = ""  # the file of a plain loop
    idle_row: int = 0  # stops in a row without progress
    waited_for: tuple[str, ...] = ()  # background tasks we let finish once
    transcript_read: int = 0  # bytes of the session's transcript that were counted
    settings: dict[str, bytes] | None = None  # the files that say how it works, before the turn
    slow_checks: bool = False  # they take longer than a hook may
    repository: Places | None = None  # found once: a run stays where it is

    def command(self, rest: str = "", *, name: str = "ralph") -> str:
        """A command the person can type as it is printed."""
        return f"/{self.prefix}{name} {rest}".rstrip()


def load_ledger(journal: Queries, run: str) -> Ledger:
    """The notes of a run; empty ones where nobody took any."""
    saved = journal.meta(_key(run))
    return Ledger() if saved is None else msgspec.convert(saved, type=Ledger)


def save_ledger(journal: Journal, run: str, ledger: Ledger) -> None:
    """Keep the notes for the next hook."""
    journal.set_meta(_key(run), ledger)


def _key(run: str) -> str:
    return f"hook:{run}"
