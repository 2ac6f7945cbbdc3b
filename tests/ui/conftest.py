"""Clocks on the screens are those of the machine; here it stands in Greenwich."""

import time
from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True)
def in_greenwich() -> Iterator[None]:
    """The time zone of this process, for one test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        yield
    time.tzset()
