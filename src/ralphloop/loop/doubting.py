"""What speaks against a green story beside its tests, and who else may doubt it.

Scripts that a check or the story's own command runs are guarded by their paths: whether they were
made easier cannot be found out by running them.  Work that only exists outside the commit is named,
unless the story's own command asks for just that.

`checks.doubt` are commands that get the story, its criteria and the change on their input.  Exit
code 1 with words is a finding like any other; everything else, a crash and a time-out included, is
no obstacle.  None of them can raise a grade.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial

import msgspec

from ralphloop.core.grading import DOUBT
from ralphloop.core.model import CheckStatus, Evidence
from ralphloop.core.needs import VERIFY
from ralphloop.core.story_state import verify_was
from ralphloop.loop.begin import Begun
from ralphloop.loop.runner import Runner
from ralphloop.proc.steps import Steps, aside
from ralphloop.repo.own_files import project_prefix
from ralphloop.repo.snapshot import Change, Snapshot
from ralphloop.text.plain import one_line, some

_LONGEST_DIFF = 400_000
_LONGEST_WORDS = 2_000
_LARGEST_SCRIPT = 256 * 1024


def beside_the_tests(
    runner: Runner, begun: Begun, after: Snapshot, evidence: Evidence
) -> Iterator[str]:
    """What the agent has to answer for that no test shows, in words."""
    from ralphloop.repo.runners import changed_scripts

    measure, repo, root = runner.measure, runner.setup.repo, runner.setup.project.root
    start = measure.known(begun.story_began)
    changes = measure.changes(start.tree, after.tree)
    prefix = project_prefix(repo.root, root) if repo else ""
    commands = [*runner.session.frozen.checks, *runner.config.checks.doubt]
    commands += [begun.story.verify] if begun.story and begun.story.verify else []

    def text(tree: str, path: str) -> str:
        ended = measure.git().attempt("cat-file", "blob", f"{tree}:{prefix}{path}")
        found = ended.stdout[:_LARGEST_SCRIPT] if ended.returncode == 0 else b""
        return found.decode("utf-8", "replace")

    old, new = (cache(partial(text, tree)) for tree in (start.tree, after.tree))
    for argv in dict.fromkeys(commands) if changes else ():
        yield from changed_scripts(argv, old, new)
    yield from _outside(runner, begun, evidence, changes)


def _outside(
    runner: Runner, begun: Begun, evidence: Evidence, changes: Sequence[Change]
) -> Iterator[str]:
    """Work that the checks saw and a commit will not hold."""
    repo, run = runner.setup.repo, runner.journal.find_run(runner.run)
    if repo is None or run is None or _asks_for_it(begun, evidence):
        return
    from ralphloop.repo.outside import excludes_changed, hidden, ignored_since, newly_imported

    if unseen := hidden(repo, [change.path for change in changes]):
        words = "is changed, but git was told not to look: no commit will hold it"
        yield f"{some(unseen)} {words}"
    if excludes_changed(repo, run.started_at):
        yield ".git/info/exclude was changed: what it hides is in no commit"
    took = sum(check.duration_s for check in evidence.checks or ())
    until = time.time() - took - 1  # what the checks wrote themselves is not meant
    ignored = ignored_since(repo, run.started_at, until, runner.measure.own)
    if ignored and evidence.comparison.turned_green:
        words = "a check turned green, and files that git ignores were written for it"
        yield f"{words}: {some(ignored)}"
    elif ignored:
        texts = runner.measure.sides(changes)
        sides = [
            (texts.get(it.before or "", b""), texts.get(it.after or "", b"")) for it in changes
        ]
        if needed := newly_imported(ignored, sides):
            yield f"imported from files that git ignores, no commit will hold them: {some(needed)}"


def _asks_for_it(begun: Begun, evidence: Evidence) -> bool:
    """Its own command was red and is green: then that is what the story is about."""
    now = next((it.status for it in evidence.checks or () if it.name == VERIFY), None)
    was = verify_was(begun.state, begun.story) if begun.story else None
    return (was, now) == (CheckStatus.FAILED, CheckStatus.PASSED)


# --- a second opinion ------------------------------------------------------------------------


def opinions(runner: Runner, begun: Begun, after: Snapshot) -> Steps[tuple[str, ...]]:
    """What each command that may doubt has to say, if anything."""
    from ralphloop.repo.checks import check_of

    story, said = begun.story, []
    if story is None:
        return ()
    start = runner.measure.known(begun.story_began)
    args = ("diff-tree", "-r", "-p", "--no-ext-diff", "--no-textconv", start.tree, after.tree)
    diff = runner.measure.git().attempt(*args).stdout[:_LONGEST_DIFF].decode("utf-8", "replace")
    given = {
        "v": 1,
        "story": {"id": story.id, "title": story.title, "description": story.description},
        "criteria": story.criteria,
        "diff": diff,
    }
    for argv in runner.config.checks.doubt:
        words = yield from aside(partial(_asked, runner, argv, msgspec.json.encode(given)))
        if words:
            said.append(f"{DOUBT}{check_of(argv).name}: {words}")
    return tuple(said)


def _asked(runner: Runner, argv: tuple[str, ...], given: bytes, gone: Callable[[], bool]) -> str:
    """Its words where it doubts; a doubter that cannot be run has none."""
    from ralphloop.redaction import redact, secret_values
    from ralphloop.repo.checks import check_of, run_confined

    left = runner.patience.left() if runner.patience else runner.config.checks.timeout
    # An agent may have written what it runs.
    check = check_of(argv, min(left, runner.config.checks.timeout), runner.setup.check_box)
    ended = run_confined(
        check,
        runner.setup.project.root,
        stdin=given,
        keep=_LONGEST_WORDS * 4,
        stop=lambda: gone() or runner.stop.requested,
    )
    words = redact(ended.stdout.decode("utf-8", "replace"), secret_values(os.environ))
    doubts = ended.returncode == 1 and not ended.timed_out and not ended.stopped
    return one_line(words, _LONGEST_WORDS) if doubts else ""
