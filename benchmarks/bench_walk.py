"""How far a run walks: functions and modules of ours that run in it, and rooms called back.

Three walks, with one check and one commit a story, each by an agent that changes a file and claims
its story with a status block:

- one iteration, from the beginning to the end of `_iterate`.  Goal: at most 70 modules;
- a run of two stories in the checkout;
- a run of two stories in two lanes.  Goal: at most 20 callbacks.

A callback is a function of a room that another room calls while the first one waits for it
(A → B → A): whoever reads B has to know who called it.  With `-v` all of them are named.
"""

from __future__ import annotations

import inspect
import json
import os
import subprocess
import sys
import tempfile
import threading
from collections import defaultdict
from dataclasses import dataclass, field
from pathlib import Path
from types import CodeType, FrameType
from typing import Any

import ralphloop
from ralphloop.cli.main import run
from ralphloop.loop import loop

ITERATE = "_iterate"
PACKAGE = str(Path(ralphloop.__file__).parent)
BLOCK = """\
---RALPH_STATUS---
STATUS: COMPLETE
TASKS_COMPLETED_THIS_LOOP: 1
FILES_MODIFIED: 1
TESTS_STATUS: PASSING
WORK_TYPE: IMPLEMENTATION
EXIT_SIGNAL: false
RECOMMENDATION: next story
---END_RALPH_STATUS---
"""
AGENT = f"import os; open(f'work{{os.getpid()}}.py', 'a').write('x = 1\\n'); print({BLOCK!r})"
CONFIG = f"""\
[agent]
name = "command"
command = {json.dumps([sys.executable, "-c", AGENT])}
[checks]
commands = [["true"]]
"""


def project(place: Path) -> Path:
    """A small repository with two stories."""
    stories = [{"id": f"US-{n}", "title": "Add a line", "passes": False} for n in (1, 2)]
    (place / "prd.json").write_text(json.dumps({"userStories": stories}))
    (place / "ralph.toml").write_text(CONFIG)
    (place / ".gitignore").write_text(".ralph/\n.ralph-*\nprogress.txt\n")
    names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
    os.environ["RALPH_TRUST"] = "1"
    os.environ |= {f"GIT_{name}": "bench@example.com" for name in names}
    for args in (["init", "-q"], ["add", "-A"], ["commit", "-q", "-m", "start"]):
        subprocess.run(["git", *args], cwd=place, check=True)
    return place


@dataclass
class Walk:
    """What ran, and which rooms called one another back."""

    codes: set[CodeType] = field(default_factory=set)
    callbacks: set[tuple[CodeType, str]] = field(
        default_factory=set
    )  # the function, and who called

    def modules(self) -> dict[str, set[str]]:
        found = defaultdict(set)
        for code in self.codes:
            found[module_of(code)].add(code.co_qualname)
        return found


def module_of(code: CodeType) -> str:
    return code.co_filename.removeprefix(f"{PACKAGE}/")


def room_of(code: CodeType) -> str:
    return module_of(code).partition("/")[0]


def is_ours(code: CodeType) -> bool:
    """A function of the package, and neither a module or class body nor a comprehension."""
    if not code.co_filename.startswith(PACKAGE) or not code.co_flags & inspect.CO_NEWLOCALS:
        return False
    return code.co_name == "<lambda>" or not code.co_name.startswith("<")


def caller_between(frame: FrameType) -> str:
    """The room that calls this function while a function of its own room waits for that one."""
    own = room_of(frame.f_code)
    between = ""
    above = frame.f_back
    while above is not None:
        code = above.f_code
        above = above.f_back
        if not code.co_filename.startswith(PACKAGE):
            continue
        room = room_of(code)
        if not between and room == own:
            return ""
        if not between:
            between = room
        elif room != between:
            return between if room == own else ""
    return ""


def walk(place: Path, arguments: list[str], *, first_iteration: bool = False) -> Walk:
    """One run, watched; only its first iteration where that is wanted."""
    seen = Walk()
    iterate = getattr(loop, ITERATE)
    under_way = threading.Event()
    known: dict[CodeType, bool] = {}

    def look(frame: FrameType, event: str, _: object) -> None:
        if event != "call" or not under_way.is_set():
            return
        code = frame.f_code
        if code not in known:
            known[code] = is_ours(code)
        if not known[code]:
            return
        seen.codes.add(code)
        if between := caller_between(frame):
            seen.callbacks.add((code, between))

    async def observed(*given: Any) -> Any:
        setattr(loop, ITERATE, iterate)  # the first one only
        under_way.set()
        try:
            return await iterate(*given)
        finally:
            under_way.clear()

    if first_iteration:
        setattr(loop, ITERATE, observed)
    else:
        under_way.set()
    threading.setprofile(look)  # before any thread is there: a pool keeps its own
    sys.setprofile(look)
    os.chdir(place)
    code = run(arguments)
    sys.setprofile(None)
    threading.setprofile(None)
    assert code == 0, code
    return seen


def tell(name: str, seen: Walk) -> None:
    """One line of figures, and what they are made of where that is asked for."""
    modules = seen.modules()
    if "-v" in sys.argv:
        for module, functions in sorted(modules.items()):
            print(f"  {module:34} {len(functions):3}  {' '.join(sorted(functions))}")
        for code, between in sorted(seen.callbacks, key=lambda it: (it[1], module_of(it[0]))):
            own = room_of(code)
            print(f"  {own} → {between} → {own}: {module_of(code)} {code.co_qualname}")
    count = sum(len(it) for it in modules.values())
    rooms = {room_of(code) for code in seen.codes}
    print(
        f"{name:28} functions {count:5}   modules {len(modules):4}   rooms {len(rooms):3}"
        f"   callbacks {len(seen.callbacks):4}"
    )


def main() -> None:
    """Print the figures of each walk."""
    lanes = ["run", "--lanes", "2"]
    walks = {
        "an iteration (goal: 70)": (["run"], True),
        "a run": (["run"], False),
        "a run in lanes (goal: 20)": (lanes, False),
    }
    for name, (arguments, first_iteration) in walks.items():
        with tempfile.TemporaryDirectory() as folder:
            place = Path(folder, "project")
            place.mkdir()
            tell(name, walk(project(place), arguments, first_iteration=first_iteration))


if __name__ == "__main__":
    main()
