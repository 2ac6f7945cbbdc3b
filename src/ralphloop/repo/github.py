"""GitHub through the `gh` the user has: one door, and what lies behind it is not believed.

Everything is asked with `gh api`, because its REST answers are the same in every version of gh,
while `gh pr edit` of older ones fails on today's GitHub.  gh keeps the login; no token passes
through here.  Every call has a deadline and a largest answer, and every failure has words of its
own: who reads them at seven in the morning should know what to do, not what gh printed.

Issues are text of strangers.  They come bounded, without control characters, secrets and what a
reader of the page would not see (HTML comments), each line marked as a quotation, so that nothing
in them can look like the frame around them.
"""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator, Sequence
from typing import TypeVar

import msgspec

from ralphloop.errors import GitHubUnavailable, RepositoryError, UsageError
from ralphloop.proc.run import Ended, run_command
from ralphloop.redaction import redact, secret_values
from ralphloop.repo.git import Git
from ralphloop.text.plain import clean, counted, one_line

MOST_ISSUES = 20
_TIMEOUT_S = 60.0
_LARGEST = 8 * 1024 * 1024
_MOST_COMMENTS = 30
_LONGEST_TEXT, _LONGEST_COMMENT, _LONGEST_IN_ALL = 20_000, 4_000, 80_000
_PLAIN = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1"}
_NOT_HERE = {"GH_REPO", "GH_HOST", "GH_DEBUG", "GH_FORCE_TTY", "DEBUG", "CLICOLOR_FORCE"}
_OWN, _REST = r"(?:[^@/]{1,200}@)?", r"([\w.-]{1,100})/([\w.-]{1,100}?)(?:\.git)?/?"
_ADDRESSES = (
    re.compile(rf"(?:https?|ssh|git)://{_OWN}([\w.-]{{1,200}})(?::\d{{1,5}})?/{_REST}"),
    re.compile(rf"{_OWN}([\w.-]{{2,200}}):/?{_REST}"),
)
_NAMED = re.compile(r"(?:([\w.-]{1,200})/)?([\w.-]{1,100})/([\w.-]{1,100})")
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_STATUS = re.compile(r"\(HTTP (\d{3})\)")
_OFFLINE = re.compile(
    "error connecting to|dial (tcp|unix)|no such host|connection (refused|timed out)|timeout"
    "|could not resolve|network is unreachable|failed to connect|tls: ",
    re.IGNORECASE,
)
_T = TypeVar("_T")


class GitHubPlace(msgspec.Struct, frozen=True):
    """A repository on a GitHub."""

    host: str
    owner: str
    name: str

    def __str__(self) -> str:
        here = "" if self.host == "github.com" else f"{self.host}/"
        return f"{here}{self.owner}/{self.name}"

    def path(self, *parts: object) -> str:
        """The address of something in it."""
        return "/".join(("repos", self.owner, self.name, *map(str, parts)))


class Hub(msgspec.Struct, frozen=True):
    """What GitHub says of a repository."""

    default_branch: str
    permissions: dict[str, bool] = {}
    archived: bool = False


def place_of(address: str) -> GitHubPlace | None:
    """The repository a remote's address names; None where it is a path or something else."""
    found = next(filter(None, (form.fullmatch(address) for form in _ADDRESSES)), None)
    if found is None:
        return None
    host = found[1].lower().removeprefix("www.")
    return GitHubPlace("github.com" if host == "ssh.github.com" else host, found[2], found[3])


def place_named(words: str) -> GitHubPlace:
    """`owner/name` or `host/owner/name`, as gh takes it."""
    if not (found := _NAMED.fullmatch(words)):
        raise UsageError(f"{words[:100]!r} is no repository", "OWNER/NAME, or HOST/OWNER/NAME")
    return GitHubPlace(found[1] or "github.com", found[2], found[3])


def remote_of(
    git: Git, branch: str = "", wanted: str | None = None
) -> tuple[str, GitHubPlace | None]:
    """The remote that a branch is pushed to, and what it is on GitHub."""
    names = git.line("remote").split()
    told = git.line("for-each-ref", "--format=%(push:remotename)", f"refs/heads/{branch}")
    likely = [wanted] if wanted else [one for one in (told, "origin") if one in names] or names
    if len(likely) > 1 and likely is names:
        raise RepositoryError(f"which remote? {', '.join(names)[:200]}", "--remote NAME")
    if not likely or likely[0] not in names:
        what = f"there is no remote {wanted[:60]!r}" if wanted else "this repository has no remote"
        raise RepositoryError(what, "git remote add origin https://github.com/OWNER/NAME")
    # With `insteadOf` either the written or the resulting address is the one of GitHub.
    url = git.line("remote", "get-url", "--push", likely[0]), f"remote.{likely[0]}.url"
    return likely[0], place_of(url[0]) or place_of(git.line("config", "--get", url[1], ok=(0, 1)))


def not_github() -> RepositoryError:
    """The remote is elsewhere."""
    return RepositoryError(
        "the remote is no address of a repository on GitHub",
        "git remote -v shows it; name the repository yourself: --repo OWNER/NAME",
    )


def hub_of(place: GitHubPlace) -> Hub:
    """The repository as this login sees it; a host of another name is a GitHub where gh says so."""
    if place.host != "github.com" and not place.host.endswith(".ghe.com"):
        ended = _gh("auth", "status", "--hostname", place.host)
        if ended.returncode and not is_offline(ended.said):
            raise RepositoryError(
                f"{place.host} is not a GitHub that gh is logged in to",
                f"If it is one: gh auth login --hostname {place.host}",
            )
    return call(place, place.path(), Hub)


def call(
    place: GitHubPlace, path: str, kind: type[_T], *, method: str = "GET", fields: object = None
) -> _T:
    """One answer of GitHub; raises with words where there is none."""
    given = msgspec.json.encode(fields) if fields is not None else b""
    words = ["api", "--hostname", place.host, "--method", method, path]
    ended = _gh(*words, *(("--input", "-") if given else ()), stdin=given)
    if ended.returncode:
        raise _failure(ended, place)
    try:
        return msgspec.json.decode(ended.stdout, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        said = one_line(ended.stdout[:400].decode("utf-8", "replace"), 80)
        raise GitHubUnavailable(
            f"gh answered what cannot be read: {said or 'nothing'}", f"See yourself: gh api {path}"
        ) from None


def _gh(*words: str, stdin: bytes = b"") -> Ended:
    if (program := shutil.which("gh")) is None:
        raise GitHubUnavailable(
            "gh, the command line of GitHub, is not installed",
            "apt install gh, brew install gh or https://cli.github.com; then: gh auth login",
        )
    env = {key: value for key, value in os.environ.items() if key not in _NOT_HERE} | _PLAIN
    try:
        argv = (program, *words)
        ended = run_command(argv, env=env, stdin=stdin, timeout_s=_TIMEOUT_S, keep=_LARGEST)
    except OSError as error:
        raise GitHubUnavailable(f"gh could not be started: {error.strerror}") from None
    if ended.timed_out or ended.overflowed:
        what = f"did not answer within {_TIMEOUT_S:g} s" if ended.timed_out else "said too much"
        raise GitHubUnavailable(f"gh {what}", "Try again; https://www.githubstatus.com")
    return ended


def is_offline(said: str) -> bool:
    """The network is not there, as gh and git say it."""
    return _OFFLINE.search(said) is not None


def offline(host: str) -> GitHubUnavailable:
    """Nobody answers."""
    return GitHubUnavailable(f"{host} cannot be reached", "Try again when the network is back.")


def not_allowed(place: object, told: str) -> GitHubUnavailable:
    """The login is not enough."""
    return GitHubUnavailable(
        f"this login may not do that in {place}: {one_line(told, 200)}",
        "gh auth status shows who it is; more rights: gh auth refresh -s repo, or ask the owner",
    )


def _failure(ended: Ended, place: GitHubPlace) -> GitHubUnavailable:
    """What a refused call means."""
    said = ended.stderr.decode("utf-8", "replace")
    status = int(found[1]) if (found := _STATUS.search(said)) else 0
    told = redact(_told(ended.stdout) or one_line(said, 300), secret_values(os.environ))
    if not status and is_offline(said):
        return offline(place.host)
    if status == 403 and "rate limit" not in told.lower():
        return not_allowed(place, told)
    words, step = f"GitHub refused: {told}", "Try again later; https://www.githubstatus.com"
    if status == 401 or ended.returncode == 4 or "gh auth login" in said:
        words = f"gh is not logged in to {place.host}"
        step = f"gh auth login --hostname {place.host}"
    elif status == 404:
        words = f"{place}: what was asked for is not there, or this login may not see it"
        step = f"gh repo view {place}; gh auth status"
    elif "draft" in told.lower():
        step = "To open it without being a draft: ralph pr --ready"
    return GitHubUnavailable(words, step)


def _told(answer: bytes) -> str:
    """GitHub's own message with the reasons below it, on one line."""
    try:
        data = msgspec.json.decode(answer, type=_Refusal)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
    more = (one.get("message", "") if isinstance(one, dict) else one for one in data.errors)
    return one_line("; ".join(str(part) for part in (data.message, *more) if part), 300)


class _Refusal(msgspec.Struct):
    message: str = ""
    errors: list[object] = []


# --- issues ----------------------------------------------------------------------------------


class _User(msgspec.Struct):
    login: str = ""


class _Said(msgspec.Struct):
    """An issue, or a comment on one."""

    number: int = 0
    title: str | None = None
    body: str | None = None
    user: _User | None = None
    author_association: str = "unknown"
    comments: int = 0
    pull_request: object = None

    @property
    def by(self) -> str:
        """Who wrote it, and what they are to the repository."""
        who = self.user.login if self.user else "somebody"
        return one_line(f"{who} ({self.author_association.lower()})", 100)


def issues_as_text(
    git: Git, numbers: Sequence[int], labels: Iterable[str] = (), *, repo: str | None = None
) -> str:
    """Issues by number, and open ones by label, as quoted and bounded text for a prompt."""
    from urllib.parse import urlencode

    if (place := place_named(repo) if repo else remote_of(git)[1]) is None:
        raise not_github()
    hub_of(place)
    found = [call(place, place.path("issues", number), _Said) for number in numbers[:MOST_ISSUES]]
    for label in labels:
        asked = urlencode({"labels": label, "state": "open", "per_page": MOST_ISSUES})
        listed = call(place, f"{place.path('issues')}?{asked}", list[_Said])
        if not (issues := [one for one in listed if one.pull_request is None]):
            raise UsageError(f"no open issue of {place} has the label {label[:60]!r}")
        found += issues
    unique = list({one.number: one for one in found}.values())[:MOST_ISSUES]
    parts, room = [], _LONGEST_IN_ALL
    for issue in unique:
        told = redact("\n\n".join(_telling(place, issue)), secret_values(os.environ))
        parts.append(told if len(told) <= room else f"{told[:room]}\n\n(cut here for length)")
        room = max(0, room - len(told))
    return "\n\n".join(parts)


def _telling(place: GitHubPlace, issue: _Said) -> Iterator[str]:
    yield f"# Issue {issue.number}: {one_line(issue.title or 'without a title', 200)}"
    yield f"By {issue.by}:\n\n{_quoted(issue.body, _LONGEST_TEXT)}"
    if not issue.comments:
        return
    path = f"{place.path('issues', issue.number, 'comments')}?per_page={_MOST_COMMENTS}"
    comments = call(place, path, list[_Said])[:_MOST_COMMENTS]
    for comment in comments:
        yield f"Comment by {comment.by}:\n\n{_quoted(comment.body, _LONGEST_COMMENT)}"
    if (more := issue.comments - len(comments)) > 0:
        yield f"({counted(more, 'newer comment')} left out)"


def _quoted(text: str | None, most: int) -> str:
    """A stranger's text as a Markdown quotation, without what its page would not show."""
    plain = clean(_HIDDEN.sub("", (text or "")[: most * 4])).strip()
    cut = f"{plain[:most]}\n(cut here for length)" if len(plain) > most else plain
    return "\n".join(f"> {line}".rstrip() for line in cut.splitlines()) or "> (nothing)"
