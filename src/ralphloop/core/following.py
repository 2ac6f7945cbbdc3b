"""A pull request on its way to green: what is known of it, and what is done about it next.

Each round looks once all checks have ended, makes stories of what is wrong, has them worked on,
pushes and answers.  What was decided is kept step by step, so that whoever comes after a crash goes
on where it ended: nothing is opened, pushed or answered twice.
"""

from collections.abc import Iterable
from enum import StrEnum

from ralphloop.core.model import Value
from ralphloop.text.plain import counted, some


class ComplaintKind(StrEnum):
    CHECKS = "checks"  # jobs that are red here and not on the base
    LINE = "line"  # said to a line
    REVIEW = "review"  # a review that asks for changes
    TALK = "talk"  # said under the pull request, to ralph
    CONFLICT = "conflict"  # with the base


class Complaint(Value, kw_only=True):
    """Something that is wrong with a pull request, and the story that was made of it."""

    kind: ComplaintKind
    item: str  # what it is known by: `line 55`, `checks 1f2e3d`
    title: str
    text: str  # other people's words, as a quotation
    by: str = ""
    remark: int = 0  # to answer to
    belongs_to: tuple[str, ...] = ()  # the stories whose work it is about
    story: str = ""  # that was made of it; empty: not yet
    is_settled: bool = False  # it was answered, or nobody waits for an answer


class BaseMerge(Value, kw_only=True):
    """The base as it is being merged; its commit has conflict markers until a story solved them."""

    before: str  # HEAD
    base: str  # the commit of the base
    commit: str = ""  # both, with markers; empty: not made yet
    paths: tuple[str, ...] = ()  # in conflict


class FollowStep(StrEnum):
    LOOKING = "looking"
    OPENING = "opening"  # stories for what is wrong
    WORKING = "working"
    PUSHING = "pushing"
    ANSWERING = "answering"


class FollowEnd(StrEnum):
    GREEN = "green"
    MERGED = "merged"
    CLOSED = "closed"
    TAKEN_OVER = "taken over"  # somebody else pushed to the branch
    ROUNDS = "rounds"  # all of them are used
    LIMIT = "limit"  # time, money or starts of the run
    NOT_OURS = "not ours"  # what is wrong belongs to no story
    NO_PROGRESS = "no progress"
    WAITS = "waits"  # for a person on GitHub: an approval, a cancelled job
    INTERRUPTED = "interrupted"


class Follow(Value, kw_only=True):
    run: str  # whose pull request it is
    repository: str
    number: int
    remote: str
    source: str  # the local branch
    branch: str  # its name there
    base: str
    began_at: float
    first_at: float  # when this pull request was followed for the first time
    until: float  # it waits no longer; 0: without end
    rounds: int
    round: int = 0
    step: FollowStep = FollowStep.LOOKING
    head: str = ""  # the commit we pushed last
    heard: tuple[str, ...] = ()  # items of earlier rounds
    complaints: tuple[Complaint, ...] = ()  # of this round
    merging: BaseMerge | None = None
    stories: tuple[str, ...] = ()  # all that were made of complaints
    ended: FollowEnd | None = None
    why: str = ""

    @property
    def is_over(self) -> bool:
        return self.ended is not None


class CheckState(StrEnum):
    RUNNING = "running"
    GOOD = "good"
    BAD = "bad"
    OTHER = "other"  # cancelled, or waits for somebody


class PullLook(Value, kw_only=True):
    """Everything that decides, as it was seen at one moment."""

    is_open: bool
    is_merged: bool
    head: str
    has_conflict: bool | None  # None: not known yet
    checks: dict[str, CheckState]
    red_at_base: frozenset[str] = frozenset()
    remarks: tuple[str, ...] = ()  # items that wait for an answer
    is_quiet: bool = True  # enough time has passed for a first check to appear


class Next(Value, kw_only=True):
    """What follows: wait, work on what is wrong, or end."""

    ends: FollowEnd | None = None
    works: bool = False
    red: tuple[str, ...] = ()  # the jobs to work on
    why: str = ""


def decide_next(follow: Follow, seen: PullLook) -> Next:
    """What to do about a pull request; neither an end nor work: wait and look again."""
    return _taken_from_us(follow, seen) or _unfinished(seen) or _settled(follow, seen)


def _taken_from_us(follow: Follow, seen: PullLook) -> Next | None:
    """The end where somebody else decided; None: it is still ours to follow."""
    if seen.is_merged:
        return Next(ends=FollowEnd.MERGED, why="it was merged")
    if not seen.is_open:
        return Next(ends=FollowEnd.CLOSED, why="somebody closed it")
    if follow.head and seen.head != follow.head:
        why = f"somebody else pushed to {follow.branch}: it is theirs now"
        return Next(ends=FollowEnd.TAKEN_OVER, why=why)
    return None


def _unfinished(seen: PullLook) -> Next | None:
    """What is waited for; None: every check has ended."""
    running = _in_state(seen, CheckState.RUNNING)
    if running:
        done = len(seen.checks) - len(running)
        return Next(why=f"{done} of {counted(len(seen.checks), 'check')} done")
    return None if seen.is_quiet else Next(why="no check yet")


def _settled(follow: Follow, seen: PullLook) -> Next:
    """What follows once every check has ended."""
    red = _in_state(seen, CheckState.BAD)
    ours = tuple(name for name in red if name not in seen.red_at_base)
    if ours or seen.remarks or seen.has_conflict:
        why = _wrong(ours, seen)
        if follow.round >= follow.rounds:
            told = f"{counted(follow.rounds, 'round')} used, and {why}"
            return Next(ends=FollowEnd.ROUNDS, why=told)
        return Next(works=True, red=ours, why=why)
    if seen.has_conflict is None:
        return Next(why="GitHub does not know yet whether it can be merged")
    if red:
        why = f"red on {follow.base} as well, so no story of this branch did it: {some(red)}"
        return Next(ends=FollowEnd.NOT_OURS, why=why)
    other = _in_state(seen, CheckState.OTHER)
    if other:
        why = f"cancelled, or waits for somebody: {some(other)}"
        return Next(ends=FollowEnd.WAITS, why=why)
    green = f"{counted(len(seen.checks), 'check')} green" if seen.checks else "it has no checks"
    return Next(ends=FollowEnd.GREEN, why=green)


def _in_state(seen: PullLook, state: CheckState) -> list[str]:
    return [name for name, its in seen.checks.items() if its is state]


def _wrong(red: Iterable[str], seen: PullLook) -> str:
    parts = []
    names = list(red)
    if names:
        parts.append(f"red: {some(names)}")
    if seen.remarks:
        parts.append(counted(len(seen.remarks), "comment"))
    if seen.has_conflict:
        parts.append("a conflict with the base")
    return ", ".join(parts)


class MergeFacts(Value, kw_only=True):
    """What decides whether a green pull request may be merged by us."""

    grades: dict[str, str]  # by story
    open_stories: tuple[str, ...] = ()
    asked_for_changes: tuple[str, ...] = ()  # people whose last review does
    is_draft: bool = False


def why_not_merge(facts: MergeFacts) -> str:
    """Why it is not merged though it is green; empty where nothing speaks against it."""
    if facts.is_draft:
        return "it is a draft"
    if facts.asked_for_changes:
        return f"{some(list(facts.asked_for_changes))} asked for changes"
    if facts.open_stories:
        return f"not passed: {some(list(facts.open_stories))}"
    weak = [f"{name} is {grade}" for name, grade in facts.grades.items() if grade != "verified"]
    if weak:
        return f"not everything is verified: {some(weak)}"
    return "" if facts.grades else "it has no story that is verified"
