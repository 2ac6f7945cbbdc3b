"""GitHub through the `gh` the user has, and their own `git push`: what lies behind is not believed.

`gh api` answers the same in every version of gh, and gh keeps the login: no token passes here.

A push is never forced and never goes to the default branch: what was made there goes to
`ralph/<run>`.  Whatever stands in the way is said before a single object is sent.

Issues are text of strangers: bounded, without control characters, secrets and HTML comments, each
line a quotation, so that nothing in them looks like their frame.
"""

import os
import re
import tomllib
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from functools import cache
from importlib.resources import files
from typing import NamedTuple, TypeVar

import msgspec

from ralphloop.errors import GitHubUnavailable, NotOnGitHub, RalphError, RepositoryError, UsageError
from ralphloop.proc import programs
from ralphloop.proc.run import CommandEnd, run_command
from ralphloop.proc.sandbox import Box
from ralphloop.redaction import redact, secret_values
from ralphloop.repo.git import ANYHOW, Git, failure, first_lines
from ralphloop.text.plain import clean, counted, one_line

_TIMEOUT_S = 60.0
_PUSH_TIMEOUT_S = 900.0
_LARGEST = 8 * 1024 * 1024
_MOST_ISSUES = 20
_MOST_COMMENTS = 30
_LONGEST_TEXT = 20_000
_LONGEST_COMMENT = 4_000
_LONGEST_IN_ALL = 80_000
_PLAIN = {"GH_PROMPT_DISABLED": "1", "GH_NO_UPDATE_NOTIFIER": "1", "NO_COLOR": "1"}
_NOT_HERE = {"GH_REPO", "GH_HOST", "GH_DEBUG", "GH_FORCE_TTY", "DEBUG", "CLICOLOR_FORCE"}
_OWN = r"(?:[^@/]{1,200}@)?"
_REST = r"([\w.-]{1,100})/([\w.-]{1,100}?)(?:\.git)?/?"
_PORT = r"(?::\d{1,5}/|:/?|/)"
_ADDRESS = re.compile(rf"(?=\w+://|[^/]*:)(?:\w+://)?{_OWN}([\w.-]{{2,200}}){_PORT}{_REST}")
_HIDDEN = re.compile(r"<!--.*?(?:-->|\Z)", re.DOTALL)
_TELLING = re.compile(r"(?:remote: )?((?:error: (?!failed to push)|fatal:|Permission|refusing).*)")
_T = TypeVar("_T")


class HubPlace(msgspec.Struct, frozen=True):
    host: str
    owner: str
    name: str

    def __str__(self) -> str:
        here = "" if self.host == "github.com" else f"{self.host}/"
        return f"{here}{self.owner}/{self.name}"

    def path(self, *parts: object) -> str:
        return "/".join(("repos", self.owner, self.name, *map(str, parts)))


class Remote(NamedTuple):
    """A remote by its name, and what it is on GitHub."""

    name: str
    place: HubPlace | None  # None: a path, or another host


class KnownPlace(NamedTuple):
    """A repository that GitHub knows."""

    place: HubPlace
    default_branch: str


class _Repository(msgspec.Struct):
    default_branch: str


class Offer(msgspec.Struct, frozen=True):
    remote: str
    source: str  # the local branch
    commit: str
    branch: str  # its name there
    base: str
    is_there: bool  # the remote has all of it


def place_of(address: str) -> HubPlace | None:
    """The repository a remote's address names; None where it is a path or something else."""
    if not (found := _ADDRESS.fullmatch(address)):
        return None
    host = found[1].lower().removeprefix("www.")
    return HubPlace("github.com" if host == "ssh.github.com" else host, found[2], found[3])


def remote_of(git: Git, branch: str, wanted: str | None) -> Remote:
    """The remote that a branch is pushed to, and what it is on GitHub."""
    names = git.line("remote").split()
    told = git.line("for-each-ref", "--format=%(push:remotename)", f"refs/heads/{branch}")
    usual = [one for one in (told, "origin") if one in names]
    likely = [wanted] if wanted else usual
    if not likely and len(names) > 1:
        raise RepositoryError(f"which remote? {', '.join(names)[:200]}", "--remote NAME")
    name = next(iter(likely or names), "")
    if name not in names:
        what = f"there is no remote {wanted[:60]!r}" if wanted else "this repository has no remote"
        raise RepositoryError(what, "git remote add origin https://github.com/OWNER/NAME")
    # With `insteadOf` either the written or the resulting address is the one of GitHub.
    written = git.line("config", "--get", f"remote.{name}.url", ok=(0, 1))
    real = git.line("remote", "get-url", "--push", name)
    return Remote(name, place_of(real) or place_of(written))


def ask_of(repo: str | None, remote: HubPlace | None) -> KnownPlace:
    """The repository that is meant, the named one first, as GitHub knows it."""
    place = remote
    if repo:
        host = "" if repo.count("/") > 1 else "github.com/"
        place = place_of(f"https://{host}{repo}")
    if place is None:
        raise RepositoryError(
            f"{one_line(repo or 'the remote', 100)} is no address of a repository on GitHub",
            "git remote -v shows it; name the repository yourself: --repo OWNER/NAME",
        )
    if place.host != "github.com" and not place.host.endswith(".ghe.com"):
        ended = _gh("auth", "status", "--hostname", place.host)
        if ended.returncode:
            raise trouble(ended.said, place)
    return KnownPlace(place, call(place, place.path(), _Repository, {}).default_branch)


def call(
    place: HubPlace, path: str, kind: type[_T], fields: Mapping[str, object], method: str = "GET"
) -> _T:
    """One answer of GitHub; raises with words where there is none."""
    answer = _answer(place, path, fields, method)
    try:
        return msgspec.json.decode(answer, type=kind)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        said = one_line(answer[:400].decode("utf-8", "replace"), 80)
        raise GitHubUnavailable(
            f"gh answered what cannot be read: {said or 'nothing'}", f"See yourself: gh api {path}"
        ) from None


def ask_text(place: HubPlace, path: str) -> str:
    """An answer that is plain text, such as the log of a job."""
    return _answer(place, path, {}, "GET").decode("utf-8", "replace")


def send(place: HubPlace, path: str, fields: Mapping[str, object], method: str = "POST") -> None:
    """Change something there whose answer nobody reads; raises where that was refused."""
    _answer(place, path, fields, method)


def _answer(place: HubPlace, path: str, fields: Mapping[str, object], method: str) -> bytes:
    given = msgspec.json.encode(fields) if method != "GET" else b""
    asked = [f"--raw-field={key}={value}" for key, value in fields.items()]
    if given:
        asked = ["--input", "-"]
    ended = _gh("api", "--hostname", place.host, "--method", method, path, *asked, stdin=given)
    if ended.returncode:
        said = ended.stderr.decode("utf-8", "replace")
        said = f"{said}\nexit code {ended.returncode}"
        raise trouble(said, place, path.removeprefix("repos/"), _told(ended.stdout) or said)
    return ended.stdout


def _gh(*words: str, stdin: bytes = b"") -> CommandEnd:
    """How the person's own gh ended; raises where it cannot be asked."""
    if (program := programs.find("gh")) is None:
        raise GitHubUnavailable(
            "gh, the command line of GitHub, is not installed",
            "apt install gh, brew install gh or https://cli.github.com; then: gh auth login",
        )
    kept = {key: value for key, value in os.environ.items() if key not in _NOT_HERE}
    env = programs.trusted_environment(kept) | _PLAIN
    try:
        argv = (program, *words)
        ended = run_command(argv, env=env, stdin=stdin, timeout_s=_TIMEOUT_S, keep=_LARGEST)
    except OSError as error:
        raise GitHubUnavailable(f"gh could not be started: {error.strerror}") from None
    if ended.timed_out or ended.overflowed:
        what = f"did not answer within {_TIMEOUT_S:g} s" if ended.timed_out else "said too much"
        raise GitHubUnavailable(f"gh {what}", "Try again; https://www.githubstatus.com")
    return ended


def _told(answer: bytes) -> str:
    """What GitHub complains of, in its own words; empty: nothing."""
    try:
        data = msgspec.json.decode(answer, type=dict[str, object])
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return ""
    parts = [data.get("message")]
    errors = data.get("errors")
    for one in errors if isinstance(errors, list) else []:
        if isinstance(one, dict):
            parts.append(one.get("message") or f"{one.get('field')} {one.get('code')}")
    return "; ".join(str(part) for part in parts if part)


class _Trouble(msgspec.Struct):
    said: str
    words: str
    step: str
    here: bool = False
    missing: bool = False


@cache
def _troubles() -> list[_Trouble]:
    text = (files("ralphloop.repo") / "data" / "github.toml").read_text("utf-8")
    return msgspec.convert(tomllib.loads(text)["trouble"], list[_Trouble])


def trouble(said: str, where: object, what: str = "the login", why: str = "") -> RalphError:
    """The error that gh's or git's words stand for, with the way out."""
    found = next(it for it in _troubles() if re.search(it.said, f"{said}\n{why}", re.I | re.M))
    names = {"where": where, "host": getattr(where, "host", where), "what": what}
    names["why"] = redact(one_line(why or said, 300), secret_values(os.environ))
    kind: type[RalphError] = NotOnGitHub if found.missing else GitHubUnavailable
    if found.here:
        kind = RepositoryError
    return kind(found.words.format(**names), found.step.format(**names))


def offer(git: Git, remote: str, source: str, run: str, base: str, kept: Collection[str]) -> Offer:
    """Look at both sides; raises where a plain push would not do, or nothing would come of it."""
    found = git.attempt("rev-parse", "--verify", "--quiet", f"refs/heads/{source}^{{commit}}")
    if found.returncode:  # lanes take it away once the checkout has all of it
        source = git.line("branch", "--show-current")
        found = git.attempt("rev-parse", "HEAD")
        mine = ("--fixed-strings", f"--grep=Ralph-Run: {run}", "--format=%H", "HEAD", "--")
        if not source or not git.attempt("log", "-1", *mine).stdout:
            raise RepositoryError(f"the branch of run {run} is no longer here", "git branch")
    commit = found.stdout.decode().strip()
    branch = f"ralph/{run}" if source in kept else source
    there = heads_there(git, remote, (base, branch))
    if base in kept and base not in there:
        raise RepositoryError(f"{remote} has no branch {base}", "Name another one: --base BRANCH")
    if git.contains(there.get(base, ""), commit):
        raise RepositoryError(
            f"there is nothing to push: {base} of {remote} has all of {source} already",
            "`git log` shows what is committed, `git status` what is not",
        )
    has = there.get(branch)
    is_there = has is not None and git.contains(has, commit)
    if has and not is_there and not git.contains(commit, has):
        raise trouble("fetch first", remote, branch)
    return Offer(remote, source, commit, branch, base, is_there)


def heads_there(git: Git, remote: str, branches: Sequence[str]) -> dict[str, str]:
    """Those of the branches that the remote has, with their commits."""
    heads = (f"refs/heads/{name}" for name in branches)
    listed = _remotely(git, remote, branches[-1], "ls-remote", "--", remote, *heads)
    lines = (line.split("\t") for line in listed.splitlines())
    return {name.removeprefix("refs/heads/"): its for its, name in lines}


def fetch_base(git: Git, remote: str, base: str) -> str:
    """The commit that the base is on there, brought here under a ref of our own."""
    ref = f"refs/ralph/base/{base}"
    how = ("--quiet", "--no-tags", "--no-write-fetch-head", "--recurse-submodules=no")
    args = ("fetch", *how, "--", remote, f"+refs/heads/{base}:{ref}")
    _remotely(git.writing(), remote, base, *args, timeout_s=_PUSH_TIMEOUT_S)
    return git.line("rev-parse", "--verify", f"{ref}^{{commit}}")


def push(git: Git, what: Offer) -> None:
    """Push what was offered; where git is confined, hooks run in its box and the push outside."""
    where = f"{what.commit}:refs/heads/{what.branch}"
    if git.box is not None and not what.is_there:
        _before_push(git, git.box, what)
        git = git.confined(None).adapted(config=(f"core.hooksPath={os.devnull}",))
    how = ("--porcelain", "--no-follow-tags", "--recurse-submodules=no")
    args = ("push", *how, "--", what.remote, where)
    if not what.is_there:
        _remotely(git.writing(), what.remote, what.branch, *args, timeout_s=_PUSH_TIMEOUT_S)


def _before_push(git: Git, box: Box, what: Offer) -> None:
    """Run the person's `pre-push` hook in the box; raises where it refuses."""
    hook = git.cwd / git.line("rev-parse", "--git-path", "hooks/pre-push")
    if not hook.is_file() or not os.access(hook, os.X_OK):
        return
    nothing = "0" * len(what.commit)
    told = f"refs/heads/{what.source} {what.commit} refs/heads/{what.branch} {nothing}\n"
    address = git.line("remote", "get-url", "--push", "--", what.remote, ok=ANYHOW)
    argv = (str(hook), what.remote, address or what.remote)
    by_hand = f"git push {what.remote} {what.commit[:12]}:refs/heads/{what.branch}"
    step = f"Look at it and push yourself: {by_hand}, then the same command again."
    try:
        inside = box.start(argv, git.cwd, git.writing().inherited)
        ended = run_command(
            inside.argv,
            cwd=git.cwd,
            env=inside.env,
            stdin=told.encode(),
            timeout_s=_PUSH_TIMEOUT_S,
        )
    except OSError as error:
        raise RepositoryError(f"the pre-push hook cannot be run: {error.strerror}", step) from None
    finally:
        box.disarm()
    if ended.returncode != 0 or ended.timed_out:
        said = first_lines(ended.stderr or ended.stdout) or f"exit code {ended.returncode}"
        raise RepositoryError(f"the pre-push hook failed in the sandbox: {said}", step)


def _remotely(git: Git, remote: str, branch: str, *args: str, timeout_s: float = 0.0) -> str:
    """What a git prints that talks to a remote; raises in words of ours where it fails."""
    ended = git.attempt(*args, timeout_s=timeout_s)
    said = (ended.stderr + ended.stdout).decode("utf-8", "replace")
    if ended.timed_out or ended.returncode:
        lines = filter(None, map(_TELLING.match, said.splitlines()))
        plain = failure(args, ended).message
        raise trouble(f"{said}\n{plain}", remote, branch, next((it[1] for it in lines), plain))
    return ended.stdout.decode("utf-8", "replace")


class _Said(msgspec.Struct):
    """An issue, or a comment on one."""

    number: int = 0
    title: str | None = None
    body: str | None = None
    user: dict[str, object] | None = None
    author_association: str = "unknown"
    comments: int = 0
    pull_request: object = None

    def quoted(self, most: int) -> str:
        """Who says it and what they are to the repository, then what its page would show."""
        by = f"{(self.user or {}).get('login', 'somebody')} ({self.author_association.lower()})"
        plain = clean(_HIDDEN.sub("", (self.body or "")[: most * 4])).strip()
        cut = f"{plain[:most]}\n(cut here for length)" if len(plain) > most else plain
        lines = (f"> {line}".rstrip() for line in cut.splitlines() or ["(nothing)"])
        return f"{one_line(by, 100)}:\n\n" + "\n".join(lines)


def issues_as_text(
    git: Git, numbers: Sequence[int], labels: Iterable[str] = (), *, repo: str | None = None
) -> str:
    """Issues by number, and open ones by label, as quoted and bounded text for a prompt."""
    remote = None if repo else remote_of(git, "", None).place
    place = ask_of(repo, remote).place
    found = [call(place, place.path("issues", n), _Said, {}) for n in numbers[:_MOST_ISSUES]]
    for label in labels:
        asked = {"labels": label, "state": "open", "per_page": _MOST_ISSUES}
        listed = call(place, place.path("issues"), list[_Said], asked)
        if not (issues := [one for one in listed if one.pull_request is None]):
            raise UsageError(f"no open issue of {place} has the label {label[:60]!r}")
        found += issues
    parts = []
    room = _LONGEST_IN_ALL
    for issue in list({one.number: one for one in found}.values())[:_MOST_ISSUES]:
        told = redact("\n\n".join(_telling(place, issue)), secret_values(os.environ))
        parts.append(told if len(told) <= room else f"{told[:room]}\n\n(cut here for length)")
        room = max(0, room - len(told))
    return "\n\n".join(parts)


def _telling(place: HubPlace, issue: _Said) -> Iterator[str]:
    """The paragraphs of an issue: its title, what it says, what others say to it."""
    yield f"# Issue {issue.number}: {one_line(issue.title or 'without a title', 200)}"
    yield f"By {issue.quoted(_LONGEST_TEXT)}"
    if not issue.comments:
        return
    path = place.path("issues", issue.number, "comments")
    comments = call(place, path, list[_Said], {"per_page": _MOST_COMMENTS})[:_MOST_COMMENTS]
    for comment in comments:
        yield f"Comment by {comment.quoted(_LONGEST_COMMENT)}"
    more = issue.comments - len(comments)
    if more > 0:
        yield f"({counted(more, 'newer comment')} left out)"
