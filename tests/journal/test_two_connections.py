"""Two connections of one process, and a second process beside them."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from ralphloop.journal.journal import Journal
from ralphloop.journal.queries import JournalReader

LOOK = """
import sys, pathlib
from ralphloop.journal.journal import Journal
with Journal.open(pathlib.Path(sys.argv[1]), check=False) as journal:
    print(journal.meta("written"))
"""


def look(path: Path) -> str:
    """What another process sees; it opens and closes the journal for writing."""
    done = subprocess.run(
        [sys.executable, "-c", LOOK, str(path)], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def test_a_second_connection_does_not_take_the_locks_of_the_first(tmp_path: Path) -> None:
    """Opening and closing a reader beside the writer leaves the writer's log to the writer."""
    path = tmp_path / "journal.db"
    with Journal.open(path) as journal:
        for number in range(1, 6):
            JournalReader.open(path).close()
            look(path)
            journal.set_meta("written", number)
            assert look(path) == str(number)
