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
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingUnixStreamServer
from typing import Any

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
            one = next(each for each in self.pulls if each["node_id"] == fields["variables"]["id"])
            one["draft"] = "convertPullRequestToDraft" in fields["query"]
            return 200, {"data": {}}
        what, _, rest = path.removeprefix(f"/{REPO}").lstrip("/").partition("/")
        if what == "pulls":
            return self._pulls(method, rest, fields)
        if what == "issues":
            return self._issues(rest, query)
        return (200, self.repository) if path == f"/{REPO}" else (404, {"message": "Not Found"})

    def _pulls(self, method: str, number: str, fields: dict[str, Any]) -> tuple[int, Any]:
        if method == "GET":
            return 200, list(reversed(self.pulls))
        if method == "POST":
            rest = {key: value for key, value in fields.items() if key != "head"}
            self.pulls.append(pull(len(self.pulls) + 7, head={"label": fields["head"]}, **rest))
            return 201, self.pulls[-1]
        one = next(each for each in self.pulls if each["number"] == int(number))
        one.update(fields)
        return 200, one

    def _issues(self, rest: str, query: str) -> tuple[int, Any]:
        if not rest:
            return 200, [one for one in self.issues.values() if f"labels={one['label']}" in query]
        number, _, comments = rest.partition("/")
        known: dict[int, Any] = self.comments if comments else self.issues
        there = int(number) in known
        return (200, known[int(number)]) if there else (404, {"message": "Not Found"})


class _Answering(BaseHTTPRequestHandler):
    server: GitHub

    def _answer(self) -> None:
        path, _, query = self.path.partition("?")
        self.server.asked.append(f"{self.command} {self.path}")
        body = self._body()
        status, data = 401, {"message": "Bad credentials"}
        if self.headers["Authorization"] == f"token {self.server.token}":
            fields = json.loads(body) if body else {}
            status, data = self.server.answer(self.command, path, query, fields)
        sent = json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json; charset=utf-8")
        self.send_header("Content-Length", str(len(sent)))
        self.end_headers()
        self.wfile.write(sent)

    do_GET = do_POST = do_PATCH = _answer  # noqa: N815 - as the base class calls them

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
