"""Checks in a hook: the session waits for them, so they get eight minutes and no more.

Claude Code ends a hook after ten.  Checks that took longer once, here or when the run began, are
not run at all; what they would have proven stays a claim.  What a next story's own command shows
before its first turn comes out of the same eight minutes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from pathlib import Path

from ralphloop.core.model import CheckResult, CheckStatus
from ralphloop.core.session import Frozen
from ralphloop.workspace.checks import Check, run_checks

PATIENCE_S = 8 * 60.0


class Patience:
    """Runs checks while there is time; nothing ran where there was not enough of it."""

    def __init__(self, *, slow: bool = False) -> None:
        self.slow = slow
        self._until: float | None = None

    def heed(self, frozen: Frozen) -> None:
        """Know from the first run of the checks how long they take."""
        self.slow |= sum(result.duration_s for result in frozen.baseline) > PATIENCE_S

    def __call__(
        self, checks: Iterable[Check], cwd: Path, /, *, stop: Callable[[], bool]
    ) -> tuple[CheckResult, ...]:
        """The results; none where they would say that all is well and not all of them ran."""
        wanted = list(checks)
        if self.slow or not wanted:
            return ()
        is_first, until = self._until is None, self._until or time.monotonic() + PATIENCE_S
        self._until = until
        results = run_checks(wanted, cwd, stop=lambda: stop() or time.monotonic() >= until)
        if len(results) == len(wanted):
            return results
        self.slow |= is_first  # what came later had only the rest of the time
        return results if any(it.status is CheckStatus.FAILED for it in results) else ()
