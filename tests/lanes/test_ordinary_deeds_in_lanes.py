"""What an honest agent does with git and files, in a lane: it lands as it was meant.

Each row works in a directory of its own, so that many of them can be stories of one run with two
lanes; that they land on top of each other is a part of the test.
"""

from __future__ import annotations

import os
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from ralphloop.core.run_state import StoryState
from ralphloop.journal.queries import JournalReader
from tests import sentences
from tests.lanes.yards import starts, stories_of, yard
from tests.loop.projects import Sandbox, story
from tests.ordinary_deeds import DEEDS, OURS, PRELUDE, Deed, Entry, add_submodules, committed

TOGETHER = 11
ALONE = [row for row in DEEDS if row.submodules]  # a submodule's path is known to all lanes
MANY = [row for row in DEEDS if row not in ALONE]
NIGHTS = [MANY[first : first + TOGETHER] for first in range(0, len(MANY), TOGETHER)]
UPDATE = "git -c protocol.file.allow=always submodule --quiet update --init"


def stories_for(rows: list[Deed]) -> list[dict[str, Any]]:
    """A story for each row; what is stashed is common to all lanes, so one stashes at a time."""
    found = [story(f"r{number}", priority=number) for number in range(len(rows))]
    stashing = [entry for entry, row in zip(found, rows, strict=True) if "stash" in row.deed]
    for before, after in pairwise(stashing):
        after["dependsOn"] = [before["id"]]
    return found


def agent_for(rows: list[Deed], *, apart: bool = True) -> str:
    """Does the deed of its story in the directory of its story, or else in the project's."""
    deeds = {f"r{number}": row.deed for number, row in enumerate(rows)}
    place = "os.chdir(STORY)" if apart else ""
    return f"{PRELUDE}\nDEEDS = {deeds!r}\n{place}\nexec(DEEDS[STORY])\ndone()\n"


def prepare(box: Sandbox, rows: list[Deed], *, apart: bool = True) -> None:
    """Commit what the rows begin with; names that are no text are made here."""
    for number, row in enumerate(rows):
        for name, text in row.files.items():
            path = box.root / f"r{number}" / name if apart else box.root / name
            os.makedirs(path.parent, exist_ok=True)  # noqa: PTH103 - odd names
            path.write_text(text)
    box.git("add", "-A")
    box.git("commit", "-q", "-m", "what is there")


def states(box: Sandbox) -> dict[str, StoryState]:
    """How each story of the newest run ended."""
    with JournalReader.open(box.root / ".ralph/journal.db") as journal:
        run = journal.latest_run()
        assert run is not None
        return journal.story_states(run.id)


def kept(box: Sandbox, name: str) -> bool:
    """Whether what no commit holds is still somewhere: under a ref of ours, or beside the lanes."""
    refs = box.git("for-each-ref", "--format=%(refname)", "refs/ralph/lanes").splitlines()
    held = [box.git("ls-tree", "-r", "--name-only", ref).splitlines() for ref in refs]
    beside = (box.root.with_name("project.lanes") / "kept").glob(f"*/{name}")
    return any(name in names for names in held) or any(beside)


def below(found: dict[str, Entry], directory: str) -> dict[str, Entry]:
    """What of a tree lies below a directory, without what rows share with every project."""
    inside = {
        path.removeprefix(f"{directory}/"): entry
        for path, entry in found.items()
        if path.startswith(f"{directory}/")
    }
    return {path: entry for path, entry in inside.items() if path not in OURS}


@pytest.mark.parametrize("rows", NIGHTS, ids=lambda rows: f"{rows[0].name} and more")
def test_what_an_honest_agent_does_lands_from_a_lane(tmp_path: Path, rows: list[Deed]) -> None:
    """Every row × lane: the commit holds what was meant, at the first start, and is replayed."""
    box = yard(tmp_path, agent_for(rows), stories=stories_for(rows))
    prepare(box, rows)
    done = box.run("--lanes", "2", timeout=300)
    assert done.code == 0, done.text
    found = committed(box.root)
    for number, row in enumerate(rows):
        name = f"r{number}"
        assert below(found, name) == row.expected, row.name
        assert starts(box, name) == 1, row.name
        ended = states(box)[name]
        assert (ended.proof.grade == sentences.NEEDS_REVIEW) == bool(row.left_out), (
            row.name,
            ended,
        )
        for words in row.said:
            assert words in done.text + ended.reason, row.name
        for path in row.left_out:
            assert "not committed" in ended.reason, row.name
            assert kept(box, f"{name}/{path}"), row.name
    assert box.git("status", "--porcelain") == ""
    replayed = box.ralph("replay")
    assert replayed.code == 0, replayed.text


@pytest.mark.parametrize("row", ALONE, ids=lambda row: row.name)
def test_commits_in_a_submodule_land_and_are_kept(tmp_path: Path, row: Deed) -> None:
    """The gitlink lands, and its commit is in the checkout's submodule once the lanes are gone."""
    # Those after it begin with what it landed, and take nothing back.
    agent = agent_for([row], apart=False).replace("exec(", "if STORY == 'r0': exec(")
    toml = f"[lanes]\nsetup = [{UPDATE.split()!r}]\n"
    more = [story(f"r{number}", priority=number, dependsOn=["r0"]) for number in (1, 2)]
    agent = agent.replace("done()", "write(STORY + '.md')\ndone()")
    box = yard(tmp_path, agent, stories=[*stories_for([row]), *more], toml=toml)
    prepare(box, [row], apart=False)
    add_submodules(box.root, tmp_path, row.submodules)
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    assert "main has what landed; for sub: git submodule update" in done.text
    cleaned = box.ralph("lanes", "clean")
    assert cleaned.code == 0, cleaned.text
    found = {path: it for path, it in committed(box.root).items() if not path.endswith(".md")}
    assert found == row.expected
    box.git("-c", "protocol.file.allow=always", "submodule", "--quiet", "update", "--no-fetch")
    assert box.git("status", "--porcelain") == ""
    assert box.ralph("replay").code == 0


def test_what_is_not_committed_in_a_submodule_is_said_and_kept(tmp_path: Path) -> None:
    """As in the checkout it is left out and a person should look; the lane may move, and go."""
    agent = """
if STORY == "b":
    write("base.txt", "b"); say("b"); until("never", 1)
    write("other.txt"); done(); sys.exit()
until("b")
if START == 1:
    until("never", 3)
    write("sub/inner.txt", "not committed")
write("base.txt", "a")
assert pathlib.Path("sub/inner.txt").read_text() == "not committed"
done()
"""
    toml = f"[lanes]\nsetup = [{UPDATE.split()!r}]\n"
    box = yard(tmp_path, agent, stories=stories_of("a", "b"), toml=toml)
    add_submodules(box.root, tmp_path, ("sub",))
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    assert starts(box, "a") == 2, done.text
    ended = states(box)["a"]
    assert ended.proof.grade == sentences.NEEDS_REVIEW
    assert "not committed: sub (a submodule with uncommitted changes)" in ended.reason
    assert box.ralph("lanes", "clean").code == 0
    refs = box.git("-C", "sub", "for-each-ref", "--format=%(refname)", "refs/ralph").splitlines()
    assert "not committed" in [box.git("-C", "sub", "show", f"{ref}:inner.txt") for ref in refs]


def test_a_repository_that_an_agent_made_outlives_its_lane(tmp_path: Path) -> None:
    """Never a gitlink without content: it is kept before its lane is used again or removed."""
    agent = f"""{PRELUDE}
where = f"made by {{STORY}}"
write(where + "/inner.txt", STORY)
git("init", "-q", where=where)
if STORY == "b":
    git("add", "-A", where=where)
    git("commit", "-q", "-m", "inner", where=where)
    git("add", where)
    git("commit", "-q", "-m", "as if it were a submodule")
write(f"{{STORY}}.txt")
if STORY == "c":
    status()
    sys.exit()
done()
"""
    box = yard(tmp_path, agent, stories=stories_of("a", "b", "c"))
    done = box.run("--lanes", "1", "--max-iterations", "3")
    assert done.code == 3, done.text
    assert "160000" not in box.git("ls-tree", "-r", "HEAD")
    for name in "ab":
        ended = states(box)[name]
        assert ended.proof.grade == sentences.NEEDS_REVIEW, ended
        assert f"made by {name}" in ended.reason
    cleaned = box.ralph("lanes", "clean")
    assert cleaned.code == 0, cleaned.text
    assert "made by c" in cleaned.text
    for name in "abc":
        (found,) = (box.root.with_name("project.lanes") / "kept").glob(f"*/made by {name}")
        assert (found / "inner.txt").read_text() == name
        assert (found / ".git").is_dir()


def test_a_repository_is_kept_under_the_name_of_its_run(tmp_path: Path) -> None:
    """What a story that waits has left is moved out of the way before the next one has the lane."""
    agent = f"""{PRELUDE}
if STORY == "a":
    write("made/inner.txt", STORY)
    git("init", "-q", where="made")
    status("BLOCKED")
    sys.exit()
write(f"{{STORY}}.txt")
done()
"""
    box = yard(tmp_path, agent, stories=stories_of("a", "b"))
    done = box.run("--lanes", "1")
    assert states(box)["b"].standing == "passed", done.text
    kept = box.root.with_name("project.lanes") / "kept"
    (found,) = kept.glob("*/made")
    assert found.parent.name.startswith(f"{box.status()['run']['id']}-"), found
    assert (found / "inner.txt").read_text() == "a"


def test_what_no_commit_should_hold_ends_as_in_the_checkout(tmp_path: Path) -> None:
    """A large file, a repository of its own, what looks like a secret: the same grades and words."""
    rows = [row for row in MANY if row.left_out]
    rows.append(Deed("a secret", "write('.env', 'TOKEN=x')"))
    found = {}
    for words in (("--lanes", "2"), ()):
        place = tmp_path / "-".join(("as", *words))
        place.mkdir()
        box = yard(place, agent_for(rows), stories=stories_for(rows))
        prepare(box, [row._replace(files={"there.txt": "x"}) for row in rows])
        done = box.run(*words)
        assert done.code == 0, done.text
        found[words] = states(box)
    for name, one in found[()].items():
        other = found["--lanes", "2"][name]
        assert other.proof.grade == one.proof.grade, (one, other)
        # What a commit left out stays in the checkout, and is said of the stories after it as well.
        assert set(other.reason.partition("; what was not")[0].split("; ")) <= set(
            one.reason.split("; ")
        )
    assert "r2/.env may hold a secret" in found["--lanes", "2"]["r2"].reason


def test_names_that_are_no_text_stop_no_lane(tmp_path: Path) -> None:
    """A checkout below such a directory, with such a file to be copied: 0, and cleaned away."""
    agent = "write(STORY + '.txt')\ndone()\n"
    files = {".gitignore": ".ralph*\n*.local\n", ".worktreeinclude": "*.local\n"}
    box = yard(tmp_path, agent, stories=stories_of("a", "b"), files=files)
    odd = tmp_path / os.fsdecode(b"box \xff")
    box.root.parent.rename(odd)
    box.root = odd / "project"
    (box.root / os.fsdecode(b"own \xfe.local")).write_text("x")
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    assert (odd / "project.lanes/1" / os.fsdecode(b"own \xfe.local")).exists()
    assert box.ralph("lanes", "clean").code == 0
    assert not (odd / "project.lanes").exists()


@pytest.mark.tool("bwrap")
def test_submodules_are_set_up_and_worked_in_within_a_sandbox(tmp_path: Path) -> None:
    """What setup brought is no intruder, and what is changed in it is said and kept."""
    agent = "write('sub/inner.txt', STORY)\nwrite(STORY + '.txt')\ndone()\n"
    sandbox = f'[sandbox]\nmode = "on"\nwrite = ["{tmp_path}/state"]\n'
    toml = f"{sandbox}[lanes]\nsetup = [{UPDATE.split()!r}]\n"
    box = yard(tmp_path, agent, stories=stories_of("a", "b"), toml=toml)
    add_submodules(box.root, tmp_path, ("sub",))
    done = box.run("--lanes", "1")
    if "none works here" in done.text:
        pytest.skip("no sandbox works on this machine")
    assert done.code == 0, done.text
    for name in "ab":
        assert "a submodule with uncommitted changes" in states(box)[name].reason
    refs = box.git("-C", "sub", "for-each-ref", "--format=%(refname)", "refs/ralph").splitlines()
    kept = {box.git("-C", "sub", "show", f"{ref}:inner.txt") for ref in refs}
    assert kept == {"a", "b"}
