"""Two stories that meet where they land: each kind of conflict has its words, and no side is dropped.

A pair of stories begins with the same commit; `landed` lands first, `own` meets it and goes back to
its lane.  What it finds there is written down before it solves anything: both sides, and the words.
Each pair works in a directory of its own, so that several can be stories of one run.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.kill_points import to_be_killed_at
from tests.lanes.yards import prompt, starts, stories_of, yard
from tests.loop.projects import Sandbox
from tests.ordinary_deeds import PRELUDE, add_submodules, committed

AGENT = (
    PRELUDE
    + r"""
import re
side, number = STORY[0], STORY[1:]
row = ROWS[number]

def landed(name):
    argv = ["git", "log", "--branches", "--format=%s"]
    return f"{name}: Do {name}" in subprocess.run(argv, capture_output=True, text=True).stdout

def holds():
    # What the directory holds: the text of files, where links lead.
    found = {}
    for folder, names, files in os.walk("."):
        for name in files + [it for it in names if os.path.islink(os.path.join(folder, it))]:
            path = os.path.relpath(os.path.join(folder, name))
            is_link = os.path.islink(path)
            found[path] = "-> " + os.readlink(path) if is_link else open(path, errors="replace").read()
    return found

os.chdir(f"n{number}")
if side == "a":
    until(f"started {number}")
    exec(row["landed"])
elif START == 1:
    say(f"started {number}")
    end = time.monotonic() + 60
    while not landed(f"a{number}") and time.monotonic() < end:
        time.sleep(0.05)
    exec(row["own"])
else:
    ref = re.search(r"git diff (\S+)~ ", PROMPT)
    ref = ref[1] if ref else ""
    own = {}
    for line in git("ls-tree", "-r", ref, ".").splitlines() if ref else ():
        meta, _, path = line.partition("\t")
        own[path] = meta.split()[0] + " " + git("show", f"{ref}:./{path}")
    (STATE / f"met {number} {START}").write_text(json.dumps({"tree": holds(), "own": own}))
    exec(row["solve"])
done()
"""
)


class Pair(NamedTuple):
    name: str
    landed: str
    own: str
    files: Mapping[str, str] = {"f.txt": "one\ntwo\nthree\n"}
    solve: str = ""  # by the second start of `own`; empty: it never comes to that
    said: tuple[str, ...] = ()  # in the prompt of that start
    tree: Mapping[str, str | None] = {}  # that it finds in the work tree; None: nothing
    kept: Mapping[str, str] = {}  # that it finds of its own work, under a ref
    after: Mapping[str, str] = {}  # what the commit holds at last


MARKED = "<<<<<<< landed"
ATTRIBUTES = {".gitattributes": "*.txt merge=union\n", "f.txt": "one\ntwo\nthree\n"}
DRIVEN = {".gitattributes": "*.txt merge=mine\n", "f.txt": "one\ntwo\nthree\n"}
BINARY = "open('f.bin', 'wb').write(b'\\0{}')"
LONG = "".join(f"line {number}\n" for number in range(20))

PAIRS = (
    Pair(
        "text",
        "write('f.txt', 'one\\nLANDED\\nthree\\n')",
        "write('f.txt', 'one\\nOWN\\nthree\\n')",
        solve="write('f.txt', 'one\\nLANDED OWN\\nthree\\n')",
        said=("f.txt: both sides changed the same lines",),
        tree={"f.txt": MARKED},
        kept={"f.txt": "100644 one\nOWN\nthree"},
        after={"f.txt": "one\nLANDED OWN\nthree\n"},
    ),
    Pair(
        "added lines",
        "write('f.txt', 'one\\ntwo\\nthree\\nlanded\\n')",
        "write('f.txt', 'one\\ntwo\\nthree\\nown\\n')",
        after={"f.txt": "one\ntwo\nthree\nlanded\nown\n"},
    ),
    Pair(
        "added lines of the same name",
        "write('f.txt', 'one\\ntwo\\nthree\\nthe same\\nlanded\\n')",
        "write('f.txt', 'one\\ntwo\\nthree\\nthe same\\nown\\n')",
        solve="write('f.txt', 'one\\ntwo\\nthree\\nthe same\\nlanded\\nown\\n')",
        said=("f.txt: both sides added lines at the same place, some of them the same",),
        tree={"f.txt": MARKED},
        after={"f.txt": "one\ntwo\nthree\nthe same\nlanded\nown\n"},
    ),
    Pair(
        "both added",
        "write('new.txt', 'landed\\n')",
        "write('new.txt', 'own\\n')",
        solve="write('new.txt', 'landed own\\n')",
        said=("new.txt: both sides added this file",),
        tree={"new.txt": MARKED},
        after={"f.txt": "one\ntwo\nthree\n", "new.txt": "landed own\n"},
    ),
    Pair(
        "binary",
        BINARY.format("landed"),
        BINARY.format("own"),
        files={"f.bin": "\0before"},
        solve=BINARY.format("both"),
        said=("f.bin is binary", "there are no markers"),
        tree={"f.bin": "\0landed"},
        kept={"f.bin": "100644 \0own"},
        after={"f.bin": "\0both"},
    ),
    Pair(
        "changed and deleted",
        "write('f.txt', 'LANDED\\n')",
        "git('rm', '-q', 'f.txt')\nwrite('g.txt', 'g')",
        solve="os.remove('f.txt')",
        said=("f.txt: you deleted it, and what landed changed it",),
        tree={"f.txt": "LANDED\n", "g.txt": "g"},
        after={"g.txt": "g"},
    ),
    Pair(
        "deleted and changed",
        "os.remove('f.txt')\nwrite('g.txt', 'g')",
        "write('f.txt', 'OWN\\n')",
        solve="write('h.txt', 'OWN\\n')",
        said=("f.txt: what landed deleted it, and you changed it",),
        tree={"f.txt": None, "g.txt": "g"},
        kept={"f.txt": "100644 OWN"},
        after={"g.txt": "g", "h.txt": "OWN\n"},
    ),
    Pair(
        "renamed apart",
        "git('mv', 'f.txt', 'landed.txt')",
        "git('mv', 'f.txt', 'own.txt')",
        files={"f.txt": LONG},
        solve="os.rename('landed.txt', 'both.txt')",
        said=("landed.txt: what landed gave the file this name, and you renamed it to", "own.txt"),
        tree={"landed.txt": LONG, "own.txt": None, "f.txt": None},
        kept={"own.txt": "100644 " + LONG.strip()},
        after={"both.txt": LONG},
    ),
    Pair(
        "renamed and deleted",
        "git('mv', 'f.txt', 'landed.txt')",
        "os.remove('f.txt')\nwrite('g.txt', 'g')",
        files={"f.txt": LONG},
        solve="os.remove('landed.txt')",
        said=("landed.txt: what landed renamed", "you deleted"),
        tree={"landed.txt": LONG},
        after={"g.txt": "g"},
    ),
    Pair(
        "deleted and renamed",
        "os.remove('f.txt')\nwrite('g.txt', 'g')",
        "git('mv', 'f.txt', 'own.txt')",
        files={"f.txt": LONG},
        solve="write('own.txt', 'again\\n')",
        said=("f.txt: what landed deleted it, and you changed it and renamed it to",),
        tree={"own.txt": None, "f.txt": None},
        kept={"own.txt": "100644 " + LONG.strip()},
        after={"g.txt": "g", "own.txt": "again\n"},
    ),
    Pair(
        "renamed and changed, both lines",
        f"git('mv', 'f.txt', 'landed.txt')\nwrite('landed.txt', {LONG!r}.replace('7', 'LANDED'))",
        f"write('f.txt', {LONG!r}.replace('7', 'OWN'))",
        files={"f.txt": LONG},
        solve=f"write('landed.txt', {LONG!r}.replace('7', 'BOTH'))",
        said=("landed.txt: both sides changed the same lines",),
        tree={"landed.txt": MARKED, "f.txt": None},
        after={"landed.txt": LONG.replace("7", "BOTH")},
    ),
    Pair(
        "a directory where a file landed",
        "write('thing', 'landed\\n')",
        "write('thing/part.txt', 'own\\n')",
        solve="write('other/part.txt', 'own\\n')",
        said=("thing: one side has a file where the other has a directory", "thing/part.txt"),
        tree={"thing": "landed\n"},
        kept={"thing/part.txt": "100644 own"},
        after={"f.txt": "one\ntwo\nthree\n", "thing": "landed\n", "other/part.txt": "own\n"},
    ),
    Pair(
        "a file where a directory landed",
        "write('thing/part.txt', 'landed\\n')",
        "write('thing', 'own\\n')",
        solve="write('other', 'own\\n')",
        said=("thing: one side has a file where the other has a directory",),
        tree={"thing/part.txt": "landed\n"},
        kept={"thing": "100644 own"},
        after={"f.txt": "one\ntwo\nthree\n", "thing/part.txt": "landed\n", "other": "own\n"},
    ),
    Pair(
        "a directory became a file, and grew",
        "write('dir/new.txt', 'landed\\n')",
        "git('rm', '-q', '-r', 'dir')\nwrite('dir', 'own\\n')",
        files={"dir/old.txt": "old\n"},
        solve="write('other', 'own\\n')",
        said=("dir: one side has a file where the other has a directory",),
        tree={"dir/new.txt": "landed\n"},
        kept={"dir": "100644 own"},
        after={"dir/new.txt": "landed\n", "other": "own\n"},
    ),
    Pair(
        "link",
        "os.remove('f.txt')\nos.symlink('landed', 'f.txt')",
        "os.remove('f.txt')\nos.symlink('own', 'f.txt')",
        solve="os.remove('f.txt')\nos.symlink('both', 'f.txt')",
        said=("f.txt is a link on one side", "there are no markers"),
        tree={"f.txt": "-> landed"},
        kept={"f.txt": "120000 own"},
        after={"f.txt": "both"},
    ),
    Pair(
        "link and text",
        "os.remove('f.txt')\nos.symlink('landed', 'f.txt')",
        "write('f.txt', 'own\\n')",
        solve="os.remove('f.txt')\nwrite('f.txt', 'both\\n')",
        said=("f.txt is a link on one side",),
        tree={"f.txt": "-> landed"},
        kept={"f.txt": "100644 own"},
        after={"f.txt": "both\n"},
    ),
    Pair(
        "mode",
        "write('run', 'x\\n')\nos.chmod('run', 0o755)",
        "write('run', 'x\\n')\nwrite('g.txt', 'g')",
        solve="os.chmod('run', 0o644)",
        said=("run: both sides added it, one as a program",),
        tree={"run": "x\n", "g.txt": "g"},
        kept={"run": "100644 x"},
        after={"f.txt": "one\ntwo\nthree\n", "run": "x\n", "g.txt": "g"},
    ),
    Pair(
        "text that attributes would merge",
        "write('f.txt', 'one\\nLANDED\\nthree\\n')",
        "write('f.txt', 'one\\nOWN\\nthree\\n')",
        files=ATTRIBUTES,
        solve="write('f.txt', 'one\\nLANDED OWN\\nthree\\n')",
        said=("f.txt: both sides changed the same lines",),
        tree={"f.txt": MARKED},
        after={**ATTRIBUTES, "f.txt": "one\nLANDED OWN\nthree\n"},
    ),
    Pair(
        "text that a driver would merge",
        "write('f.txt', 'one\\nLANDED\\nthree\\n')",
        "git('config', 'merge.mine.driver', 'true')\nwrite('f.txt', 'one\\nOWN\\nthree\\n')",
        files=DRIVEN,
        solve="write('f.txt', 'one\\nLANDED OWN\\nthree\\n')",
        said=("f.txt: both sides changed the same lines",),
        tree={"f.txt": MARKED},
        after={**DRIVEN, "f.txt": "one\nLANDED OWN\nthree\n"},
    ),
    Pair(
        "renamed there, changed here: no conflict",
        "git('mv', 'f.txt', 'landed.txt')",
        f"write('f.txt', {LONG!r} + 'own\\n')",
        files={"f.txt": LONG},
        after={"landed.txt": LONG + "own\n"},
    ),
    Pair(
        "changed there, renamed here: no conflict",
        f"write('f.txt', {LONG!r} + 'landed\\n')",
        "git('mv', 'f.txt', 'own.txt')",
        files={"f.txt": LONG},
        after={"own.txt": LONG + "landed\n"},
    ),
    Pair(
        "mode there, text here: no conflict",
        "os.chmod('f.txt', 0o755)",
        "write('f.txt', 'own\\n')",
        after={"f.txt": "own\n"},
    ),
    Pair(
        "the same on both sides: no conflict",
        "git('rm', '-q', 'f.txt')\nwrite('g.txt', 'g')",
        "os.remove('f.txt')\nwrite('g.txt', 'g')\nwrite('h.txt', 'h')",
        after={"g.txt": "g", "h.txt": "h"},
    ),
)
TOGETHER = 6
NIGHTS = [PAIRS[first : first + TOGETHER] for first in range(0, len(PAIRS), TOGETHER)]


def night_of(tmp_path: Path, pairs: tuple[Pair, ...]) -> Sandbox:
    """A project with two stories for each pair."""
    rows = {
        str(n): {"landed": it.landed, "own": it.own, "solve": it.solve}
        for n, it in enumerate(pairs)
    }
    names = [f"{side}{number}" for number in range(len(pairs)) for side in "ab"]
    files = {
        f"n{number}/{name}": text
        for number, it in enumerate(pairs)
        for name, text in it.files.items()
    }
    return yard(tmp_path, f"ROWS = {rows!r}\n{AGENT}", stories=stories_of(*names), files=files)


def met(box: Sandbox, number: int, start: int = 2) -> dict[str, Any]:
    """What the second start of a pair's other story found."""
    found: dict[str, Any] = json.loads((box.state / f"met {number} {start}").read_text())
    return found


def in_directory(box: Sandbox, number: int) -> dict[str, str]:
    """What the branch holds of a pair, at last."""
    mine = f"n{number}/"
    tree = committed(box.root).items()
    return {path.removeprefix(mine): entry.text for path, entry in tree if path.startswith(mine)}


@pytest.mark.parametrize("pairs", NIGHTS, ids=lambda pairs: f"{pairs[0].name} and more")
def test_each_kind_of_conflict_is_told_and_solved(tmp_path: Path, pairs: tuple[Pair, ...]) -> None:
    """Both sides are there, the words are of its kind, it lands again, and is replayed."""
    box = night_of(tmp_path, pairs)
    done = box.run("--lanes", "2", timeout=300)
    assert done.code == 0, done.text
    for number, pair in enumerate(pairs):
        name = f"b{number}"
        assert starts(box, name) == (2 if pair.solve else 1), (pair.name, done.text)
        if pair.solve:
            told = prompt(box, name, 2)
            for words in (*pair.said, f"a{number}: Do a{number}", f"n{number}/"):
                assert words in told, (pair.name, told)
            assert ("stand between conflict markers" in told) == (MARKED in pair.tree.values()), (
                pair.name
            )
            found = met(box, number)
            for path, text in pair.tree.items():
                there = found["tree"].get(path)
                assert there is None if text is None else text in (there or ""), (pair.name, found)
            for path, text in pair.kept.items():
                assert found["own"][path] == text, (pair.name, found)
        assert in_directory(box, number) == pair.after, pair.name
    assert box.git("status", "--porcelain") == ""
    replayed = box.ralph("replay")
    assert replayed.code == 0, replayed.text


def test_a_side_that_is_given_up_is_said(tmp_path: Path) -> None:
    """Where nothing is done about a conflict without markers, what landed stays; a person hears it."""
    wanted = ("binary", "changed and deleted", "a directory where a file landed")
    pairs = tuple(it._replace(solve="write('g.txt', 'more')") for it in PAIRS if it.name in wanted)
    box = night_of(tmp_path, pairs)
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    for number, words in enumerate(
        (
            "in the conflict over n0/f.bin what landed was kept, and given up: git show",
            "in the conflict over n1/f.txt what landed was kept, and given up: that n1/f.txt was",
            "in the conflict over n2/thing what landed was kept, and given up: git show",
        )
    ):
        assert " ".join(done.text.split()).count(words) == 1, (number, done.text)
    ref = done.text.partition("given up: git show ")[2].split(":")[0]
    assert box.git("cat-file", "blob", f"{ref}:n0/f.bin") == "\0own"
    assert box.ralph("replay").code == 0


def test_a_conflict_in_a_submodule_is_told_and_nothing_is_lost(tmp_path: Path) -> None:
    """Both commit in it: the one that landed is in place, the other one can be merged there."""
    agent = rf"""{PRELUDE}
write(f"sub/{{STORY}}.txt", STORY)
git("add", "-A", where="sub")
if START == 1:
    git("commit", "-q", "-m", f"inside {{STORY}}", where="sub")
    say(STORY); until({{"a": "b", "b": "a"}}[STORY])
else:
    import re
    ref = re.search(r"yours: git ls-tree (\S+) sub", PROMPT)[1]
    own = git("ls-tree", ref, "sub").split()[2]
    os.remove(f"sub/{{STORY}}.txt")
    git("reset", "-q", "--hard", where="sub")
    git("merge", "-q", "-m", "both", own, where="sub")
done()
"""
    update = "git -c protocol.file.allow=always submodule --quiet update --init".split()
    toml = f"[lanes]\nsetup = [{update!r}]\n"
    box = yard(tmp_path, agent, stories=stories_of("a", "b"), toml=toml)
    add_submodules(box.root, tmp_path, ("sub",))
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    assert box.ralph("lanes", "clean").code == 0
    box.git("submodule", "--quiet", "update", "--no-fetch")
    assert {path.name for path in (box.root / "sub").glob("*.txt")} == {
        "a.txt",
        "b.txt",
        "inner.txt",
    }
    assert sorted(starts(box, name) for name in "ab") == [1, 2]
    assert box.ralph("replay").code == 0


def test_work_that_is_taken_up_later_is_told_of_its_conflicts(tmp_path: Path) -> None:
    """It was kept when its lane went to another story, which deleted what it had changed."""
    agent = """
if STORY == "a" and START == 1:
    write("base.txt", "own")
    status()
    say("a has begun")
    sys.exit()
if STORY == "b":
    os.remove("base.txt")
write(f"{STORY}.txt")
done()
"""
    box = yard(tmp_path, agent, stories=stories_of("a", "b"))
    assert box.run("--lanes", "1", "--max-iterations", "1").code == 3
    stories = json.loads((box.root / "prd.json").read_text())
    stories["userStories"][0]["dependsOn"] = ["b"]
    (box.root / "prd.json").write_text(json.dumps(stories))
    box.git("commit", "-qam", "b first")
    done = box.run("--continue", "--lanes", "1", "--max-iterations", "9")
    assert done.code == 0, done.text
    told = prompt(box, "a", 2)
    assert "base.txt: what landed deleted it, and you changed it" in told
    assert "in the conflict over base.txt what landed was kept" in " ".join(done.text.split())
    ref = told.partition("git show ")[2].split(":")[0]
    assert box.git("show", f"{ref}:base.txt") == "own"
    assert box.ralph("replay").code == 0


@pytest.mark.parametrize("point", ["landing.put", "lane.saved", "landing.recorded", "lane.stood"])
@pytest.mark.parametrize("nth", [2, 3])
def test_a_conflict_survives_a_kill(tmp_path: Path, point: str, nth: int) -> None:
    """Killed around a landing that meets another: told, solved and landed once all the same."""
    wanted = ("text", "deleted and changed")
    pairs = tuple(it for it in PAIRS if it.name in wanted)
    box = night_of(tmp_path, pairs)
    killed = box.run("--lanes", "2", env=to_be_killed_at(f"{point}:{nth}"))
    assert killed.code in (0, -9), killed.text
    done = box.run("--continue", "--lanes", "2") if killed.code else killed
    assert done.code == 0, done.text
    for number, pair in enumerate(pairs):
        assert in_directory(box, number) == pair.after, (pair.name, killed.text, done.text)
    subjects = box.subjects()
    assert len(subjects) == len(set(subjects)) == 5
    assert box.ralph("replay").code == 0
