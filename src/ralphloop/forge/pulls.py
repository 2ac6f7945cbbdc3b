"""A pull request as GitHub tells it: its state, its checks, what is said under it, who may say it.

Values and questions, no decisions.  Every list is bounded; what is beyond that is not read.
"""

import re
from functools import cache

import msgspec

from ralphloop.core.following import CheckState
from ralphloop.errors import NotOnGitHub
from ralphloop.forge.words import plain
from ralphloop.repo.github import HubPlace, ask_text, call, send

PAGE = 100
_MOST_PAGES = 3
_LONGEST_SAID = 4_000
_LOGIN = re.compile(r"[A-Za-z0-9][A-Za-z0-9-]{0,38}")
_MAY_WRITE = frozenset({"admin", "maintain", "write"})
_GOOD = frozenset({"success", "neutral", "skipped"})
_BAD = frozenset({"failure", "timed_out", "startup_failure", "error"})
_THREADS = (
    "query($owner: String!, $name: String!, $number: Int!) {"
    " repository(owner: $owner, name: $name) { pullRequest(number: $number) {"
    " reviewThreads(last: 100) { nodes { isResolved comments(first: 100) {"
    " nodes { databaseId } } } } } } }"
)


class PullSide(msgspec.Struct):
    """One end of a pull request."""

    ref: str = ""
    sha: str = ""
    label: str = ""


class PullState(msgspec.Struct):
    number: int
    html_url: str = ""
    state: str = "open"
    draft: bool = False
    merged: bool = False
    merged_at: str | None = None
    mergeable: bool | None = None  # None: GitHub has not thought about it yet
    head: PullSide = msgspec.field(default_factory=PullSide)
    base: PullSide = msgspec.field(default_factory=PullSide)

    @property
    def is_merged(self) -> bool:
        return self.merged or self.merged_at is not None


class HubUser(msgspec.Struct):
    login: str = ""


class PullRemark(msgspec.Struct):
    """What somebody said: under the pull request, to a line of it, or as a review."""

    id: int
    body: str | None = None
    user: HubUser | None = None
    html_url: str = ""
    created_at: str = ""
    state: str = ""  # of a review
    path: str = ""  # of a comment to a line
    line: int | None = None
    original_line: int | None = None
    commit_id: str = ""
    original_commit_id: str = ""
    in_reply_to_id: int | None = None
    issue_url: str = ""

    @property
    def by(self) -> str:
        return self.user.login if self.user else ""

    @property
    def words(self) -> str:
        return plain(self.body or "", _LONGEST_SAID)


class _Output(msgspec.Struct):
    title: str | None = None
    summary: str | None = None
    text: str | None = None


class _App(msgspec.Struct):
    slug: str = ""


class _Run(msgspec.Struct):
    id: int
    name: str
    status: str = ""
    conclusion: str | None = None
    html_url: str | None = None
    output: _Output | None = None
    app: _App | None = None


class _Runs(msgspec.Struct):
    check_runs: list[_Run] = []


class _Status(msgspec.Struct):
    context: str
    state: str
    description: str | None = None
    target_url: str | None = None


class _Statuses(msgspec.Struct):
    statuses: list[_Status] = []


class CheckSeen(msgspec.Struct, frozen=True):
    """One check of a commit, of whatever kind."""

    name: str
    state: CheckState
    said: str = ""  # what it says of itself
    url: str = ""
    job: int = 0  # of GitHub Actions: its log can be read


def pull_state(place: HubPlace, number: int) -> PullState:
    return call(place, place.path("pulls", number), PullState, {})


def checks_of(place: HubPlace, commit: str) -> list[CheckSeen]:
    """The checks of a commit, runs and statuses alike, by name."""
    asked = {"per_page": PAGE, "filter": "latest"}
    runs = call(place, place.path("commits", commit, "check-runs"), _Runs, asked)
    found = [_seen_run(one) for one in runs.check_runs]
    path = place.path("commits", commit, "status")
    statuses = call(place, path, _Statuses, {"per_page": PAGE})
    found += [_seen_status(one) for one in statuses.statuses]
    return sorted(found, key=lambda one: one.name)


def _seen_run(one: _Run) -> CheckSeen:
    state = CheckState.RUNNING
    if one.status == "completed":
        state = _state_of(one.conclusion or "")
    told = one.output or _Output()
    parts = [part for part in (told.title, told.summary, told.text) if part]
    is_job = one.app is not None and one.app.slug == "github-actions"
    return CheckSeen(
        name=one.name,
        state=state,
        said=plain("\n".join(parts), _LONGEST_SAID),
        url=one.html_url or "",
        job=one.id if is_job else 0,
    )


def _seen_status(one: _Status) -> CheckSeen:
    state = CheckState.RUNNING if one.state == "pending" else _state_of(one.state)
    said = plain(one.description or "", _LONGEST_SAID)
    return CheckSeen(name=one.context, state=state, said=said, url=one.target_url or "")


def _state_of(word: str) -> CheckState:
    if word in _GOOD:
        return CheckState.GOOD
    return CheckState.BAD if word in _BAD else CheckState.OTHER


def log_of(place: HubPlace, check: CheckSeen) -> str:
    """What a job printed, else what the check says of itself; empty where nobody kept it."""
    if not check.job:
        return check.said
    try:
        return ask_text(place, place.path("actions", "jobs", check.job, "logs"))
    except NotOnGitHub:
        return check.said


def line_remarks(place: HubPlace, number: int) -> list[PullRemark]:
    """What was said to lines, the newest last."""
    asked = {"per_page": PAGE, "sort": "created", "direction": "desc"}
    return _paged(place, place.path("pulls", number, "comments"), asked)[::-1]


def reviews(place: HubPlace, number: int) -> list[PullRemark]:
    return _paged(place, place.path("pulls", number, "reviews"), {"per_page": PAGE})


def talk(place: HubPlace, number: int) -> list[PullRemark]:
    """What was said under an issue or a pull request, the oldest first."""
    return _paged(place, place.path("issues", number, "comments"), {"per_page": PAGE})


def _paged(place: HubPlace, path: str, asked: dict[str, object]) -> list[PullRemark]:
    found: list[PullRemark] = []
    for page in range(1, _MOST_PAGES + 1):
        more = call(place, path, list[PullRemark], {**asked, "page": page})
        found += more
        if len(more) < PAGE:
            break
    return found


def settled_remarks(place: HubPlace, number: int) -> frozenset[int]:
    """The remarks to lines whose thread a person has closed."""
    names = {"owner": place.owner, "name": place.name, "number": number}
    asked = {"query": _THREADS, "variables": names}
    found = call(place, "graphql", _Answered, asked, "POST")
    pull = found.data.repository.pullRequest if found.data.repository else None
    threads = pull.reviewThreads.nodes if pull else []
    settled = set[int]()
    for thread in threads:
        if thread.isResolved:
            settled |= {one.databaseId for one in thread.comments.nodes if one.databaseId}
    return frozenset(settled)


# How GitHub's GraphQL calls them.
class _Id(msgspec.Struct):
    databaseId: int | None = None  # noqa: N815


class _Comments(msgspec.Struct):
    nodes: list[_Id] = []


class _Thread(msgspec.Struct):
    isResolved: bool = False  # noqa: N815
    comments: _Comments = msgspec.field(default_factory=_Comments)


class _Threads(msgspec.Struct):
    nodes: list[_Thread] = []


class _OfPull(msgspec.Struct):
    reviewThreads: _Threads = msgspec.field(default_factory=_Threads)  # noqa: N815


class _OfRepository(msgspec.Struct):
    pullRequest: _OfPull | None = None  # noqa: N815


class _Data(msgspec.Struct):
    repository: _OfRepository | None = None


class _Answered(msgspec.Struct):
    data: _Data = msgspec.field(default_factory=_Data)


class _Permission(msgspec.Struct):
    permission: str = "none"


@cache
def may_write(place: HubPlace, login: str) -> bool:
    """Whether somebody may write to the repository; what they are to it is not enough."""
    if not _LOGIN.fullmatch(login):
        return False  # nobody, or a program
    path = place.path("collaborators", login, "permission")
    try:
        found = call(place, path, _Permission, {})
    except NotOnGitHub:
        return False
    return found.permission in _MAY_WRITE


def reply_to_line(place: HubPlace, number: int, remark: int, text: str) -> None:
    send(place, place.path("pulls", number, "comments", remark, "replies"), {"body": text})


def say(place: HubPlace, number: int, text: str) -> None:
    """Say something under an issue or a pull request."""
    send(place, place.path("issues", number, "comments"), {"body": text})


def merge(place: HubPlace, number: int, head: str) -> None:
    """Merge exactly this commit; GitHub refuses where the branch is another by now."""
    send(place, place.path("pulls", number, "merge"), {"sha": head}, "PUT")
