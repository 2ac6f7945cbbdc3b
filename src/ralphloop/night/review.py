"""Reading what a person decides about: the list by doubt, and one story with claim and evidence.

Everything comes from the journal and from git; nothing is changed.  What another version wrote is
shown as far as it goes, and where there is no change to show, that is said.
"""

import os
import time
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from ralphloop.core.grading import VERIFY
from ralphloop.core.model import CheckStatus
from ralphloop.core.mutation import Mutation
from ralphloop.core.proof import Fate, OldTest, Trial
from ralphloop.core.proposals import ProposalOrigin
from ralphloop.core.run_state import Standing
from ralphloop.core.sentences import short_name
from ralphloop.core.totals import spent_words
from ralphloop.core.work_diff import LineFinding, Mark, MarkKind, WorkDiff, read_patch, with_marks
from ralphloop.errors import RalphError
from ralphloop.journal.queries import Queries
from ralphloop.journal.records import IterationRecord, RunRecord
from ralphloop.night.look import RecordedRun, holder_of, own_changes, recorded
from ralphloop.night.review_values import (
    DOUBT_OF,
    Claim,
    Doubt,
    FindingKind,
    ReviewEntry,
    ReviewList,
    StoryReview,
    Worth,
)
from ralphloop.night.reviews import ReviewItem, to_review
from ralphloop.night.values import Night, StoryLook
from ralphloop.project import Project
from ralphloop.redaction import redact, secret_values
from ralphloop.repo.git import Git
from ralphloop.repo.private_git import object_variables
from ralphloop.repo.taking_out import shown_change
from ralphloop.repo.work_tree import Repository, never_progress, project_prefix
from ralphloop.text.durations import format_duration
from ralphloop.text.plain import counted, one_line
from ralphloop.text.remarks import remarks_in, summary_of

_MOST_SAID = 1_200
_MOST_SHOWN = 3
_MOST_REMARKS = 12
_MOST_HINTS = 3
_LONGEST = 400
_MOST_PATCH = 4 << 20
_SEARCHED = 20  # newest iterations of a story
_PATCH = (
    "diff-tree", "-r", "-p", "--text", "--find-renames", "--unified=3", "--no-ext-diff",
    "--no-textconv", "--no-color", "--src-prefix=a/", "--dst-prefix=b/",
)  # fmt: skip
_OLD_WORDS = {
    Fate.LOST: "it no longer runs in full",
    Fate.WEAKENED: "weakened",
    Fate.REMOVED: "removed",
    Fate.SKIPPED: "skipped",
    Fate.UNSOLVED: "gone or skipped instead of green",
    Fate.CHANGED: "expects something else now",
    Fate.GONE: "gone together with its code",
    Fate.UNCLEAR: "changed, and could not be compared",
}


def review_list(project: Project, run: str | None = None) -> ReviewList | None:
    """What waits for a person's eyes, of whichever run or of one; None: nothing has run yet."""
    with recorded(project, run) as record:
        if record is None:
            return None
        found = [*_entries(project, record, run)]
        found.sort(key=_urgency)
        return ReviewList(
            run=record.run.id,
            headline=_headline(record.night, found),
            items=tuple(one for one in found if not one.is_accepted),
            accepted=tuple(one for one in found if one.is_accepted),
            proposals=record.night.proposals,
            is_live=holder_of(project, record.night.now) is not None,
        )


def review_story(project: Project, entry: ReviewEntry) -> StoryReview:
    """One story of that list, with everything one decides by."""
    with recorded(project, None) as record:
        found = to_review(project, now=time.time(), everything=True)
        look = next((one.look for one in found if one.look.story.id == entry.story), None)
        if record is None or look is None:
            return StoryReview(entry=entry, finding=entry.finding, diff_problem="nothing is known")
        return _story_review(project, record, look, entry)


class _Urgency(NamedTuple):
    """Where a story stands in the list; what compares as less comes first."""

    doubt: int
    is_covered: bool  # every criterion has a test
    is_earlier: bool
    fewer_hints: int


def _urgency(one: ReviewEntry) -> _Urgency:
    doubt = list(Doubt).index(one.doubt)
    return _Urgency(doubt, not one.coverage.has_gap, one.is_earlier, -len(one.hints))


def _entries(project: Project, record: RecordedRun, run: str | None) -> Iterator[ReviewEntry]:
    journal = record.journal
    marked = journal.passing_iterations()
    durations: dict[str, dict[str, float]] = {}
    for one in to_review(project, run, now=record.night.now, everything=True):
        name = one.look.story.id
        judged = _newest_judged(journal, one.run, name)
        if one.look.standing is Standing.PASSED and name in marked:
            judged = journal.iteration(marked[name].run, marked[name].n)
        if one.run not in durations:
            durations[one.run] = _durations(journal, one.run)
        yield _entry(one, judged, durations[one.run].get(name, 0.0))


def _headline(night: Night, found: Sequence[ReviewEntry]) -> str:
    totals = night.totals
    parts = [f"{night.passed} of {counted(night.total, 'story')} passed"]
    parts.append(spent_words(totals.cost_usd, totals.unpriced))
    parts.append(format_duration(night.active_s))
    caught = sum(1 for one in found if one.needs_review)
    if caught:
        parts.append(f"{counted(caught, 'story', 'needs')} review")
    if night.asking:
        parts.append(f"{counted(len(night.asking), 'story', 'waits')} for an answer")
    return " · ".join(parts)


def _durations(journal: Queries, run: str) -> dict[str, float]:
    """How long each story was worked on and checked in a run."""
    found: dict[str, float] = {}
    for it in journal.every_iteration(run, brief=True):
        if it.finished_at is not None and it.story:
            found[it.story] = found.get(it.story, 0.0) + max(0.0, it.finished_at - it.started_at)
    return found


def _newest_judged(journal: Queries, run: str, story: str) -> IterationRecord | None:
    """The iteration in which a story was last judged."""
    found = journal.story_iterations(run, story, _SEARCHED)
    return next((it for it in found if it.record.evidence.checks is not None), None)


def _entry(one: ReviewItem, judged: IterationRecord | None, took_s: float) -> ReviewEntry:
    look = one.look
    state = look.state
    is_known = look.standing is Standing.PASSED and state.standing is Standing.PASSED
    grade = state.proof.grade if is_known else look.grade
    hints = [*_hints(look, _trial(judged))]
    return ReviewEntry(
        story=look.story.id,
        title=one_line(look.story.title, 200),
        doubt=DOUBT_OF.get(grade, Doubt.CLAIMED),
        finding=_finding(look, judged),
        hints=tuple(one.words for one in hints[:_MOST_HINTS]),
        kinds=tuple(dict.fromkeys(one.kind for one in hints)),
        coverage=look.coverage,
        is_accepted=look.standing is Standing.PASSED and not look.is_unreviewed,
        run=one.run,
        is_earlier=one.is_earlier,
        iteration=judged.n if judged else 0,
        starts=state.totals.iterations,
        failed=look.failed,
        cost_usd=state.totals.cost_usd,
        unpriced=state.totals.unpriced,
        took_s=took_s,
    )


def _trial(judged: IterationRecord | None) -> Trial:
    return (judged.record.evidence.trial if judged else None) or Trial()


def _finding(look: StoryLook, judged: IterationRecord | None) -> str:
    """What was found, in one sentence; that the checks are green is no news."""
    reason = look.state.reason or "no reason is known"
    green = [it.name for it in judged.checks if it.status is CheckStatus.PASSED] if judged else []
    told = reason.removeprefix(f"{', '.join(green)} green; ") if green else reason
    return one_line(told, _LONGEST)


class _Hint(NamedTuple):
    kind: FindingKind
    words: str


def _hints(look: StoryLook, trial: Trial) -> Iterator[_Hint]:
    """What speaks for a closer look, each in a few words."""
    if look.coverage.has_gap:
        yield _Hint(FindingKind.UNSPOKEN, look.coverage.words)
    for one in trial.old:
        yield _Hint(FindingKind.WEAKENED, f"{short_name(one.name)}: {_OLD_WORDS[one.fate]}")
    mutation = trial.mutation
    if mutation.literal:
        yield _Hint(FindingKind.REPEATED, "hands out the answers of its tests")
    if mutation.in_vain:
        words = f"no test notices what {mutation.in_vain[0].name} does"
        yield _Hint(FindingKind.IN_VAIN, words)
    if trial.vacuous:
        words = f"{counted(len(trial.vacuous), 'new test', 'passes')} without it"
        yield _Hint(FindingKind.VACUOUS, words)
    if mutation.unwatched:
        words = f"{counted(len(mutation.unwatched), 'line')} watched by no test"
        yield _Hint(FindingKind.UNWATCHED, words)
    if look.state.notes.doubted:
        yield _Hint(FindingKind.DOUBTED, "the agent has a doubt")


def _story_review(
    project: Project, record: RecordedRun, look: StoryLook, entry: ReviewEntry
) -> StoryReview:
    journal = record.journal
    judged = journal.iteration(entry.run, entry.iteration) if entry.iteration else None
    trial = _trial(judged)
    shows = own_changes(journal, project, look.story.id) if entry.has_passed else []
    shown = _work_diff(project, record.run, judged, shows)
    diff = with_marks(shown.diff, _line_findings(trial))
    verdict = judged.record.verdict if judged else None
    checks = judged.checks if judged else ()
    return StoryReview(
        entry=entry,
        description=look.story.description[:_MOST_SAID],
        claim=_claim(record, look, judged),
        criteria=look.criteria,
        is_judged=bool(look.state.proof.criteria),
        finding=entry.finding,
        worth=_worth(entry, trial),
        shown_by=tuple(_shown_by(trial, judged))[:_MOST_SHOWN],
        look_at=verdict.look_at if verdict else (),
        remarks=(verdict.remarks if verdict else ())[:_MOST_REMARKS],
        checks=tuple(f"{it.name}: {it.why or it.status.replace('_', ' ')}" for it in checks),
        doubted_tests=tuple(one.name for one in trial.old if one.fate.is_challenged),
        noticing_tests=(*trial.proven, *(one.test for one in trial.mutation.watched)),
        unwatched=trial.mutation.unwatched,
        is_in_vain=bool(trial.mutation.in_vain) and not trial.mutation.watched,
        repeats_answers=bool(trial.mutation.literal),
        diff=diff,
        diff_problem=shown.problem,
        commands=tuple(f"git show {show}" for show in shows),
    )


def _claim(record: RecordedRun, look: StoryLook, judged: IterationRecord | None) -> Claim:
    """The agent's own words; what it found beside the story is proposed, and said here too."""
    notes = look.state.notes
    words = judged.record.response.final_text if judged else ""
    said = summary_of(notes.said or words, _MOST_SAID)
    proposed = [
        one.text
        for one in record.night.proposals
        if one.story == look.story.id and one.origin is ProposalOrigin.FOUND
    ]
    found = (*remarks_in(words).found, *proposed)
    doubts = notes.doubted or remarks_in(words).doubts
    by = judged.record.by if judged else ""
    return Claim(said=said, doubts=doubts, found=tuple(dict.fromkeys(found)), by=by)


def _worth(entry: ReviewEntry, trial: Trial) -> Worth:
    if entry.doubt is Doubt.VERIFIED:
        return Worth.WEAK if entry.coverage.has_gap else Worth.GOOD
    is_bad = entry.doubt in (Doubt.SENT_BACK, Doubt.ASKED) or trial.mutation.literal
    return Worth.BAD if is_bad or trial.mutation.in_vain else Worth.WEAK


def _shown_by(trial: Trial, judged: IterationRecord | None) -> Iterator[str]:
    """Lines that show the finding: what tests said of the other side's code."""
    for one in trial.old:
        yield from _old_test_lines(one)
    if not trial.mutation.literal:  # there the lines of the change show it
        yield from _trial_lines(trial)
    for check in judged.checks if judged else ():
        if check.name == VERIFY or check.status is CheckStatus.FAILED:
            yield from (one_line(line, _LONGEST) for line in check.output_tail.splitlines()[-2:])


def _trial_lines(trial: Trial) -> Iterator[str]:
    """What was tried, what speaks against the story first."""
    mutation = trial.mutation
    for survivor in mutation.in_vain:
        yield f"tried: {survivor.name} {survivor.what} → every test still passes"
    for test in trial.vacuous:
        yield f"{short_name(test)} → passes without the story's code"
    for test in trial.proven:
        yield f"{short_name(test)} → fails without it, passes with it"
    for watched in mutation.watched:
        yield f"tried: {watched.name} {watched.what} → {short_name(watched.test)} fails"
    for survivor in mutation.survivors:
        if not survivor.is_own:
            yield f"tried: {survivor.name} {survivor.what} → every test still passes"


def _old_test_lines(one: OldTest) -> Iterator[str]:
    name = short_name(one.name)
    if one.was or one.fate.is_challenged:
        yield f"{name} as it was, on the new code → {one.was or 'fails'}"
    if one.fate is Fate.WEAKENED:
        yield f"{name} as it is, on the old code → passes too"
    elif one.now:
        yield f"{name} as it is, on the old code → {one.now}"


def _line_findings(trial: Trial) -> Iterator[LineFinding]:
    """What is known of single lines, and of tests by their names."""
    for one in trial.old:
        kind = MarkKind.WEAKENED if one.fate.is_challenged else MarkKind.CHANGED
        yield _of_test(one.name, kind, _OLD_WORDS[one.fate])
    for test in trial.proven:
        yield _of_test(test, MarkKind.PROVES, "fails without the story, passes with it")
    for test in trial.vacuous:
        yield _of_test(test, MarkKind.VACUOUS, "passes without the story's code too")
    yield from _mutation_findings(trial.mutation)


def _mutation_findings(mutation: Mutation) -> Iterator[LineFinding]:
    known = set[str]()
    for one in mutation.survivors:
        known.add(one.place)
        words = f"no test notices if {one.name} {one.what}"
        yield _of_line(one.place, Mark(kind=MarkKind.SURVIVOR, words=words))
    for place in mutation.unwatched:
        if place not in known:
            words = "no test notices if this line is wrong"
            yield _of_line(place, Mark(kind=MarkKind.UNWATCHED, words=words))


def _of_test(test: str, kind: MarkKind, words: str) -> LineFinding:
    return LineFinding(mark=Mark(kind=kind, words=words), test=short_name(test))


def _of_line(place: str, mark: Mark) -> LineFinding:
    path, _, line = place.rpartition(":")
    return LineFinding(mark=mark, path=path, line=int(line) if line.isdigit() else 0)


class _ShownDiff(NamedTuple):
    diff: WorkDiff
    problem: str = ""


def _work_diff(
    project: Project, run: RunRecord, judged: IterationRecord | None, shows: Sequence[str]
) -> _ShownDiff:
    """The change of a story's commits; where it has none, what its last start left."""
    try:
        repo = Repository.open(project.root)
    except RalphError as error:
        return _ShownDiff(WorkDiff(), error.message)
    prefix = project_prefix(repo.root, project.root)
    listed = f"{prefix}{run.prd_path}" if run.prd_path else ""
    own = never_progress(prefix, filter(None, (listed, f"{prefix}prd.json")))
    patch = "".join(_patches(repo, project, judged, shows))
    if not patch:
        return _ShownDiff(WorkDiff(), "there is no commit of it, and nothing else was kept")
    hidden = redact(patch, secret_values(os.environ))
    return _ShownDiff(read_patch(hidden, own.__contains__))


def _patches(
    repo: Repository, project: Project, judged: IterationRecord | None, shows: Sequence[str]
) -> Iterator[str]:
    git = Git(repo.root)
    for show in shows:
        change = shown_change(repo, show)
        yield _patch(git, change.old, change.new)
    if not shows and judged is not None and judged.tree and judged.end_tree:
        kept = object_variables(project.directory / "objects", repo.objects)
        yield _patch(git.adapted(env=kept), judged.tree, judged.end_tree)


def _patch(git: Git, old: str, new: str) -> str:
    ended = git.attempt(*_PATCH, old, new, "--")
    return ended.stdout[:_MOST_PATCH].decode("utf-8", "replace") if ended.returncode == 0 else ""
