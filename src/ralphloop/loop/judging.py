"""From an agent that has ended to a decision that is written down.

What learning makes of it decides nothing and ends no run.  Beside its tests these speak against a
green story, and none can raise a grade: scripts that a check or the story's own command runs are
guarded by their paths, since running them cannot show whether they were made easier; work outside
the commit is named, unless the story's own command asks for just that; and of the commands in
`checks.doubt`, exit code 1 with words is a finding, anything else, crashes included, no obstacle.
"""

import os
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from functools import cache, partial

import msgspec

from ralphloop.core.events import IterationFinished, StoryBlocked, StorySetAside
from ralphloop.core.grading import DOUBT, VERIFY
from ralphloop.core.iteration import Result
from ralphloop.core.model import CheckStatus, Evidence, Outcome, StoryList, Value
from ralphloop.core.planning import facts_of
from ralphloop.core.progress import footprint, is_trodden
from ralphloop.core.proof import Trial
from ralphloop.core.run_state import RunState, Standing, verify_was
from ralphloop.core.step import Need, Step, needs, step
from ralphloop.errors import RalphError
from ralphloop.journal.queries import QUOTA_KEY
from ralphloop.journal.records import FinishedIteration
from ralphloop.loop import repair
from ralphloop.loop.before import results_before, results_to_keep
from ralphloop.loop.begin import Round
from ralphloop.loop.effects import take_back, tell_taken_back
from ralphloop.loop.prepare import GONE, at_work
from ralphloop.loop.runner import Runner
from ralphloop.loop.steadily import steadily
from ralphloop.proc.steps import Steps, aside
from ralphloop.repo.snapshot import Change, Snapshot
from ralphloop.repo.work_tree import project_prefix
from ralphloop.text.diffs import diff_parts
from ralphloop.text.plain import one_line, some

_LONGEST_DIFF = 400_000  # characters of a change that a doubter is given at a time
_MOST_PARTS = 25
_LONGEST_WORDS = 2_000
_LARGEST_SCRIPT = 256 * 1024
_LOOKED_BACK = 20  # iterations
_WAITING = {Standing.SET_ASIDE: StorySetAside, Standing.BLOCKED: StoryBlocked}


class Measurement(Value, kw_only=True):
    """The work tree and the story list after the agent ended."""

    after: Snapshot
    evidence: Evidence  # as far as it is known without running anything
    stories: StoryList | None  # as the list is now, claims put back
    doubts: tuple[str, ...] = ()  # what was taken away or was not its to change, in words


class Repaired(msgspec.Struct):
    """What an agent broke that is not its own, as far as it is put right; None: not yet."""

    number: int  # of the iteration
    elsewhere: str | None = None
    meddled: tuple[str, ...] | None = None
    listed: repair.ListAfter | None = None
    gone: dict[str, str] | None = None


class Judgement(Value, kw_only=True):
    begun: Round
    result: Result
    measured: Measurement
    evidence: Evidence  # with everything that was found out
    before: RunState  # the state the step was taken from
    step: Step

    @property
    def cut_short(self) -> bool:
        """Not all checks could be run: nothing of this may be written down."""
        return self.step.iteration.evidence.checks_cut


def judge(
    runner: Runner,
    begun: Round,
    result: Result,
    look: Callable[[], Measurement] | None = None,
) -> Steps[Judgement]:
    """Find out what the step needs and take it; begun again where git was not left in peace."""

    look = look or partial(_measured, runner, begun)
    is_first = True

    def judged() -> Steps[Judgement]:
        nonlocal is_first
        if not (is_first or runner.lane):  # no experiment is ever made in a lane
            runner.restored()
        is_first = False
        return (yield from _judge(runner, begun, result, look))

    return (yield from steadily(runner, judged))


def _judge(
    runner: Runner, begun: Round, result: Result, look: Callable[[], Measurement]
) -> Steps[Judgement]:
    measured, start, policy = look(), begun.start, runner.policy
    evidence, state, disturbed = measured.evidence, runner.session.state, ""
    while need := needs(state, start, result, evidence, policy):
        found: dict[str, object] = {}
        if need is Need.CHECKS:
            found = yield from _checked(runner, begun)
        elif need is Need.DOUBTS:
            doubts = (*measured.doubts, *beside_the_tests(runner, begun, measured.after, evidence))
            found = {
                "doubts": tuple(dict.fromkeys(doubts)),
                "work": _known_by(runner, begun, measured.after),
                "hollow": _is_hollow(runner, begun, measured.after),
            }
        elif need is Need.OPINIONS:
            found = {"opinions": (yield from opinions(runner, begun, measured.after))}
        elif disturbed:
            found = {"trial": Trial(untried=(f"not tried again: {disturbed}",))}
        else:
            from ralphloop.loop.trying import tried

            evidence, disturbed = yield from tried(runner, begun, measured.after, evidence)
            if disturbed:  # what was checked is there no more: look at all again
                runner.remarks = (*measured.evidence.remarks, disturbed)
                measured = look()
                evidence = measured.evidence
        evidence = msgspec.structs.replace(evidence, **found)
    now, mine = runner.clock(), begun.worker.clocks[result.response.outcome is Outcome.FATAL]
    others = [one for one in runner.setup.workers if mine not in one.clocks]
    only, states = runner.setup.options.only, runner.session.stories
    stories = runner.as_known(measured.stories) if runner.lane else measured.stories
    evidence = msgspec.structs.replace(
        evidence,
        stories=facts_of(stories, states, begun.story, only=only),
        used=runner.totals(),
        fallback=at_work(others, runner.session.quota, now) is not None,
        left_tree=_left(runner, evidence),
        at=now,
    )
    state = runner.session.state  # a person may have been heard meanwhile
    return Judgement(
        begun=begun,
        result=result,
        measured=measured,
        evidence=evidence,
        before=state,
        step=step(state, start, result, evidence, policy),
    )


def _known_by(runner: Runner, begun: Round, after: Snapshot) -> str:
    """What the story's own change is known by, wherever it stands."""
    from ralphloop.repo.story_change import id_of_change

    measure = runner.measure
    return id_of_change(measure.git(), measure.known(begun.story_began).tree, after.tree)


def _left(runner: Runner, evidence: Evidence) -> str:
    """The work tree after the checks, which may have written into it; empty where none ran."""
    if not evidence.checks:
        return ""
    return evidence.checked_tree or runner.tree().tree


def _measured(runner: Runner, begun: Round) -> Measurement:
    """What is different now that the agent has ended, and what it broke that is not its own."""
    number, before = begun.number, begun.before
    repair.put_back_own_files(runner)
    # What is put right is found once: git may be killed before all of it is measured.
    repaired = runner.repaired
    if repaired is None or repaired.number != number:
        repaired = runner.repaired = Repaired(number)
    if repaired.elsewhere is None:
        elsewhere = repair.back_on_the_branch(runner, number, before, begun.list_bytes)
        repaired.elsewhere = elsewhere
    if repaired.meddled is None:
        repaired.meddled = repair.put_back_settings(runner, number, begun.settings)
    if repaired.listed is None:
        listed = repair.read_back(runner, begun.stories, begun.list_bytes, begun.state.asked)
        repaired.listed = listed
    elsewhere, meddled, listed = repaired.elsewhere, repaired.meddled, repaired.listed
    runner.seen = None
    after = runner.tree()
    runner.expected_head = after.head or ""  # if it moves, somebody else moved it
    lost = repair.lost_heads(runner, number, begun.state, before, after)
    if repaired.gone is None:  # a lane holds no landed work
        repaired.gone = take_back(runner) if lost and not runner.lane else {}
        tell_taken_back(runner, number, repaired.gone)
    gone = repaired.gone
    unfinished = repair.left_open(runner) or elsewhere or runner.left_lane()
    remarks = runner.remarks
    changed, work_files = runner.measure.diff(before, after)
    commits, subjects = runner.measure.commits(before.head, after.head)
    hidden = repair.stashed(runner, begun.stashes)
    said = (*listed.findings, *meddled, *remarks, *lost.values(), unfinished, hidden)
    evidence = Evidence(
        files_changed=changed.count,
        commits=commits,
        tree=after.tree,
        head=after.head or "",
        work_files=work_files,
        changed=msgspec.structs.replace(changed, subjects=subjects),
        remarks=tuple(filter(None, said)),
        unfinished=unfinished,
        passes_set=begun.story is not None and listed.marks.get(begun.story.id) is False,
        asked=listed.asked,
        lost=lost,
    )
    if runner.lane:  # what costs more is found out where it lands
        evidence = msgspec.structs.replace(evidence, doubts=(), trial=Trial(), opinions=())
    window = runner.policy.treading_window
    trail = (*begun.state.trail, footprint(before.tree, evidence))[-window:]
    if 0 < window <= len(trail) and is_trodden(trail):  # the story may tread water
        net_lines = runner.measure.net_lines(trail[0].tree, after.tree)
        evidence = msgspec.structs.replace(evidence, net_lines=net_lines)
    stories = listed.stories.with_passes(dict.fromkeys(gone, False)) if listed.stories else None
    doubts = (*lost.values(), *meddled, *listed.doubts)
    runner.repaired, runner.remarks = None, ()
    return Measurement(after=after, evidence=evidence, stories=stories, doubts=doubts)


def _checked(runner: Runner, begun: Round) -> Steps[dict[str, object]]:
    from ralphloop.repo.checks import compare

    runner.seen = None  # checks leave files behind
    frozen, verify = runner.session.frozen, begun.story.verify if begun.story else None
    checks = yield from runner.run_checks(frozen.checks, verify=verify)
    wanted = len(frozen.checks) + (verify is not None)
    before = results_before(runner, begun.story_began.tree).results.values()
    return {
        "checks": checks,
        "checks_cut": runner.stop.requested and len(checks) < wanted,
        "comparison": compare(frozen.baseline, checks, runner.config.checks.baseline, before),
    }


def _is_hollow(runner: Runner, begun: Round, after: Snapshot) -> bool:
    """Whether all that the story did is to make files without content."""
    measure = runner.measure
    start = measure.known(begun.story_began)
    return measure.are_empty(measure.changes(start.tree, after.tree))


def beside_the_tests(
    runner: Runner, begun: Round, after: Snapshot, evidence: Evidence
) -> Iterator[str]:
    """What the agent has to answer for that no test shows, in words."""
    from ralphloop.repo.runners import changed_scripts

    measure, repo, root = runner.measure, runner.setup.repo, runner.setup.project.root
    start = measure.known(begun.story_began)
    changes = measure.changes(start.tree, after.tree)
    prefix = project_prefix(repo.root, root) if repo else ""
    commands = [*runner.session.frozen.checks, *runner.config.checks.doubt]
    # Those of stories to come as well: who works on this one must not make them easier.
    open_stories = [it for it in begun.stories.stories if not it.passes] if begun.stories else []
    commands += [it.verify for it in (begun.story, *open_stories) if it and it.verify]

    def text(tree: str, path: str) -> str:
        ended = measure.git().attempt("cat-file", "blob", f"{tree}:{prefix}{path}")
        found = ended.stdout[:_LARGEST_SCRIPT] if ended.returncode == 0 else b""
        return found.decode("utf-8", "replace")

    old, new = (cache(partial(text, tree)) for tree in (start.tree, after.tree))
    for argv in dict.fromkeys(commands) if changes else ():
        yield from changed_scripts(argv, old, new)
    paths = {change.path for change in changes if change.before is not None}
    for word in _words_of_filters(runner.session.frozen.filters or ()):
        if os.path.normpath(word) in paths:
            yield f"{word}, a filter through which git commits files, was changed"
    yield from _outside(runner, begun, evidence, changes)


def _words_of_filters(filters: Iterable[str]) -> Iterator[str]:
    """The words of the commands that make of a file what is committed."""
    for setting in filters:
        key, _, command = setting.partition("\n")
        if key.endswith((".clean", ".process")):
            yield from command.split()


def _outside(
    runner: Runner, begun: Round, evidence: Evidence, changes: Sequence[Change]
) -> Iterator[str]:
    """Work that the checks saw and a commit will not hold."""
    repo, run = runner.setup.repo, runner.journal.find_run(runner.run)
    now = next((it.status for it in evidence.checks or () if it.name == VERIFY), None)
    was = verify_was(begun.state, begun.story) if begun.story else None
    # Its own command was red and is green: what was ignored before may be what it asks for.
    asked_for = (was, now) == (CheckStatus.FAILED, CheckStatus.PASSED)
    if repo is None or run is None:
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
    if excludes_changed(repo, run.started_at):
        yield ".git/info/exclude was changed: what it hides is in no commit"
    took = sum(check.duration_s for check in evidence.checks or ())
    until = time.time() - took - 1  # what the checks wrote themselves is not meant
    ignored = ignored_since(repo, run.started_at, until, runner.measure.own)
    if asked_for:
        start = runner.measure.known(begun.story_began).tree
        if away := newly_ignored(repo, runner.measure, start, ignored, run.started_at):
            yield f"ignored by git only since this story, no commit will hold them: {some(away)}"
    elif ignored and evidence.comparison.turned_green:
        words = "a check turned green, and files that git ignores were written for it"
        yield f"{words}: {some(ignored)}"
    elif ignored:
        texts = runner.measure.sides(changes)
        sides = [
            (texts.get(it.before or "", b""), texts.get(it.after or "", b"")) for it in changes
        ]
        if needed := newly_imported(ignored, sides):
            yield f"imported from files that git ignores, no commit will hold them: {some(needed)}"


def opinions(runner: Runner, begun: Round, after: Snapshot) -> Steps[tuple[str, ...]]:
    """What each command that may doubt has to say; a doubter that cannot be run says nothing."""
    from ralphloop.redaction import redact, secret_values
    from ralphloop.repo.checks import check_of, run_confined

    story, said, timeout = begun.story, [], runner.config.checks.timeout
    if story is None:
        return ()
    start = runner.measure.known(begun.story_began)
    # As text whatever the repository says of its files: attributes are the agent's to write.
    args = ("diff-tree", "-r", "-p", "--text", "--no-ext-diff", "--no-textconv")
    shown = runner.measure.git().attempt(*args, start.tree, after.tree)
    parts = diff_parts(shown.stdout.decode("utf-8", "replace"), _LONGEST_DIFF)
    given = {
        "v": 1,
        "story": {"id": story.id, "title": story.title, "description": story.description},
        "criteria": story.criteria,
        "parts": len(parts),
    }

    def asked(argv: tuple[str, ...], part: int, gone: Callable[[], bool]) -> str:
        left = runner.patience.left() if runner.patience else timeout
        ended = run_confined(  # an agent may have written what it runs
            check_of(argv, min(left, timeout), runner.setup.check_box),
            runner.setup.project.root,
            stdin=msgspec.json.encode({**given, "part": part, "diff": parts[part - 1]}),
            keep=_LONGEST_WORDS * 4,
            stop=lambda: gone() or runner.stop.requested,
        )
        words = redact(ended.stdout.decode("utf-8", "replace"), secret_values(os.environ))
        doubts = ended.returncode == 1 and not ended.timed_out and not ended.stopped
        return one_line(words, _LONGEST_WORDS) if doubts else ""

    for argv in runner.config.checks.doubt:
        for part in range(1, min(len(parts), _MOST_PARTS) + 1):
            if words := (yield from aside(partial(asked, argv, part))):
                said.append(f"{DOUBT}{check_of(argv).name}: {words}")
                break  # one doubt is enough
    if runner.config.checks.doubt and (shown.returncode or len(parts) > _MOST_PARTS):
        size = f"{len(shown.stdout) / 1_000_000:.1f} MB"
        said.append(f"{DOUBT}the change ({size}) is too large to be shown to a doubter whole")
    return tuple(said)


def record(runner: Runner, judged: Judgement) -> Judgement:
    """Fold the iteration into the session and write everything at once; what was decided."""
    begun, result, before = judged.begun, judged.result, runner.session.state
    if before is not judged.before:  # something changed the run since: decide again
        again = step(before, begun.start, result, judged.evidence, runner.policy)
        judged = msgspec.structs.replace(judged, before=before, step=again)
    done, analysis = judged.step, judged.step.analysis
    now, away = runner.clock(), round(done.away_until, 1)
    clock = begun.worker.clocks[analysis.outcome is Outcome.FATAL]
    quota = {agent: until for agent, until in runner.session.quota.items() if agent != clock}
    if analysis.outcome is Outcome.FATAL or away:
        quota[clock] = GONE if analysis.outcome is Outcome.FATAL else away
    state = done.state.story(done.story)
    meta: dict[str, object] = {QUOTA_KEY.format(runner.run): quota}
    checks = judged.evidence.checks or ()
    if done.verdict.passed and checks:  # what the next story is compared with
        trees = (judged.measured.after.tree, judged.evidence.left_tree)
        meta |= results_to_keep(runner, begun.number, checks, trees)
    told = IterationFinished(
        iteration=done.iteration,
        spent=done.spent,
        attempts=state.attempts,
        warnings=tuple(_without_a_price(runner, judged)),
    )
    ended = runner.made(told, begun.number)
    runner.journal.finish_iteration(
        FinishedIteration(
            run=runner.run,
            n=begun.number,
            finished_at=now,
            outcome=str(analysis.outcome),
            decision=str(done.decision.word),
            status=str(analysis.status.status or "") if analysis.status else "",
            end_tree=judged.measured.after.tree,
            spent=done.spent,
            record=done.iteration,
            effects=done.effects,
            state=done.state,
            stories={done.story: state},
            meta=meta,
            events=(ended,),
        )
    )
    runner.session.state, runner.session.quota = done.state, quota
    runner.sink(ended)
    kind, story = _WAITING.get(state.standing), begun.story
    if story is not None and kind is not None:
        waits = kind(story=story.id, title=story.title, reason=state.reason)
        runner.emit(waits, begun.number)
    runner.tell_circuit(before.breaker)
    return judged


def _without_a_price(runner: Runner, judged: Judgement) -> Iterator[str]:
    """Said once, and only where it could not be known before: a limit that is none."""
    worker, limit = judged.begun.worker, runner.limits.max_cost_usd
    if not judged.step.spent.unpriced or not limit or runner.totals().unpriced:
        return
    from ralphloop.agents.prices import CANNOT_BE_KEPT, why_unpriced

    if why_unpriced(worker.name, worker.config, runner.setup.options.env):
        return
    response = judged.result.response
    model = response.model or worker.config.model
    why = f"no price is known for {model}" if model else "no cost was told"
    if response.reader == "codex" and not model:
        why = "codex does not name its model"
    if judged.step.analysis.outcome.is_infrastructure:
        why = "this start was cut off before it told its cost"
    yield f"{CANNOT_BE_KEPT}{why}"


def learn_from(runner: Runner, judged: Judgement) -> None:
    """Write down what an attempt taught, and aggregate every few stories."""
    config, story, step = runner.config.learning, judged.begun.story, judged.step
    silent = step.analysis.outcome is Outcome.EMPTY and not step.iteration.changed.count
    silent = silent or step.analysis.refused
    if runner.setup.options.session and not step.verdict.passed:
        return  # a person waits for the turn to end
    if not config.enabled or story is None or silent:
        return
    from ralphloop.learning import store
    from ralphloop.learning.capturing import capture
    from ralphloop.redaction import secret_values

    project, state = runner.setup.project, runner.session.story(story.id)
    head = runner.expected_head  # of the commit made for the story, or the agent's last one
    has_commit = state.standing is Standing.PASSED and head != state.start_head
    capture(
        project,
        runner.journal,
        runner.run,
        judged.begun.number,
        story,
        commit=head if has_commit else "",
        secrets=secret_values(runner.setup.options.env),
    )
    ended = sum(s.standing is not Standing.OPEN for s in runner.session.stories.values())
    if state.standing is not Standing.OPEN and config.every and ended % config.every == 0:
        with suppress(RalphError, OSError):  # said at the end; what is learned never ends a run
            store.rebuild(project, now=runner.clock())
