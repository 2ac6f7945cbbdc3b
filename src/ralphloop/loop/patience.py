"""How long a session waits for its checks: what they would prove after that stays a claim."""

import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from ralphloop.core.model import CheckResult, CheckStatus

if TYPE_CHECKING:
    from ralphloop.repo.checks import Check

PATIENCE_S = 8 * 60.0  # Claude Code ends a hook after ten minutes


class Patience:
    """The time that the checks and experiments of one turn have."""

    def __init__(self, baseline: Sequence[CheckResult] = (), *, slow: bool = False) -> None:
        took = sum(result.duration_s for result in baseline)  # when the run began
        self.slow = slow or took > PATIENCE_S
        self._until = 0.0

    def left(self) -> float:
        """Seconds that this turn still has for checks and experiments."""
        if not self._until:
            return PATIENCE_S
        return max(0.0, self._until - time.monotonic())

    def run(
        self, wanted: "list[Check]", cwd: Path, stop: Callable[[], bool]
    ) -> tuple[CheckResult, ...]:
        """The results; none where they would say that all is well and not all of them ran."""
        from ralphloop.repo.checks import run_checks

        if self.slow or not wanted:
            return ()
        is_first = not self._until
        if is_first:
            self._until = time.monotonic() + PATIENCE_S
        results = run_checks(wanted, cwd, stop=lambda: stop() or not self.left())
        if len(results) == len(wanted):
            return results
        if is_first:  # what came later had only the rest of the time
            self.slow = True
        has_failed = any(result.status is CheckStatus.FAILED for result in results)
        return results if has_failed else ()
