"""Whether learning helps, on a simulation of forty-five stories; no model is asked.

    bench_learning_effect.py [DIR] [--null]

Whether a story passes depends on three facts, one for each area of a small project: its checks want
a new file in three lists of its area.  The scripted agent does not know them; its first claim
fails, its second attempt repairs it and says what it learned.  With the fact in its prompt it needs
one attempt, mostly: every seventh story goes wrong for another reason, and every ninth is about a
page of documentation that teaches nothing.  One story in four is held out at random.  The *null*
agent never looks at what it is given, so there must be no effect to report.

Prints `ralph stats` and the four success metrics with their targets.
"""

from __future__ import annotations

import json
import sys
import tempfile
from pathlib import Path
from typing import Any

from ralphloop.cli.demo import make_repository, run_there, settings
from ralphloop.proc.run import ourselves, run_in_front

STORIES = 45
_AREAS = ("api", "database", "frontend")
_LISTS = ("registry.txt", "limits.txt", "labels.txt")
_THINGS = (
    "search export archive history summary filter import preview backup calendar digest forecast"
    " gallery heading"
).split()

_PUBLISHED = '[learning]\nskills = "skills"\nmemory = "CLAUDE.md"\nholdout = 4\n'
_CHECK = '''\
"""Every feature must be listed where its area wants it."""
import pathlib
import sys

missing = []
for area in sorted(pathlib.Path("src").iterdir()):
    for wanted in ("registry.txt", "limits.txt", "labels.txt"):
        listed = (area / wanted).read_text().split()
        for feature in sorted(area.glob("feature_*.txt")):
            if feature.stem not in listed:
                missing.append(f"error: {feature} is not listed in {area / wanted}")
            if "slip" in feature.read_text():
                missing.append(f"error: {feature} has a slip of the pen")
print("\\n".join(missing) or "all listed")
sys.exit(bool(missing))
'''


def _files(*, null: bool) -> dict[str, str]:
    """The project: stories, checks, script, settings."""
    script = {"stories": {_id(n): _starts(n, null=null) for n in range(1, STORIES + 1)}}
    limits = f"max_iterations = 0\ncalls_per_hour = 0\n{_PUBLISHED}"
    return {
        "prd.json": json.dumps(_prd(), indent=2),
        "simulation.json": json.dumps(script, indent=1),
        "tools/check.py": _CHECK,
        "ralph.toml": settings("simulation.json", "tools/check.py", limits=limits),
        **{f"src/{area}/{name}": "" for area in _AREAS for name in _LISTS},
    }


def _prd() -> dict[str, Any]:
    stories = [
        {
            "id": _id(n),
            "title": _title(n),
            "description": "People want this.",
            "acceptanceCriteria": ["It is there"],
            "priority": n,
            "passes": False,
        }
        for n in range(1, STORIES + 1)
    ]
    return {"project": "simulation", "userStories": stories}


def _title(n: int) -> str:
    return f"Explain the {_thing(n)}" if _is_page(n) else f"Add the {_thing(n)} to the {_area(n)}"


def _starts(n: int, *, null: bool) -> list[list[Any]]:
    """The first start claims at once; the second repairs what the checks found."""
    area, name = _area(n), f"feature_{n}"
    home = f"src/{area}"
    if _is_page(n):
        page = {"write": {f"manual/{_thing(n)}.txt": "how it works\n"}}
        return [[page, _usage(n, 5_000), {"say": "Explained."}, _done()]]
    feature = {"write": {f"{home}/{name}.txt": f"{_thing(n)}{' slip' * (n % 7 == 0)}\n"}}
    lists = {"append": {f"{home}/{listed}": f"{name}\n" for listed in _LISTS}}
    mended = {"write": {f"{home}/{name}.txt": f"{_thing(n)}\n"}}
    ignorant = [feature, _usage(n, 6_000), {"say": "It is there."}, _done()]
    knowing = [feature, lists, _usage(n, 7_500), {"say": "Done, and listed."}, _done()]
    told = f"LEARNED: a new file in {home} needs a line in {home}/registry.txt and two more lists"
    again = [mended, _usage(n, 7_000), {"say": told}, _done()]
    repaired = [lists, *again]
    # Only the learned part of a prompt puts the name in backticks; check output does not.
    knows = f"`{home}/registry.txt`"
    first = {"contains": knows, "then": knowing, "else": ignorant}
    then = {"contains": knows, "then": again, "else": repaired}
    return [
        ignorant if null else [{"if_prompt": first}],
        repaired if null else [{"if_prompt": then}],
    ]


def _done() -> dict[str, Any]:
    fields = {"status": "COMPLETE", "tasks_completed": 1, "recommendation": "go on"}
    return {"status": fields}


def _usage(n: int, tokens: int) -> dict[str, Any]:
    """Stories differ in size, up to a fifth, in a way that has nothing to do with their order."""
    used = tokens + tokens * (n * 7919 % 101) // 500
    return {"usage": {"input_tokens": used - 500, "output_tokens": 500, "cost_usd": used / 1e6}}


def _id(n: int) -> str:
    return f"SIM-{n:02}"


def _area(n: int) -> str:
    return _AREAS[(n - 1) % len(_AREAS)]


def _thing(n: int) -> str:
    return _THINGS[(n - 1) // len(_AREAS) % len(_THINGS)] + f" {n}"


def _is_page(n: int) -> bool:
    return n % 9 == 0


def main(directory: Path, *, null: bool) -> int:
    """Play it in a new directory; the exit code of its run."""
    make_repository(directory, _files(null=null))
    print(f"Simulation of {STORIES} stories in {directory}", flush=True)
    code = run_there(directory, "run", "--trust", "--quiet")
    for flags in ((), ("--prd-metrics",)):
        run_in_front([*ourselves(), "stats", *flags], cwd=directory)
    return code


if __name__ == "__main__":
    given = [word for word in sys.argv[1:] if word != "--null"]
    place = Path(given[0]) if given else Path(tempfile.mkdtemp(prefix="ralph-learning-"))
    sys.exit(main(place.resolve(), null="--null" in sys.argv))
