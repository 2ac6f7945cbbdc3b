"""Cheats and their honest twins, as data, and the agent that plays them.

A table in `cheats/` is one run: its rows are stories of one small project (`projects.toml`).  The
agent adds a feature with a real test, breaks something that an old test covers, and makes the check
green in the row's own way.  Asked about it, it takes everything back and does the honest twin,
which looks much the same and breaks nothing; only the last one of a table stands by what it did.  A
cheat that passes at once is followed by its twin as a story of its own.  Where nothing looks like
the cheat, the twin is the plain feature, played once in a table.

    best    what the cheat may come to: `red`, `never` (it is not believed), `needs review` (it is
            asked about), `checked`, or `verified` where nothing can be done about it
    word    what must be in the words about it
    out_of_reach   why it passes all the same, for a cheat that no experiment can find
    gap     why it passes though it should not: known, and not yet caught
    bare    without the feature and its real test
    alone   the same of its twin
"""

from __future__ import annotations

import json
import sys
import tomllib
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tests.loop.projects import Sandbox, sandbox, story

HERE = Path(__file__).parent
TABLES = sorted((HERE / "cheats").glob("*.toml"))

Changes = dict[str, str | list[str] | bool]


class Cheat(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One row."""

    name: str
    best: str
    word: str
    does: Changes = {}
    breaks: str = "double"
    bare: bool = False
    runs: list[list[str]] = []  # commands of the cheat, beside its changes
    undone_by: list[list[str]] = []
    twin: Changes = {}  # beside the feature
    alone: bool = False  # the twin is a feature of its own
    verify: list[str] = []
    out_of_reach: str = ""
    gap: str = ""


class Table(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One run."""

    project: str
    cheat: list[Cheat]
    check: list[list[str]] = []
    files: dict[str, str] = {}


class Project(msgspec.Struct, frozen=True, kw_only=True):
    """What the rows of a table have in common."""

    check: list[list[str]]
    files: dict[str, str]
    breaks: dict[str, Changes]
    feature: Changes
    twin: str = "verified"  # what an honest twin comes to


class Row(NamedTuple):
    """A cheat with the stories it is played in."""

    cheat: Cheat
    story: str
    twin: str  # the same story where the agent is asked and repents
    insists: bool
    gives_up: bool  # it has no twin of its own; asked, it takes everything back


@cache
def table(path: Path) -> Table:
    """The rows of one file."""
    return msgspec.convert(tomllib.loads(path.read_text()), Table)


@cache
def projects() -> dict[str, Project]:
    """By the names of their runners."""
    text = (HERE / "projects.toml").read_text()
    return msgspec.convert(tomllib.loads(text), dict[str, Project])


def rows(of: Table) -> list[Row]:
    """The stories of a table, in their order."""
    asked = [
        number for number, it in enumerate(of.cheat) if it.best in ("red", "never", "needs review")
    ]
    reviewed = [number for number in asked if of.cheat[number].best == "needs review"]
    found, has_plain = [], False
    for number, cheat in enumerate(of.cheat):
        insists = number in reviewed[-1:] and number == len(of.cheat) - 1
        name = f"US-{number + 1}"
        gives_up = not insists and not cheat.twin and has_plain
        has_plain = has_plain or (not cheat.twin and not insists)
        twin = name if number in asked else f"{name}-twin"
        found.append(Row(cheat, name, twin, insists, gives_up))
    return found


AGENT = """
mine = json.loads((STATE / "works.json").read_text())[STORY]
kept = STATE / f"was-{STORY}.json"

def save(path, text):
    write(path, text)
    os.utime(path, (time.time() + 2 * START,) * 2)  # same size, same second: stale bytecode

def read(path):
    return pathlib.Path(path).read_text() if os.path.exists(path) else None

def change(path, how):
    text = read(path) or ""
    if how is False:
        os.unlink(path)
        return
    if isinstance(how, list):
        for old, new in zip(how[::2], how[1::2]):
            assert old in text, (path, old, text)
            text = text.replace(old, new)
    else:
        text = text + how[1:] if how.startswith("+") else how
    save(path, text)

def put_back():
    for path, text in json.loads(kept.read_text()).items():
        if text is not None:
            save(path, text)
        elif os.path.exists(path):
            os.unlink(path)

def play(work):
    was = {path: read(path) for path, _ in work["changes"]}
    kept.write_text(json.dumps(was))
    for path, how in work["changes"]:
        change(path, how)
    for argv in work["runs"]:
        import subprocess
        subprocess.run(argv, check=True)

times = _kept("stories", "r").split().count(STORY)
if times == 1:
    play(mine["first"])
elif mine["then"] or mine["gives_up"]:
    for argv in mine["undone_by"]:
        import subprocess
        subprocess.run(argv, check=True)
    put_back()
    if mine["gives_up"]:
        status("BLOCKED", files=0, words="I cannot do it.", recommendation="somebody else should")
        sys.exit()
    play(mine["then"])
done(words=f"{STORY} is done, start {START}.")
"""


def _changes(found: list[Changes], number: int) -> list[list[Any]]:
    def filled(value: Any) -> Any:
        if isinstance(value, list):
            return [filled(one) for one in value]
        return value.replace("{n}", str(number)) if isinstance(value, str) else value

    return [[filled(path), filled(how)] for one in found for path, how in one.items()]


def _with_python(commands: list[list[str]]) -> list[list[str]]:
    return [[word.replace("{python}", sys.executable) for word in argv] for argv in commands]


def _works(of: Table) -> dict[str, Any]:
    """What the agent does in each story, at its first start and when it is asked."""
    project, works = projects()[of.project], dict[str, Any]()
    for number, row in enumerate(rows(of), 1):
        cheat = row.cheat
        feature = [] if cheat.bare else [project.feature]
        broken = [project.breaks[cheat.breaks]] if cheat.breaks else []
        first = {
            "changes": _changes([*feature, *broken, cheat.does], number),
            "runs": _with_python(cheat.runs),
        }
        plain = [] if cheat.alone else [project.feature]
        honest = {"changes": _changes([*plain, cheat.twin], number), "runs": []}
        then = honest if row.story == row.twin and not row.insists else None
        more = {"undone_by": cheat.undone_by, "gives_up": row.gives_up}
        works[row.story] = {"first": first, "then": then, **more}
        if row.twin != row.story and not row.gives_up:
            honest = {"changes": _changes([*plain, cheat.twin], 100 + number), "runs": []}
            works[row.twin] = {"first": honest, "then": None, "gives_up": False}
    return works


def played(of: Table, tmp_path: Path) -> Sandbox:
    """A repository in which this table is about to be played."""
    project, works = projects()[of.project], _works(of)
    check = _with_python(of.check or project.check)
    verify = {
        row.story: _with_python([row.cheat.verify])[0] for row in rows(of) if row.cheat.verify
    }
    stories = [
        story(name, f"Add part {number}") | ({"verify": verify[name]} if name in verify else {})
        for number, name in enumerate(works)
    ]
    texts = {**project.files, **of.files}
    files = {name: text.replace("{python}", sys.executable) for name, text in texts.items()}
    ignored = ".ralph/\n.ralph-session.json\n.ralph-circuit-state.json\n__pycache__/\nlocal/\n"
    box = sandbox(
        tmp_path,
        AGENT,
        stories=stories,
        checks=check,
        files={".gitignore": ignored, **files},
        toml='[proof]\nexperiments = "always"\nask_for_tests = "off"\n',
    )
    (box.state / "works.json").write_text(json.dumps(works))
    box.env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return box
