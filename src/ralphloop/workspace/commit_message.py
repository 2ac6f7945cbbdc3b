"""The message of a story's commit: one line for people, trailers for finding it again.

Story ids and titles are free text; here they become one bounded line without control characters, so
that no title can start a second paragraph or fake a trailer.
"""

from __future__ import annotations

import re

MAX_SUBJECT = 120
_MAX_TRAILER = 200
# Control characters, line and paragraph separators, and marks that change reading direction.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u2028\u2029\u200e\u200f\u202a-\u202e\u2066-\u2069\ud800-\udfff]+"
)


def story_message(story_id: str, title: str, *, run: str, iteration: int, grade: str) -> str:
    """Subject `<story id>: <title>` and the trailers that name run, iteration, story, grade."""
    trailers = {
        "Ralph-Run": run,
        "Ralph-Iteration": iteration_mark(run, iteration),
        "Ralph-Story": story_id,
        "Ralph-Grade": grade,
    }
    return with_trailers(f"{story_id}: {title}" if title.strip() else story_id, trailers)


def with_trailers(subject: str, trailers: dict[str, str]) -> str:
    """A message of one line and trailers."""
    lines = [f"{name}: {one_line(value, _MAX_TRAILER)}" for name, value in trailers.items()]
    return f"{one_line(subject, MAX_SUBJECT) or 'work'}\n\n" + "\n".join(lines) + "\n"


def iteration_mark(run: str, iteration: int) -> str:
    """What tells the commit of one iteration from every other."""
    return one_line(f"{run}/{iteration}", _MAX_TRAILER)


def one_line(text: str, limit: int) -> str:
    """Text as one bounded line that cannot do anything but be read."""
    line = " ".join(_UNSAFE.sub(" ", text).split())
    return line if len(line) <= limit else f"{line[: limit - 1].rstrip()}…"
