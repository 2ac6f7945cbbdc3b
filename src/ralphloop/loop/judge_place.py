"""Where a story is judged: in a clean tree, where one can be made ready, else where it was made.

A clean tree holds what a fresh clone would, and nothing that an agent left beside it: files that
git ignores, settings of git, half a build.  What is green only with these is not done.  Where none
can be made ready, the checks run in place, and that is said once.
"""

import time
from typing import TYPE_CHECKING, NamedTuple, Protocol

from msgspec.structs import replace

from ralphloop.core.grading import VERIFY
from ralphloop.core.model import CheckResult, CheckStatus
from ralphloop.text.plain import some

if TYPE_CHECKING:
    from collections.abc import Sequence

    from ralphloop.loop.run import Run
    from ralphloop.loop.workspace import Workspace
    from ralphloop.repo.snapshot import Snapshot

IN_PLACE = "checks run in your checkout, not in a clean copy of it"
_HOW_TO = "[lanes] copy and setup say what a copy needs: docs/guides/proof.md"


class CleanTree(Protocol):
    """A tree in which is judged what was made elsewhere; no agent ever writes in it."""

    why_not: str  # it is not used, in words; empty where it is, as far as anybody knows

    async def open(self, run: "Run") -> "Workspace | None":
        """The place, made ready; None where that cannot be done (`why_not`)."""

    async def lay(self, run: "Run", moment: "Snapshot") -> "Workspace | None":
        """The place with the files of that moment; None where they cannot be laid there."""

    def give_up(self, why: str) -> None:
        """Judge in place from now on, for this reason."""

    def close(self) -> None:
        """Leave nothing behind that only this run needs."""


class BaselineRun(NamedTuple):
    """What the checks showed before any work, and where."""

    results: tuple[CheckResult, ...]
    place: "Workspace"
    said: tuple[str, ...] = ()


async def run_baseline(
    run: "Run", workspace: "Workspace", commands: "Sequence[Sequence[str]]"
) -> BaselineRun:
    """Run the checks before any work; a clean tree is ready where they are as green as here."""
    tree = workspace.clean_tree
    place = await tree.open(run) if tree else None
    if tree is None or place is None:
        said = (in_place_words(tree),) if tree else ()
        return BaselineRun(await workspace.run_checks(run, commands), workspace, said)
    there = await place.run_checks(run, commands)
    doubtful = [it.name for it in there if it.status is not CheckStatus.PASSED]
    if not doubtful or run.stop.requested:
        return BaselineRun(there, place)
    here = await workspace.run_checks(run, commands)
    green_here = {it.name for it in here if it.status is CheckStatus.PASSED}
    if worse := [name for name in doubtful if name in green_here]:
        tree.give_up(f"{some(worse)} is green here, and not in a copy of what git has")
        return BaselineRun(here, workspace, (in_place_words(tree),))
    return BaselineRun(there, place)


def in_place_words(tree: CleanTree) -> str:
    """That and why the checks run in place, and what would change it."""
    return f"{IN_PLACE}: {tree.why_not} ({_HOW_TO})"


class JudgedChecks(NamedTuple):
    """Results of the checks, and where they were run."""

    checks: tuple[CheckResult, ...]
    place: "Workspace"


async def run_judging_checks(
    run: "Run",
    workspace: "Workspace",
    moment: "Snapshot",
    commands: "Sequence[Sequence[str]]",
    verify: "Sequence[str] | None",
    *,
    changed: bool,
) -> JudgedChecks:
    """Run the checks on what a commit of that moment would hold.

    `changed`: something that can be committed differs; otherwise the work is where it was made.
    """
    place = await place_for(run, workspace, moment) if changed else workspace
    checks = await place.run_checks(run, commands, verify=verify)
    red = [it for it in checks if it.status is CheckStatus.FAILED]
    if place is workspace or not red or run.stop.requested:
        return JudgedChecks(checks, place)
    return await _compare_with_here(run, workspace, place, commands, verify, checks)


async def place_for(run: "Run", workspace: "Workspace", moment: "Snapshot") -> "Workspace":
    """The clean tree with the files of that moment; the place itself where there is none."""
    tree = workspace.clean_tree
    is_used = tree is not None and run.session.baseline.in_clean_tree and not tree.why_not
    if tree is None or not is_used:
        return workspace
    place = await tree.lay(run, moment)
    if place is None and tree.why_not:
        run.tell(f"warning: {in_place_words(tree)}")
    return place or workspace


async def _compare_with_here(
    run: "Run",
    workspace: "Workspace",
    place: "Workspace",
    commands: "Sequence[Sequence[str]]",
    verify: "Sequence[str] | None",
    there: tuple[CheckResult, ...],
) -> JudgedChecks:
    """Find out whether what is red in a clean tree is green with what only lies here.

    What an agent wrote into files that git ignores is named, and does not count; its own command
    may ask for just that.  Where nobody wrote any, the clean tree lacks something, and is given up.
    """
    from ralphloop.repo.outside import ignored_since

    tree = workspace.clean_tree
    began = run.journal.find_run(run.id)
    if tree is None or workspace.repo is None or began is None:
        return JudgedChecks(there, place)
    ignored = ignored_since(workspace.repo, began.started_at, time.time(), workspace.own)
    here = await workspace.run_checks(run, commands, verify=verify)
    if len(here) < len(there):
        return JudgedChecks(there, place)
    both = list(zip(there, here, strict=False))
    only_here = [
        it.name
        for it, mine in both
        if it.status is CheckStatus.FAILED and mine.status is CheckStatus.PASSED
    ]
    if not only_here:
        return JudgedChecks(there, place)
    if VERIFY in only_here:  # whatever is missing there, it was red without the story, too
        here = tuple(replace(it, needs_ignored=it.name == VERIFY) for it in here)
        both = list(zip(there, here, strict=False))
    if not ignored:
        tree.give_up(f"{some(only_here)} is green here, and not in a copy of what git has")
        run.tell(f"warning: {in_place_words(tree)}")
        return JudgedChecks(here, workspace)
    if only_here == [VERIFY]:
        checks = tuple(mine if it.name == VERIFY else it for it, mine in both)
        return JudgedChecks(checks, place)
    words = f"is red in a fresh clone: git ignores {some(ignored)}"
    told = (
        f"This ran on what a commit would hold. In the work tree it is green, with files that git"
        f" ignores and no commit will hold: {some(ignored)}. Make it work without them, or have"
        " them committed.\n"
    )
    checks = tuple(
        replace(it, why=words, output_tail=f"{told}{it.output_tail}")
        if it.name in only_here
        else it
        for it in there
    )
    return JudgedChecks(checks, place)
