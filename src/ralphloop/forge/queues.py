"""Where items come from and what is told about them: issues of GitHub, or a program of the person.

A queue offers items, lets one of several claim each, takes reports and gives answers.  Whose items
and answers count is the queue's own business: GitHub's are those of people who may write, and the
program answers for its own.
"""

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from ralphloop.core.queueing import (
    LARGEST_ITEM,
    MOST_CRITERIA,
    QueueAnswer,
    QueueEntry,
    QueueItem,
    QueueReport,
    ReportKind,
)
from ralphloop.errors import GitHubUnavailable, InputError, NotOnGitHub, RalphError, UsageError
from ralphloop.forge.evidence import criteria_table
from ralphloop.forge.pulls import PAGE, may_write, say, talk
from ralphloop.forge.words import plain
from ralphloop.proc.programs import Beginning
from ralphloop.proc.run import run_command
from ralphloop.redaction import redact, secret_values
from ralphloop.repo.github import HubPlace, call, send
from ralphloop.text.plain import one_line

GITHUB = "github:"
_MOST_ITEMS = 20
_MOST_PAGES = 3
_LONGEST_TITLE = 160
_LONGEST_ANSWER = 4_000
_WORKING = "ralph-working"
_OVER = {ReportKind.PASSED: "ralph-done", ReportKind.FAILED: "ralph-failed"}
_ASKS = {ReportKind.QUESTION, ReportKind.WAITS}
_CLAIM = re.compile(r"<!-- ralph: claim ([0-9a-f]{8,64}) -->")
_TIMEOUT_S = 120.0
_LARGEST_ANSWER = 4 * 1024 * 1024
_T = TypeVar("_T")
Tell = Callable[[str], None]


class Queue(Protocol):
    def offered(self) -> list[QueueItem]:
        """What waits and may be taken."""

    def claim(self, item: QueueItem, token: str) -> bool:
        """Take an item; False where another one has it."""

    def report(self, entry: QueueEntry, news: QueueReport) -> None:
        """Tell something about an item; the same key twice is told once."""

    def answers(self, entry: QueueEntry) -> list[QueueAnswer]:
        """What was answered since something was asked."""


# --- GitHub ------------------------------------------------------------------------------------


class _Name(msgspec.Struct):
    name: str = ""


class _Login(msgspec.Struct):
    login: str = ""


class _Issue(msgspec.Struct):
    number: int
    title: str | None = None
    body: str | None = None
    user: _Login | None = None
    html_url: str = ""
    pull_request: object = None


class _Happened(msgspec.Struct):
    event: str = ""
    label: _Name | None = None
    actor: _Login | None = None


class WantedIssues(NamedTuple):
    label: str
    repository: str = ""  # empty: that of the remote


def wanted_issues(words: str) -> WantedIssues:
    """What `github:label=ralph,repo=owner/name` means; raises where it means nothing."""
    known = {"label": "", "repo": ""}
    for part in words.removeprefix(GITHUB).split(","):
        key, sign, value = part.partition("=")
        if key not in known or not sign or not value:
            raise UsageError(
                f"{one_line(words, 80)} is no queue of GitHub",
                "--from github:label=ralph, with ,repo=OWNER/NAME where it is another one",
            )
        known[key] = value
    if not known["label"]:
        raise UsageError("the queue has no label", "--from github:label=ralph")
    return WantedIssues(known["label"], known["repo"])


class HubQueue:
    """Open issues with a label, of authors who may write, labelled by somebody who may."""

    def __init__(self, place: HubPlace, label: str, tell: Tell) -> None:
        self._place = place
        self._label = label
        self._tell = tell
        self._said = set[str]()

    def offered(self) -> list[QueueItem]:
        may_write.cache_clear()
        asked = {
            "labels": self._label,
            "state": "open",
            "sort": "created",
            "direction": "asc",
            "per_page": PAGE,
        }
        listed = call(self._place, self._place.path("issues"), list[_Issue], asked)
        found = []
        for issue in listed:
            if issue.pull_request is None and self._is_allowed(issue):
                found.append(self._item(issue))
        return found[:_MOST_ITEMS]

    def _item(self, issue: _Issue) -> QueueItem:
        return QueueItem(
            id=f"{self._place}#{issue.number}",
            title=one_line(plain(issue.title or "", _LONGEST_TITLE), _LONGEST_TITLE),
            text=plain(issue.body or "", LARGEST_ITEM),
            by=issue.user.login if issue.user else "",
            url=issue.html_url,
        )

    def _is_allowed(self, issue: _Issue) -> bool:
        """Whether both who wrote it and who labelled it may write; who may not is named once."""
        author = issue.user.login if issue.user else ""
        if not may_write(self._place, author):
            self._leave(issue, f"{author or 'nobody'}, who wrote it, may not write here")
            return False
        labeller = self._labeller(issue.number)
        if not may_write(self._place, labeller):
            self._leave(issue, f"{labeller or 'nobody'}, who labelled it, may not write here")
            return False
        return True

    def _labeller(self, number: int) -> str:
        """Who put the label on it last; empty where nobody is known to have."""
        path = self._place.path("issues", number, "timeline")
        last = ""
        for page in range(1, _MOST_PAGES + 1):
            asked = {"per_page": PAGE, "page": page}
            events = call(self._place, path, list[_Happened], asked)
            for one in events:
                is_ours = one.label is not None and one.label.name == self._label
                if one.event == "labeled" and is_ours:
                    last = one.actor.login if one.actor else ""
            if len(events) < PAGE:
                return last
        return ""  # more happened to it than is read: the last label may be anybody's

    def _leave(self, issue: _Issue, why: str) -> None:
        words = f"issue {issue.number} is left: {why}"
        if words not in self._said:
            self._said.add(words)
            self._tell(one_line(words, 200))

    def claim(self, item: QueueItem, token: str) -> bool:
        number = _number(item.id)
        first = self._first_claim(number)
        if not first:
            say(self._place, number, f"ralph takes this up.\n\n<!-- ralph: claim {token} -->")
            first = self._first_claim(number)
        if first != token:
            self._withdraw(number, token)
            return False
        send(self._place, self._labels(number), {"labels": [_WORKING]})
        return True

    def _first_claim(self, number: int) -> str:
        """The token of the oldest claim of somebody who may write; empty: there is none."""
        for remark in sorted(talk(self._place, number), key=lambda it: it.id):
            found = _CLAIM.search(remark.body or "")
            if found and may_write(self._place, remark.by):
                return found[1]
        return ""

    def _withdraw(self, number: int, token: str) -> None:
        for remark in talk(self._place, number):
            found = _CLAIM.search(remark.body or "")
            if found and found[1] == token:
                path = self._place.path("issues", "comments", remark.id)
                send(self._place, path, {}, "DELETE")

    def _labels(self, number: int) -> str:
        return self._place.path("issues", number, "labels")

    def report(self, entry: QueueEntry, news: QueueReport) -> None:
        if news.kind is ReportKind.STARTED:
            return  # the claim says so
        number = _number(entry.item.id)
        mark = f"<!-- ralph: {news.key} -->"
        if not any(mark in (it.body or "") for it in talk(self._place, number)):
            table = criteria_table(news.criteria)
            parts = [news.text, table, mark]
            text = "\n\n".join(part for part in parts if part)
            say(self._place, number, redact(text, secret_values(os.environ)))
        if news.kind in _OVER:
            send(self._place, self._labels(number), {"labels": [_OVER[news.kind]]})
            for label in (_WORKING, self._label):
                self._take_label(number, label)

    def _take_label(self, number: int, label: str) -> None:
        path = f"{self._labels(number)}/{quote(label, safe='')}"
        try:
            send(self._place, path, {}, "DELETE")
        except NotOnGitHub:
            return  # somebody took it already

    def answers(self, entry: QueueEntry) -> list[QueueAnswer]:
        may_write.cache_clear()
        asked = f"<!-- ralph: {entry.told[-1]} -->" if entry.told else ""
        is_after = False
        found: list[QueueAnswer] = []
        for remark in talk(self._place, _number(entry.item.id)):
            body = remark.body or ""
            if asked and asked in body:
                is_after = True
                found = []
            elif is_after and "<!-- ralph:" not in body and may_write(self._place, remark.by):
                text = plain(body, _LONGEST_ANSWER)
                found.append(QueueAnswer(id=str(remark.id), text=text, by=remark.by))
        return found


def _number(item: str) -> int:
    return int(item.rpartition("#")[2])


# --- a program ---------------------------------------------------------------------------------


class _Listed(msgspec.Struct):
    items: list[QueueItem] = []


class _Claimed(msgspec.Struct):
    claimed: bool = False


class _Answers(msgspec.Struct):
    answers: list[QueueAnswer] = []


class CommandQueue:
    """A program of the person: one word says what is asked, JSON goes in and comes out."""

    def __init__(self, argv: Sequence[str], begin: Callable[[Sequence[str]], Beginning]) -> None:
        self._argv = tuple(argv)
        self._begin = begin

    def offered(self) -> list[QueueItem]:
        found = self._ask("list", {}, _Listed).items[:_MOST_ITEMS]
        return [_bounded(one) for one in found if one.id and one.title]

    def claim(self, item: QueueItem, token: str) -> bool:
        return self._ask("claim", {"id": item.id, "token": token}, _Claimed).claimed

    def report(self, entry: QueueEntry, news: QueueReport) -> None:
        told = msgspec.to_builtins(news)
        secrets = secret_values(os.environ)
        told["text"] = redact(news.text, secrets)
        told["criteria"] = [
            {"criterion": redact(it.criterion, secrets), "evidence": redact(it.words, secrets)}
            for it in news.criteria
        ]
        self._ask("report", told, dict[str, object])

    def answers(self, entry: QueueEntry) -> list[QueueAnswer]:
        asked = {"id": entry.item.id, "key": entry.told[-1] if entry.told else ""}
        found = self._ask("answers", asked, _Answers).answers
        return [
            msgspec.structs.replace(one, text=plain(one.text, _LONGEST_ANSWER)) for one in found
        ]

    def _ask(self, what: str, given: Mapping[str, object], kind: type[_T]) -> _T:
        name = shlex.join(self._argv)
        begun = self._begin((*self._argv, what))
        data = msgspec.json.encode({"v": 1, **given})
        try:
            ended = run_command(
                begun.argv,
                env=begun.env,
                stdin=data,
                timeout_s=_TIMEOUT_S,
                keep=_LARGEST_ANSWER,
            )
        except OSError as error:
            raise InputError(f"{name} cannot be started: {error.strerror}") from None
        if ended.returncode or ended.timed_out or ended.overflowed:
            said = one_line(ended.stderr.decode("utf-8", "replace"), 200)
            why = "took too long" if ended.timed_out else said or f"ended with {ended.returncode}"
            raise QueueUnavailable(f"{name} {what}: {redact(why, secret_values(os.environ))}")
        try:
            return msgspec.json.decode(ended.stdout or b"{}", type=kind)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise InputError(
                f"{name} {what} answered what is not expected: {one_line(str(error), 160)}",
                "`ralph docs queue` says what it has to print",
            ) from None


class QueueUnavailable(GitHubUnavailable):
    """The program that has the items did not answer."""


def _bounded(item: QueueItem) -> QueueItem:
    """An item without secrets, control characters and more than is read."""
    return QueueItem(
        id=one_line(item.id, 200),
        title=one_line(plain(item.title, _LONGEST_TITLE), _LONGEST_TITLE),
        text=plain(item.text, LARGEST_ITEM),
        criteria=tuple(one_line(plain(it, 400), 300) for it in item.criteria[:MOST_CRITERIA]),
        by=one_line(item.by, 60),
        url=one_line(item.url, 300),
    )


def is_temporary(error: RalphError) -> bool:
    """Whether looking again later may help: a network, a service that is away."""
    return isinstance(error, GitHubUnavailable)
