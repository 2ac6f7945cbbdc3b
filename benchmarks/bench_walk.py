"""How far one iteration walks: the different functions and modules of ours that run in it.

One start whose agent changes a file and claims its story with a status block, one check, one
commit, from the beginning to the end of `_iterate`.  Goal: at most 447 functions in 62 modules.
With `-v` every module is named with its functions.
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
AGENT = f"open('work.py', 'a').write('x = 1\\n'); print({BLOCK!r})"
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


def walked(place: Path) -> set[CodeType]:
    """The code of the functions of the package that ran in the first iteration."""
    seen: set[CodeType] = set()
    iterate, under_way = getattr(loop, ITERATE), threading.Event()

    def look(frame: FrameType, event: str, _: object) -> None:
        if event == "call" and under_way.is_set():
            seen.add(frame.f_code)

    async def observed(*given: Any) -> Any:
        setattr(loop, ITERATE, iterate)  # the first one only
        under_way.set()
        try:
            return await iterate(*given)
        finally:
            under_way.clear()

    setattr(loop, ITERATE, observed)
    threading.setprofile(look)  # before any thread is there: a pool keeps its own
    sys.setprofile(look)
    os.chdir(place)
    code = run(["run"])
    sys.setprofile(None)
    assert code == 0, code
    return {code for code in seen if code.co_filename.startswith(PACKAGE) and _is_function(code)}


def _is_function(code: CodeType) -> bool:
    """Neither a module or class body nor a comprehension."""
    return bool(code.co_flags & inspect.CO_NEWLOCALS) and not code.co_name.startswith("<")


def main() -> None:
    """Print the two numbers."""
    with tempfile.TemporaryDirectory() as place:
        codes = walked(project(Path(place)))
    modules = defaultdict(set)
    for code in codes:
        modules[code.co_filename.removeprefix(f"{PACKAGE}/")].add(code.co_qualname)
    if "-v" in sys.argv:
        for module, functions in sorted(modules.items()):
            print(f"{module:34} {len(functions):3}  {' '.join(sorted(functions))}")
    print(f"functions {sum(map(len, modules.values())):5}   (goal: at most 447)")
    print(f"modules   {len(modules):5}   (goal: at most 62)")


if __name__ == "__main__":
    main()
