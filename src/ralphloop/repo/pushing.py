"""A run's branch on its way to the remote: never forced, never onto the default branch.

A run that worked on the default branch goes to `ralph/<run>` of the remote; nothing here changes.
What the remote has is asked first, so that everything that stands in the way is said before a
single object is sent.  The push itself is the user's own `git push`, with their hooks and login.
"""

from __future__ import annotations

import re

import msgspec

from ralphloop.errors import GitHubUnavailable, RalphError, RepositoryError
from ralphloop.proc.run import Ended
from ralphloop.repo.git import READ_TIMEOUT_S, Git, failure
from ralphloop.repo.github import is_offline, not_allowed, offline
from ralphloop.text.plain import one_line

_TIMEOUT_S = 900.0
_TELLING = re.compile(
    r"(?:remote: )?((?:error|fatal):.*|GH0\d\d.*|Permission.*|.*refusing.*)", re.I
)
_PROTECTED = re.compile("protected branch|GH006|GH013|repository rule violations", re.I)
_DENIED = re.compile("denied to |error: 403|access to repository not granted|read-only", re.I)
_NO_LOGIN = re.compile(
    r"could not read Username|Authentication failed|Permission denied \(publickey|Host key verif",
    re.IGNORECASE,
)


class Offer(msgspec.Struct, frozen=True):
    """What is pushed, and where to."""

    remote: str
    source: str  # the local branch
    commit: str
    branch: str  # its name there
    base: str
    is_there: bool  # the remote has all of it


def offer(git: Git, remote: str, source: str, run: str, *, default: str, base: str) -> Offer:
    """Look at both sides; raises where a plain push would not do, or nothing would come of it."""
    found = git.attempt("rev-parse", "--verify", "--quiet", f"refs/heads/{source}^{{commit}}")
    if found.returncode:
        raise RepositoryError(f"the branch {source} of run {run} is no longer here", "git branch")
    commit = found.stdout.decode().strip()
    branch = f"ralph/{run}" if source in (default, base) else source
    there = _heads(git, remote, base, branch)
    if base not in there:
        raise RepositoryError(f"{remote} has no branch {base}", "Name another one: --base BRANCH")
    if _contains(git, there[base], commit):
        raise RepositoryError(
            f"there is nothing to push: {base} of {remote} has all of {source} already",
            "`git log` shows what is committed, `git status` what is not",
        )
    has = there.get(branch)
    is_there = has is not None and _contains(git, has, commit)
    if has and not is_there and not _contains(git, commit, has):
        raise _diverged(remote, branch)
    return Offer(remote, source, commit, branch, base, is_there)


def push(git: Git, what: Offer) -> None:
    """Send it, unless it is there."""
    where = f"{what.commit}:refs/heads/{what.branch}"
    args = ("push", "--porcelain", "--no-follow-tags", "--", what.remote, where)
    if not what.is_there:
        ended = git.writing().attempt(*args, timeout_s=_TIMEOUT_S)
        if ended.timed_out or ended.returncode:
            raise _failure(args, ended, _TIMEOUT_S, what.remote, what.branch)


def _heads(git: Git, remote: str, *branches: str) -> dict[str, str]:
    args = ("ls-remote", "--", remote, *(f"refs/heads/{name}" for name in branches))
    ended = git.attempt(*args)
    if ended.timed_out or ended.returncode:
        raise _failure(args, ended, READ_TIMEOUT_S, remote, "")
    lines = (line.split("\t") for line in ended.stdout.decode("utf-8", "replace").splitlines())
    return {name.removeprefix("refs/heads/"): commit for commit, name in lines}


def _contains(git: Git, commit: str, part: str) -> bool:
    """Whether a commit has another one behind it; what is not here is not known to."""
    return git.attempt("merge-base", "--is-ancestor", part, commit).returncode == 0


def _diverged(remote: str, branch: str) -> RepositoryError:
    return RepositoryError(
        f"{branch} of {remote} has commits that are not here, and nothing is ever forced",
        f"Look: git fetch {remote} && git log ..{remote}/{branch}. To take them:"
        f" git merge {remote}/{branch}; then the same command again",
    )


def _failure(
    args: tuple[str, ...], ended: Ended, timeout_s: float, remote: str, branch: str
) -> RalphError:
    """Why git could not, in words."""
    said = (ended.stderr + ended.stdout).decode("utf-8", "replace")
    lines = filter(None, map(_TELLING.match, said.splitlines()))
    why = next((one_line(line[1]) for line in lines), "") or one_line(said)
    if "non-fast-forward" in said or "fetch first" in said:
        return _diverged(remote, branch)
    if _DENIED.search(said):
        return not_allowed(remote, why)
    if is_offline(said):
        return offline(remote)
    if _PROTECTED.search(said):
        step = "Settings, Branches or Rules of the repository say why; or use another branch"
    elif _NO_LOGIN.search(said):
        step = "gh auth setup-git lets git use gh's login; over ssh try: ssh -T git@github.com"
    elif "`workflow` scope" in said:
        step = "gh auth refresh -s workflow"
    else:
        message = failure(args, ended, timeout_s).message
        return RepositoryError(message, "Try it yourself: git push; git remote -v shows where to")
    return GitHubUnavailable(f"{remote} did not take {branch or 'the login'}: {why}", step)
