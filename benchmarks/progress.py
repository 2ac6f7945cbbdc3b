"""How far a long benchmark is, and how long it will still take."""

from __future__ import annotations

import time
from collections.abc import Hashable, Iterable, Mapping
from threading import Lock
from typing import Generic, TypeVar

_Key = TypeVar("_Key", bound=Hashable)

_USUAL_S = 60.0  # of something that was never measured, where nothing else was either


class Progress(Generic[_Key]):
    """Counts what is done; estimates the rest from how long each took when it was last measured."""

    def __init__(self, todo: Iterable[_Key], measured_s: Mapping[_Key, float], jobs: int) -> None:
        known = list(measured_s.values())
        usual = sum(known) / len(known) if known else _USUAL_S
        self._expected = {key: measured_s.get(key, usual) for key in todo}
        self._all = len(self._expected)
        self._whole_s = sum(self._expected.values())
        self._jobs = jobs
        self._began = time.monotonic()
        self._lock = Lock()

    def beginning(self) -> str:
        """What there is to do."""
        return f"{self._all} to run, {_about(self._whole_s / self._jobs)}"

    def after(self, key: _Key) -> str:
        """What there is still to do once this one is over."""
        with self._lock:
            self._expected.pop(key, None)
            left_s = sum(self._expected.values())
            number = self._all - len(self._expected)
        took_s = time.monotonic() - self._began
        done_s = self._whole_s - left_s
        # This machine is slower or faster than the one that measured.
        pace = took_s / done_s if done_s else 1 / self._jobs
        return f"{number} of {self._all}" + (f", {_about(left_s * pace)} left" if left_s else "")


def _about(seconds: float) -> str:
    minutes = round(seconds / 60)
    return f"about {minutes} min" if minutes else "less than a minute"
