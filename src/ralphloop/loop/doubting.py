"""What speaks against a green story beside its tests; none of it can raise a grade.

Scripts that a check or a story's own command runs are guarded by their paths, since running them
cannot show whether they were made easier.  Work outside the commit is named, unless the story's own
command asks for just that.  Of the commands in `checks.doubt`, exit code 1 with words is a finding,
anything else, crashes included, no obstacle.
"""

import os
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from functools import cache, partial
from itertools import chain
from pathlib import PurePosixPath
from typing import NamedTuple

import msgspec

from ralphloop.core.grading import DOUBT, VERIFY
from ralphloop.core.model import CheckStatus, DoubterAsked, Evidence, Story, Usage
from ralphloop.core.run_state import verify_was
from ralphloop.core.sides import Side
from ralphloop.loop.before import results_before
from ralphloop.loop.begin import Round
from ralphloop.loop.run import Run
from ralphloop.loop.whose import judge_of, place_changes, text_in
from ralphloop.loop.workspace import Workspace
from ralphloop.proc.threads import in_thread
from ralphloop.repo.git import printable
from ralphloop.repo.judges import is_data, is_judging
from ralphloop.repo.named import file_of
from ralphloop.repo.snapshot import Change, Snapshot
from ralphloop.repo.work_tree import project_prefix
from ralphloop.text.diffs import diff_parts
from ralphloop.text.plain import one_line, some

_LONGEST_DIFF = 400_000  # characters of a change that a doubter is given at a time
_MOST_PARTS = 25
_LONGEST_WORDS = 2_000


def beside_the_tests(
    run: Run, workspace: Workspace, begun: Round, after: Snapshot, evidence: Evidence
) -> Iterator[str]:
    """What the agent has to answer for that no test shows, in words."""
    from ralphloop.repo.runners import changed_scripts

    measure = workspace.measure
    repo = workspace.repo
    root = workspace.project.root
    start = measure.known(begun.story_began)
    changes = measure.changes(start.tree, after.tree)
    prefix = project_prefix(repo.root, root) if repo else ""
    commands = [*run.session.baseline.checks, *run.config.checks.doubt]
    # Those of stories to come as well: who works on this one must not make them easier.
    open_stories = [it for it in begun.stories.stories if not it.passes] if begun.stories else []
    commands += [it.verify for it in (begun.story, *open_stories) if it and it.verify]

    old = cache(partial(text_in, measure, start.tree, prefix))
    new = cache(partial(text_in, measure, after.tree, prefix))
    for argv in dict.fromkeys(commands) if changes else ():
        yield from changed_scripts(argv, old, new)
    paths = {change.path for change in changes if change.before is not None}
    others = [it for it in open_stories if begun.story is None or it.id != begun.story.id]
    if paths:
        yield from _judges_of_others(run, workspace, start, prefix, paths, others)
    installed = _installed(workspace, begun.before, changes)
    if installed:
        hold, them = ("holds", "it") if len(installed) == 1 else ("hold", "them")
        yield (
            f"{some(installed)} {hold} installed packages, and git does not ignore {them}: a commit"
            f" would hold all of {them}"
        )
    links = _links_out(workspace, start, after)
    if away := [it for it in links if not it.startswith(tuple(f"{one}/" for one in installed))]:
        yield f"{some(away)} leads out of the repository: no commit will hold what is there"
    for word in _words_of_filters(run.session.baseline.filters or ()):
        if os.path.normpath(word) in paths:
            yield f"{word}, a filter through which git commits files, was changed"
    yield from _outside(run, workspace, begun, evidence, changes)


def _judges_of_others(
    run: Run,
    workspace: Workspace,
    start: Snapshot,
    prefix: str,
    changed: Collection[str],
    others: Iterable[Story],
) -> Iterator[str]:
    """What was there, was changed, and will judge another story.

    Tests that the checks run are no matter of this: they are tried themselves.
    """
    measure = workspace.measure
    before = results_before(run, workspace, start.tree).results.values()
    reports = [result.report for result in before if result.report is not None]
    tried = {file_of(name) for report in reports for name in chain(report.passed, report.failed)}
    for story in others:
        if not story.verify:
            continue
        judge = judge_of(measure, start.tree, prefix, story.verify)
        behind = {f"{prefix}{path}" for path in judge.files if is_judging(path) or is_data(path)}
        found = sorted(behind.intersection(changed))
        changes = [Change(path=path, before="?", after="?") for path in found]
        sides = place_changes(measure, start.tree, prefix, judge, changes)
        for path in found:
            is_tried = path.removeprefix(prefix) in tried
            if sides[path] is Side.PERSON and not is_tried:
                yield f"{printable(path)}, by which {story.id} will be judged, was changed"


def _installed(workspace: Workspace, before: Snapshot, changes: Iterable[Change]) -> list[str]:
    """New directories that a package manager filled, for a commit as far as git knows."""
    repo = workspace.repo
    found = dict[str, None]()
    for change in changes:
        path = PurePosixPath(change.path)
        if change.before is not None:
            continue
        if path.name == "pyvenv.cfg" and path.parent.name:
            found[path.parent.as_posix()] = None
        elif _MODULES in path.parts[:-1]:
            end = path.parts.index(_MODULES) + 1
            found["/".join(path.parts[:end])] = None
    if repo is None or not found:
        return []
    asked = ("cat-file", "-e")
    head = before.head or "HEAD"
    was_there = (repo.git.attempt(*asked, f"{head}:{it}").returncode == 0 for it in found)
    return [printable(it) for it, is_known in zip(found, was_there, strict=True) if not is_known]


_LINK = "120000"  # the mode of a link
_MODULES = "node_modules"


def _links_out(workspace: Workspace, start: Snapshot, after: Snapshot) -> list[str]:
    """Links that the story made or changed, and that lead out of the repository."""
    measure = workspace.measure
    made = {
        path: change.after.content
        for path, change in measure.entries_changed(start.tree, after.tree).items()
        if change.after is not None and change.after.mode == _LINK
    }
    targets = measure.contents(made.values())
    found = []
    for path, name in made.items():
        target = os.fsdecode(targets.get(name, b""))
        place = os.path.normpath(os.path.join(os.path.dirname(path), target))  # noqa: PTH118, PTH120
        if target.startswith("/") or place.startswith(".."):
            found.append(printable(path))
    return found


def _words_of_filters(filters: Iterable[str]) -> Iterator[str]:
    """The words of the commands that make of a file what is committed."""
    for setting in filters:
        key, _, command = setting.partition("\n")
        if key.endswith((".clean", ".process")):
            yield from command.split()


def _outside(
    run: Run, workspace: Workspace, begun: Round, evidence: Evidence, changes: Sequence[Change]
) -> Iterator[str]:
    """Work that the checks saw and a commit will not hold."""
    repo = workspace.repo
    begun_run = run.journal.find_run(run.id)
    now = next((it.status for it in evidence.checks or () if it.name == VERIFY), None)
    was = verify_was(begun.state, begun.story) if begun.story else None
    # Its own command was red and is green: what was ignored before may be what it asks for.
    asked_for = (was, now) == (CheckStatus.FAILED, CheckStatus.PASSED)
    if repo is None or begun_run is None:
        return
    from ralphloop.repo.outside import (
        excludes_changed,
        hidden,
        ignored_since,
        newly_ignored,
        newly_imported,
    )

    if unseen := hidden(repo, [change.path for change in changes]):
        words = "is changed, but git was told not to look: no commit will hold it"
        yield f"{some(unseen)} {words}"
    if excludes_changed(repo, begun_run.started_at):
        yield ".git/info/exclude was changed: what it hides is in no commit"
    took = sum(check.duration_s for check in evidence.checks or ())
    until = time.time() - took - 1  # what the checks wrote themselves is not meant
    ignored = ignored_since(repo, begun_run.started_at, until, workspace.measure.own)
    if asked_for:
        start = workspace.measure.known(begun.story_began).tree
        away = newly_ignored(repo, workspace.measure, start, ignored, begun_run.started_at)
        if away:
            yield f"ignored by git only since this story, no commit will hold them: {some(away)}"
    elif ignored and evidence.comparison.turned_green:
        words = "a check turned green, and files that git ignores were written for it"
        yield f"{words}: {some(ignored)}"
    elif ignored:
        texts = workspace.measure.sides(changes)
        sides = [
            (texts.get(it.before or "", b""), texts.get(it.after or "", b"")) for it in changes
        ]
        if needed := newly_imported(ignored, sides):
            yield f"imported from files that git ignores, no commit will hold them: {some(needed)}"


class Opinions(NamedTuple):
    """What those who may doubt have said, and what agents among them used."""

    said: tuple[str, ...] = ()
    doubters: tuple[DoubterAsked, ...] = ()

    @property
    def usage(self) -> Usage:
        """By all of them together."""
        return sum((one.usage for one in self.doubters), Usage())


async def opinions(
    run: Run, workspace: Workspace, begun: Round, after: Snapshot, spent: Usage
) -> Opinions:
    """What each doubter, a command or an agent, has to say; one that cannot be run says nothing.

    `spent` is what the start has used that is judged: an agent is asked with what is left then.
    """
    from ralphloop.loop.prepare import is_reviewer
    from ralphloop.loop.reviewing import ReviewedPart, review
    from ralphloop.redaction import redact, secret_values
    from ralphloop.repo.checks import check_of, run_confined

    story = begun.story
    said = []
    timeout = run.config.checks.timeout
    if story is None:
        return Opinions()
    start = workspace.measure.known(begun.story_began)
    # As text whatever the repository says of its files: attributes are the agent's to write.
    args = ("diff-tree", "-r", "-p", "--text", "--no-ext-diff", "--no-textconv")
    shown = workspace.measure.git().attempt(*args, start.tree, after.tree)
    parts = diff_parts(shown.stdout.decode("utf-8", "replace"), _LONGEST_DIFF)
    given = {
        "v": 1,
        "story": {"id": story.id, "title": story.title, "description": story.description},
        "criteria": story.criteria,
        "parts": len(parts),
    }

    def asked(argv: tuple[str, ...], part: int, gone: Callable[[], bool]) -> str:
        left = run.patience.left() if run.patience else timeout
        ended = run_confined(  # an agent may have written what it runs
            check_of(argv, min(left, timeout), workspace.check_box, lane=workspace.seat),
            workspace.project.root,
            stdin=msgspec.json.encode({**given, "part": part, "diff": parts[part - 1]}),
            keep=_LONGEST_WORDS * 4,
            stop=lambda: gone() or run.stop.requested,
        )
        words = redact(ended.stdout.decode("utf-8", "replace"), secret_values(os.environ))
        doubts = ended.returncode == 1 and not ended.timed_out and not ended.stopped
        return one_line(words, _LONGEST_WORDS) if doubts else ""

    doubters = []
    agents = dict(
        zip(filter(is_reviewer, run.config.checks.doubt), run.setup.reviewers, strict=True)
    )
    for argv in run.config.checks.doubt:
        name = check_of(argv).name
        used = Usage()
        words = ""
        unheard = ""
        for part in range(1, min(len(parts), _MOST_PARTS) + 1):
            if argv in agents:
                which = f" (part {part} of {len(parts)})" if len(parts) > 1 else ""
                asked_about = ReviewedPart(diff=parts[part - 1], which=which)
                told = await review(run, workspace, begun, agents[argv], asked_about, spent)
                used = used + told.usage
                spent = spent + told.usage
                words = told.words
                unheard = told.unheard or unheard
            else:
                words = await in_thread(partial(asked, argv, part))
            if words:
                said.append(f"{DOUBT}{name}: {words}")
                break  # one doubt is enough
        asked_one = DoubterAsked(name=name, doubted=bool(words), unheard=unheard, usage=used)
        doubters.append(asked_one)
    if run.config.checks.doubt and (shown.returncode or len(parts) > _MOST_PARTS):
        size = f"{len(shown.stdout) / 1_000_000:.1f} MB"
        said.append(f"{DOUBT}the change ({size}) is too large to be shown to a doubter whole")
    return Opinions(tuple(said), tuple(doubters))
