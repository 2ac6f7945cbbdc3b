"""A repository whose remote is on GitHub as far as it knows, a stand-in for gh, a scripted GitHub.

The remote's address is one of github.com; git is told (`insteadOf`) that a bare repository on this
disk is meant.  `StandIn` is a gh that answers from a table, for everything the real one does only
on bad days; `GitHub` is a server for the real one (`tests/e2e/test_gh.py`).
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import Any
from urllib.parse import parse_qs, unquote

from tests.loop.projects import Sandbox, sandbox

WRITES = "write(f'{STORY}.txt', STORY); done()"
VERIFIED = {"verify": ["test", "-f", "US-1.txt"]}
REPO = "repos/owner/shop"
UNKNOWN = 'Hostname "git.example.com" not found among authenticated GitHub hosts'
STAND_IN = """\
#!{python} -SE
import json, os, sys, time
words = sys.argv[1:]
place = {place!r}
given = sys.stdin.read() if "--input" in words else ""
method = words[words.index("--method") + 1] if "--method" in words else "-"
path = words[5] if method != "-" else " ".join(words)
with open(place + "/calls", "a") as calls:
    query = "&".join(word.partition("=")[2] for word in words if word.startswith("--raw-field="))
    calls.write(json.dumps([method, f"{{path}}?{{query}}", given]) + "\\n")
answers = json.load(open(place + "/answers.json"))
answer = answers.get(f"{{method}} {{path}}") or answers.get(path) or [1, "", f"no answer for {{path}}"]
code, out, err = answer
time.sleep(answers.get("sleep", 0))
sys.stdout.write(out if isinstance(out, str) else json.dumps(out))
sys.stderr.write(err)
sys.exit(code)
"""


def pull(number: int = 7, **more: Any) -> dict[str, Any]:
    """A pull request as GitHub tells it."""
    return {
        "number": number,
        "html_url": f"https://github.com/owner/shop/pull/{number}",
        "state": "open",
        "draft": True,
        "merged_at": None,
        "title": "ralph: 1 of 1 story passed",
        "body": "",
        "node_id": f"PR_{number}",
        "head": {"label": "owner:work", "ref": "work"},
        **more,
    }


def repository(**more: Any) -> dict[str, Any]:
    """The repository as GitHub tells it."""
    return {
        "full_name": "owner/shop",
        "default_branch": "main",
        "permissions": {"push": True},
        **more,
    }


class StandIn:
    """A gh on PATH that answers from a table: `METHOD path` or `path` → exit code, stdout, stderr."""

    def __init__(self, place: Path) -> None:
        self.place = place
        place.mkdir()
        program = place / "gh"
        program.write_text(STAND_IN.format(python=sys.executable, place=str(place)))
        program.chmod(0o755)
        self.answers: dict[str, Any] = {
            REPO: [0, repository(), ""],
            f"GET {REPO}/pulls": [0, [], ""],
            f"POST {REPO}/pulls": [0, pull(), ""],
            f"PATCH {REPO}/pulls/7": [0, pull(), ""],
            "graphql": [0, {"data": {}}, ""],
            "auth status --hostname git.example.com": [1, "", UNKNOWN],
        }
        self.save()

    def save(self) -> None:
        """Let it know."""
        (self.place / "answers.json").write_text(json.dumps(self.answers))

    def forget(self) -> None:
        """As if nothing had been asked."""
        (self.place / "calls").unlink(missing_ok=True)

    def fail(self, path: str, code: int, err: str, out: Any = "") -> None:
        """One call ends badly."""
        self.answers[path] = [code, out, err]
        self.save()

    @property
    def calls(self) -> list[tuple[str, str, Any]]:
        """Everything it was asked: method, path and fields."""
        path = self.place / "calls"
        lines = path.read_text().splitlines() if path.exists() else []
        found = [json.loads(line) for line in lines]
        return [
            (method, where, json.loads(given) if given else None) for method, where, given in found
        ]

    def sent(self, method: str) -> list[Any]:
        """The fields of the calls that change something."""
        return [fields for how, _, fields in self.calls if how == method]


class Shop:
    """A repository after one night on the branch `work`, with its remote and a gh."""

    def __init__(
        self, tmp_path: Path, agent: str = WRITES, branch: str = "work", **setting: Any
    ) -> None:
        setting.setdefault(
            "stories", [{"id": "US-1", "title": "Sell", "passes": False, **VERIFIED}]
        )
        self.box: Sandbox = sandbox(tmp_path, agent, **setting)
        self.bare = tmp_path / "shop.git"
        subprocess.run(
            ["git", "clone", "-q", "--bare", str(self.box.root), str(self.bare)], check=True
        )
        self.box.git("remote", "add", "origin", "https://github.com/owner/shop.git")
        self.box.git("config", f"url.{self.bare}.insteadOf", "https://github.com/owner/shop.git")
        if branch != "main":
            self.box.git("switch", "-q", "-c", branch)
        self.gh = StandIn(tmp_path / "gh")
        self.box.env["PATH"] = f"{self.gh.place}:{os.environ['PATH']}"

    def night(self) -> Shop:
        """One run."""
        done = self.box.run()
        assert done.code in (0, 2, 3, 4), done.text
        return self

    def heads(self) -> dict[str, str]:
        """The branches of the remote."""
        args = ["git", "for-each-ref", "--format=%(refname:short) %(objectname)", "refs/heads"]
        listed = subprocess.run(
            args, cwd=self.bare, capture_output=True, text=True, check=True
        ).stdout
        return {
            name: commit
            for name, _, commit in (line.partition(" ") for line in listed.splitlines())
        }

    def hook(self, words: str, name: str = "pre-receive") -> None:
        """The remote refuses what is pushed, with these words."""
        hook = self.bare / "hooks" / name
        hook.parent.mkdir(exist_ok=True)
        hook.write_text(f"#!/bin/sh\ncat >&2 <<'END'\n{words}\nEND\nexit 1\n")
        hook.chmod(0o755)


# --- for the real gh -------------------------------------------------------------------------


class GitHub(ThreadingUnixStreamServer):
    """The part of GitHub's REST that is asked, over a unix socket, as `http_unix_socket` of gh wants."""

    daemon_threads = True

    def __init__(self, place: Path) -> None:
        self.config = place / "gh-config"
        self.config.mkdir(parents=True)
        socket = place / "s"
        (self.config / "config.yml").write_text(f"http_unix_socket: {socket}\n")
        self.pulls: list[dict[str, Any]] = []
        self.issues: dict[int, dict[str, Any]] = {}
        self.comments: dict[int, list[dict[str, Any]]] = {}
        self.repository = repository()
        self.refusal: tuple[int, dict[str, Any]] | None = None
        self.bare: Path | None = None  # whose branches pull requests are of
        self.ci: Callable[[str], list[dict[str, Any]]] = lambda _commit: []
        self.mergeable: Callable[[], bool | None] = lambda: True
        self.logs: dict[int, str] = {}  # of jobs
        self.line_comments: list[dict[str, Any]] = []
        self.reviews: list[dict[str, Any]] = []
        self.resolved: set[int] = set()  # comments to lines whose thread is closed
        self.permissions: dict[str, str] = {
            "alice": "admin",
            "bob": "write",
            "eve": "read",
            "me": "write",
        }
        self.timeline: dict[int, list[dict[str, Any]]] = {}
        self.merged_commits: list[str] = []
        self._next = 1000
        self.token = "ghp_" + "a1B2" * 9
        self.asked: list[str] = []
        super().__init__(str(socket), _Answering)
        threading.Thread(target=self.serve_forever, daemon=True).start()

    @property
    def env(self) -> dict[str, str]:
        """What makes gh come here, logged in."""
        return {"GH_CONFIG_DIR": str(self.config), "GH_TOKEN": self.token}

    def get_request(self) -> tuple[Any, Any]:
        """A connection; a unix socket has no address to log."""
        return super().get_request()[0], ("gh", 0)

    def answer(self, method: str, path: str, query: str, fields: dict[str, Any]) -> tuple[int, Any]:
        """Status and JSON."""
        if self.refusal and method != "GET":
            return self.refusal
        if path == "/graphql":
            return 200, self._graphql(fields)
        what, _, rest = path.removeprefix(f"/{REPO}").lstrip("/").partition("/")
        known = {
            "pulls": self._pulls,
            "issues": self._issues,
            "commits": self._commits,
            "actions": self._actions,
            "collaborators": self._collaborators,
        }
        if what in known:
            return known[what](method, rest, query, fields)
        return (200, self.repository) if path == f"/{REPO}" else _NOT_FOUND

    def _graphql(self, fields: dict[str, Any]) -> dict[str, Any]:
        if "reviewThreads" in fields["query"]:
            threads = [
                {
                    "isResolved": one["id"] in self.resolved,
                    "comments": {"nodes": [{"databaseId": one["id"]}]},
                }
                for one in self.line_comments
            ]
            return {"data": {"repository": {"pullRequest": {"reviewThreads": {"nodes": threads}}}}}
        one = next(each for each in self.pulls if each["node_id"] == fields["variables"]["id"])
        one["draft"] = "convertPullRequestToDraft" in fields["query"]
        return {"data": {}}

    def next_id(self) -> int:
        """A number that nothing else has."""
        self._next += 1
        return self._next

    def head_of(self, branch: str) -> str:
        """The commit that a branch is on."""
        if self.bare is None:
            return ""
        args = ["git", "rev-parse", "--verify", "--quiet", f"refs/heads/{branch}"]
        return subprocess.run(
            args, cwd=self.bare, capture_output=True, text=True, check=False
        ).stdout.strip()

    def _shown(self, one: dict[str, Any]) -> dict[str, Any]:
        """A pull request as it is now: its ends are where the branches are."""
        ref = one["head"]["label"].partition(":")[2]
        base = one.get("base", "main")
        return {
            **one,
            "mergeable": self.mergeable(),
            "head": {**one["head"], "ref": ref, "sha": self.head_of(ref)},
            "base": {"ref": base, "sha": self.head_of(base)},
        }

    def _pulls(self, method: str, rest: str, query: str, fields: dict[str, Any]) -> tuple[int, Any]:
        number, _, what = rest.partition("/")
        if method == "GET" and not number:
            return 200, [self._shown(one) for one in reversed(self.pulls)]
        if method == "POST" and not number:
            more = {key: value for key, value in fields.items() if key != "head"}
            self.pulls.append(pull(len(self.pulls) + 7, head={"label": fields["head"]}, **more))
            return 201, self.pulls[-1]
        one = next(each for each in self.pulls if each["number"] == int(number))
        if what:
            return self._below_pull(one, method, what, query, fields)
        if method == "PATCH":
            one.update(fields)
        return 200, self._shown(one)

    def _below_pull(
        self, one: dict[str, Any], method: str, what: str, query: str, fields: dict[str, Any]
    ) -> tuple[int, Any]:
        if what == "reviews":
            return 200, _page(self.reviews, query)
        if what == "merge":
            sha = self._shown(one)["head"]["sha"]
            if fields.get("sha") != sha:
                return 409, {"message": "Head branch was modified"}
            one.update(state="closed", merged=True, merged_at="2026-01-02T03:04:05Z")
            self.merged_commits.append(sha)
            return 200, {"merged": True}
        if what == "comments":
            return 200, _page(self.line_comments[::-1], query)
        known, _, _ = what.removeprefix("comments/").partition("/")
        if not any(each["id"] == int(known) for each in self.line_comments):
            return _NOT_FOUND
        self.comment_line("me", fields["body"], in_reply_to_id=int(known))
        return 201, self.line_comments[-1]

    def comment_line(self, by: str, body: str, **more: Any) -> int:
        """Somebody comments on a line; the number of that."""
        number = self.next_id()
        told = {"id": number, "body": body, "user": {"login": by}, **more}
        self.line_comments.append(told)
        return number

    def ask_for(self, number: int, title: str, body: str, by: str = "bob", **more: Any) -> None:
        """Somebody opens an issue, and it gets the label `ralph`."""
        labeller = more.pop("labeller", "alice")
        self.issues[number] = {
            "number": number,
            "title": title,
            "body": body,
            "user": {"login": by},
            "author_association": "OWNER",
            "comments": 0,
            "labels": [{"name": "ralph"}],
            "html_url": f"https://github.com/owner/shop/issues/{number}",
            **more,
        }
        event = {"event": "labeled", "label": {"name": "ralph"}, "actor": {"login": labeller}}
        self.timeline[number] = [event]

    def comment(self, issue: int, by: str, body: str) -> int:
        """Somebody says something under an issue or a pull request; the number of that."""
        number = self.next_id()
        told = {"id": number, "body": body, "user": {"login": by}, "author_association": "OWNER"}
        self.comments.setdefault(issue, []).append(told)
        return number

    def _commits(self, _method: str, rest: str, _query: str, _fields: object) -> tuple[int, Any]:
        commit, _, what = rest.partition("/")
        if what == "status":
            return 200, {"state": "success", "statuses": []}
        return 200, {"check_runs": self.ci(commit)}

    def _actions(self, _method: str, rest: str, _query: str, _fields: object) -> tuple[int, Any]:
        job = int(rest.split("/")[1])
        return (200, self.logs[job]) if job in self.logs else _NOT_FOUND

    def _collaborators(self, _how: str, rest: str, _query: str, _fields: object) -> tuple[int, Any]:
        who = rest.partition("/")[0]
        if who not in self.permissions:
            return _NOT_FOUND
        return 200, {"permission": self.permissions[who]}

    def _issues(
        self, method: str, rest: str, query: str, fields: dict[str, Any]
    ) -> tuple[int, Any]:
        if not rest:
            found = [one for one in self.issues.values() if self._has_label(one, query)]
            return 200, found
        number, _, what = rest.partition("/")
        if number == "comments":  # one of them, whatever it is of
            for said in self.comments.values():
                said[:] = [one for one in said if one["id"] != int(what)]
            return 204, {}
        issue = int(number)
        if what == "comments" and method == "POST":
            self.comment(issue, "me", fields["body"])
            return 201, self.comments[issue][-1]
        if what == "comments":
            is_known = issue in self.comments or any(it["number"] == issue for it in self.pulls)
            return (
                (200, _page(self.comments.get(issue, []), query))
                if is_known or issue in self.issues
                else _NOT_FOUND
            )
        if what == "timeline":
            return 200, _page(self.timeline.get(issue, []), query)
        if what == "labels" and method == "POST":
            own = self.issues[issue].setdefault("labels", [])
            own += [{"name": name} for name in fields["labels"]]
            return 200, own
        if what.startswith("labels/") and method == "DELETE":
            gone = unquote(what.removeprefix("labels/"))
            own = self.issues[issue].setdefault("labels", [])
            self.issues[issue]["labels"] = [it for it in own if it["name"] != gone]
            return 200, self.issues[issue]["labels"]
        return (200, self.issues[issue]) if issue in self.issues else _NOT_FOUND

    def _has_label(self, one: dict[str, Any], query: str) -> bool:
        wanted = parse_qs(query).get("labels", [""])[0]
        names = [it["name"] for it in one.get("labels", [])] or [one.get("label", "")]
        return wanted in names and one.get("state", "open") == "open"


_NOT_FOUND: tuple[int, Any] = (404, {"message": "Not Found"})


def _page(items: list[Any], query: str) -> list[Any]:
    asked = parse_qs(query)
    size = int(asked.get("per_page", ["30"])[0])
    page = int(asked.get("page", ["1"])[0])
    return items[(page - 1) * size : page * size]


class _Answering(BaseHTTPRequestHandler):
    server: GitHub

    def _answer(self) -> None:
        path, _, query = self.path.partition("?")
        self.server.asked.append(f"{self.command} {self.path}")
        body = self._body()
        status: int = 401
        data: Any = {"message": "Bad credentials"}
        if self.headers["Authorization"] == f"token {self.server.token}":
            fields = json.loads(body) if body else {}
            status, data = self.server.answer(self.command, path, query, fields)
        is_text = isinstance(data, str)
        sent = data.encode() if is_text else json.dumps(data).encode()
        kind = "text/plain" if is_text else "application/json"
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    do_GET = do_POST = do_PATCH = do_PUT = do_DELETE = _answer  # noqa: N815 - as the base class calls them

    def _body(self) -> bytes:
        """What was sent: gh streams its input in chunks."""
        if self.headers["Transfer-Encoding"] != "chunked":
            return self.rfile.read(int(self.headers["Content-Length"] or 0))
        body = b""
        while size := int(self.rfile.readline(), 16):
            body += self.rfile.read(size)
            self.rfile.readline()
        self.rfile.readline()
        return body

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""
