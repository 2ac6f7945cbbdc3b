"""Running `git commit` once and understanding how it ended.

Exit code and words do not tell a refusing hook from a signing failure for sure, so git itself is
asked to keep a record (trace2): which hooks it started and how each ended.  There is no terminal
and no input, so a passphrase prompt cannot wait for anybody; a deadline catches what hangs anyway.

The message of a story's commit: one line for people, trailers for finding it again.  Story ids and
titles are free text; here they become one bounded line without control characters, so that no title
can start a second paragraph or fake a trailer.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from pathlib import Path
from typing import NamedTuple

import msgspec

from ralphloop.proc.run import Ended
from ralphloop.repo.git import PATHSPECS_ON_STDIN, literal_pathspecs
from ralphloop.repo.work_tree import Repository

_MAX_SAID = 4_000


class CommitRun(NamedTuple):
    """How one `git commit` ended."""

    committed: bool
    said: str = ""  # both outputs, their end, without secrets
    failed_hook: str = ""  # name of the hook that said no, or hung
    timed_out: bool = False
    signing_failed: bool = False


class _Event(msgspec.Struct):
    """The few fields of a trace2 event that matter here."""

    event: str
    sid: str = ""
    child_id: int = -1
    child_class: str = ""
    hook_name: str = ""
    code: int = 0


def run_commit(
    repo: Repository, message: str, only: Collection[str], timeout_s: float
) -> CommitRun:
    """Commit the index, or only some paths of it, with the user's hooks and signing."""
    import tempfile

    before = repo.head()
    with tempfile.TemporaryDirectory(prefix="ralph-") as place:
        trace = Path(place) / "trace"
        ended = _commit(repo, message, only, timeout_s, trace)
        hook = _failed_hook(trace)
    if ended.returncode == 0 and not ended.timed_out:
        return CommitRun(committed=True)
    if repo.head() != before:
        return CommitRun(committed=True)  # done; only what comes after a commit went wrong
    said = _said(ended)
    gave_up = ended.timed_out or b"failed to write commit object" in ended.stderr
    if ended.timed_out:
        said = f"{said}\nit did not finish within {timeout_s:g} s".strip()
    return CommitRun(
        committed=False,
        said=said,
        failed_hook=hook,
        timed_out=ended.timed_out,
        signing_failed=gave_up and not hook and repo.signs_commits(),
    )


def _commit(
    repo: Repository, message: str, only: Collection[str], timeout_s: float, trace: Path
) -> Ended:
    # Hooks are the user's programs: they get the user's language back, but messages stay English.
    env = {"LC_ALL": "C.UTF-8", "GIT_TRACE2_EVENT": str(trace)}
    git = repo.git.writing().adapted(env=env)
    args = ["commit", "--cleanup=whitespace", f"--message={message}"]
    if only:
        args += ["--only", *PATHSPECS_ON_STDIN]
    stdin = literal_pathspecs(only) if only else b""
    return git.attempt(*args, stdin=stdin, timeout_s=timeout_s)


def _failed_hook(trace: Path) -> str:
    """The hook that ended badly or never ended, by git's own record."""
    running: dict[int, str] = {}
    for event in _events(trace):
        if event.event == "child_start" and event.child_class == "hook":
            running[event.child_id] = event.hook_name
        elif event.event == "child_exit":
            name = running.pop(event.child_id, "")
            if name and event.code != 0 and not name.startswith("post-"):
                return name
    return next((name for name in running.values() if not name.startswith("post-")), "")


def _events(trace: Path) -> list[_Event]:
    try:
        lines = trace.read_bytes().splitlines()
    except OSError:
        return []
    decoder = msgspec.json.Decoder(_Event)
    events = []
    for line in lines:
        try:
            event = decoder.decode(line)
        except msgspec.DecodeError:
            continue  # the last line of a git that was killed
        if "/" not in event.sid:  # not a git that a hook started
            events.append(event)
    return events


def _said(ended: Ended) -> str:
    from ralphloop.redaction import redact
    from ralphloop.repo.check_output import plain_text

    text = redact(plain_text(ended.stderr + b"\n" + ended.stdout)).strip()
    return text if len(text) <= _MAX_SAID else f"…{text[-_MAX_SAID:]}"


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
