"""`ralph run --from PROGRAM`: the protocol, a program that misbehaves, and the shipped examples."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from tests.loop.projects import Sandbox, sandbox

EXAMPLES = Path(__file__).parents[2] / "contrib" / "queues"
BODY = "Tabs.\n\nDone when:\n\n- `parse` returns 2 for a tab\n"
AGENT = "write(f'{STORY}.txt', STORY); done()"
PROGRAM = """\
#!{python}
import json, pathlib, sys
asked = json.load(sys.stdin)
place = pathlib.Path({place!r})
with open(place / "asked", "a") as file:
    file.write(json.dumps([sys.argv[1], asked]) + "\\n")
answers = json.loads((place / "answers").read_text())
answer = answers.get(sys.argv[1], {{}})
if isinstance(answer, str):
    sys.exit(answer)
print(json.dumps(answer))
"""


class Program:
    """A queue that answers from a table."""

    def __init__(self, place: Path, **answers: Any) -> None:
        place.mkdir()
        self.place = place
        self.path = place / "queue"
        self.path.write_text(PROGRAM.format(python=sys.executable, place=str(place)))
        self.path.chmod(0o755)
        self.answer(**answers)

    def answer(self, **answers: Any) -> None:
        """What it says from now on."""
        (self.place / "answers").write_text(json.dumps(answers))

    def asked(self, word: str) -> list[dict[str, Any]]:
        """What it was told with this word."""
        path = self.place / "asked"
        lines = path.read_text().splitlines() if path.exists() else []
        return [given for what, given in map(json.loads, lines) if what == word]


ITEM = {"id": "ENG-7", "title": "Parse tabs", "text": BODY, "by": "Ann", "url": "https://x/7"}


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    """A repository with one story that is done."""
    return sandbox(tmp_path, AGENT, stories=[{"id": "US-1", "title": "Sell", "passes": True}])


def test_items_in_results_out(box: Sandbox, tmp_path: Path) -> None:
    """Listed, claimed by a token, told that it began and how it ended, with grade and evidence."""
    program = Program(tmp_path / "q", list={"items": [ITEM]}, claim={"claimed": True})
    done = box.ralph("run", "--from", str(program.path))
    assert done.code == 0, done.text
    (claim,) = program.asked("claim")
    assert (claim["v"], claim["id"], len(claim["token"])) == (1, "ENG-7", 16)
    started, passed = program.asked("report")
    assert (started["kind"], passed["kind"]) == ("started", "passed")
    assert passed["story"] == "US-2"
    assert passed["grade"]
    assert passed["commit"] == box.git("rev-parse", "HEAD")
    assert [set(one) for one in passed["criteria"]] == [{"criterion", "evidence"}]


def test_another_one_has_it(box: Sandbox, tmp_path: Path) -> None:
    """What was not claimed is not worked on."""
    program = Program(tmp_path / "q", list={"items": [ITEM]}, claim={"claimed": False})
    done = box.ralph("run", "--from", str(program.path))
    assert (done.code, box.starts) == (4, 0), done.text


@pytest.mark.parametrize(
    ("answers", "code", "words"),
    [
        ({"list": "no network"}, 69, "no network"),
        ({"list": {"items": [{"id": 7}]}}, 65, "answered what is not expected"),
        ({"list": {"items": [{**ITEM, "verify": ["touch", "x"]}]}}, 4, ""),
        ({"list": {"items": []}}, 4, "nothing of"),
    ],
)
def test_what_a_program_may_say(
    box: Sandbox, tmp_path: Path, answers: dict[str, Any], code: int, words: str
) -> None:
    """Trouble is named; a field that is none of an item's is not read."""
    program = Program(tmp_path / "q", **answers)
    done = box.ralph("run", "--from", str(program.path))
    assert (done.code, words in done.text) == (code, True), done.text
    assert box.starts == 0


@pytest.mark.parametrize(
    ("setting", "words"),
    [
        ('[agent]\nname = "command"\ncommand = ["/nowhere/agent"]\n', "/nowhere/agent"),
        ('[agent]\nname = "command"\ncommand = ["true"]\n[sandbox]\nmode = "on"\nhide = ["/"]\n', "sandbox"),
    ],
    ids=["no agent", "no sandbox"],
)  # fmt: skip
def test_nothing_is_claimed_by_who_cannot_work(
    box: Sandbox, tmp_path: Path, setting: str, words: str
) -> None:
    """An agent that is not there, a sandbox that cannot be: said before others are told."""
    program = Program(tmp_path / "q", list={"items": [ITEM]}, claim={"claimed": True})
    (box.root / "ralph.toml").write_text(setting)
    box.git("commit", "-qam", "Other settings")
    done = box.ralph("run", "--from", str(program.path), env={"RALPH_TRUST": "1"})
    assert done.code not in (0, 4, 70, 77), done.text
    assert words in done.text
    assert program.asked("claim") == []


@pytest.mark.attack
def test_a_program_of_the_settings_needs_a_yes(box: Sandbox, tmp_path: Path) -> None:
    """Without one it is not started; with one it is."""
    program = Program(tmp_path / "q", list={"items": []})
    toml = box.root / "ralph.toml"
    toml.write_text(f'{toml.read_text()}\n[stories]\nqueue = ["{program.path}"]\n')
    box.git("commit", "-qam", "A queue")
    done = box.ralph("run", "--watch", "--max-time", "1s", env={"RALPH_TRUST": ""})
    assert done.code == 77, done.text
    assert program.asked("list") == []
    assert box.ralph("run", "--watch", "--max-time", "1s", "--trust").code == 3
    assert program.asked("list")


def test_a_first_item_makes_the_list(box: Sandbox, tmp_path: Path) -> None:
    """Without a story file there is one afterwards."""
    box.git("rm", "-q", "prd.json")
    box.git("commit", "-qm", "No list")
    program = Program(tmp_path / "q", list={"items": [ITEM]}, claim={"claimed": True})
    done = box.ralph("run", "--from", str(program.path))
    assert done.code == 0, done.text
    assert box.passes() == {"US-001": True}


# --- the examples ------------------------------------------------------------------------------

GLAB = """\
#!{python}
import json, pathlib, sys, urllib.parse
state = pathlib.Path({state!r})
data = json.loads(state.read_text())
path = sys.argv[2].removeprefix("projects/group%2Fshop/").partition("?")[0]
if "POST" in sys.argv:
    body = sys.argv[-1].removeprefix("body=")
    data["notes"].append({{"id": len(data["notes"]), "body": body, "author": {{"id": 1, "username": "me"}}}})
    state.write_text(json.dumps(data))
    print("{{}}")
elif path.startswith("members/all/"):
    user = path.rpartition("/")[2]
    if user not in data["members"]:
        sys.exit("404 Not found")
    print(json.dumps({{"access_level": data["members"][user]}}))
elif path.endswith("resource_label_events"):
    print(json.dumps(data["events"]))
elif path.endswith("/notes"):
    print(json.dumps(data["notes"]))
else:
    print(json.dumps(data["issues"]))
"""


def test_the_example_for_gitlab(box: Sandbox, tmp_path: Path) -> None:
    """An issue of a developer is done and told; one that a guest labelled is left."""
    place = tmp_path / "glab"
    place.mkdir()
    state = place / "state.json"
    ann = {"id": 5, "username": "ann"}
    issue = {"iid": 3, "title": "Parse tabs", "description": BODY, "web_url": "u", "author": ann}
    event = {"action": "add", "label": {"name": "ralph"}, "user": {"id": 6}}
    known = {"issues": [issue], "events": [event], "notes": [], "members": {"5": 30, "6": 10}}
    state.write_text(json.dumps({**known, "members": {"5": 30, "6": 10, "1": 40}}))
    program = place / "glab"
    program.write_text(GLAB.format(python=sys.executable, state=str(state)))
    program.chmod(0o755)
    path = f"{place}:{box.environment()['PATH']}"
    env = {"PATH": path, "GITLAB_PROJECT": "group/shop"}
    words = ("run", "--from", f"{sys.executable} {EXAMPLES / 'gitlab.py'}")
    assert box.ralph(*words, env=env).code == 4
    state.write_text(json.dumps({**known, "members": {"5": 30, "6": 30, "1": 40}}))
    done = box.ralph(*words, env=env)
    assert done.code == 0, done.text
    notes = [one["body"] for one in json.loads(state.read_text())["notes"]]
    assert [note.split(" ")[1] for note in notes] == ["takes", "passed"]


class _Linear(BaseHTTPRequestHandler):
    """As much of Linear as the example asks."""

    server: LinearServer

    def do_POST(self) -> None:
        asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        sent = json.dumps({"data": self.server.answer(asked["query"], asked["variables"])})
        self.send_response(200)
        self.end_headers()
        self.wfile.write(sent.encode())

    def log_message(self, *_: object) -> None:
        """Nothing on stderr."""


class LinearServer(ThreadingHTTPServer):
    """One issue of a member, one of a guest, and what is said to them."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _Linear)
        self.said: list[dict[str, Any]] = []

    def answer(self, query: str, given: dict[str, Any]) -> dict[str, Any]:
        """The data of an answer."""
        if "commentCreate" in query:
            user = {"displayName": "me", "guest": False}
            number = str(len(self.said))
            one = {"id": number, "createdAt": number, "body": given["body"], "user": user}
            self.said.append(one)
            return {"commentCreate": {"success": True}}
        if "comments" in query:
            return {"issue": {"comments": {"nodes": self.said}}}
        known = {"title": "Parse tabs", "description": BODY, "url": "u"}
        people = [{"displayName": "ann", "guest": False}, {"displayName": "g", "guest": True}]
        nodes = [{"id": f"i{n}", "creator": who, **known} for n, who in enumerate(people)]
        return {"issues": {"nodes": nodes}}


@pytest.fixture
def linear() -> Iterator[LinearServer]:
    """A Linear of our own."""
    with LinearServer() as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield server
        server.shutdown()


def test_the_example_for_linear(box: Sandbox, linear: LinearServer) -> None:
    """A member's issue is done and told; a guest's is left."""
    address = f"http://127.0.0.1:{linear.server_address[1]}/"
    env = {"LINEAR_API": address, "LINEAR_API_KEY": "k"}
    done = box.ralph("run", "--from", f"{sys.executable} {EXAMPLES / 'linear.py'}", env=env)
    assert done.code == 0, done.text
    assert [one["body"].split(" ")[1] for one in linear.said] == ["takes", "passed"]
    assert list(box.passes().values()) == [True, True]
