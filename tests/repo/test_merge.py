"""Putting a commit onto another: nothing is lost, whatever the two sides did to files and names."""

from __future__ import annotations

import subprocess
from itertools import count

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ralphloop.core.merging import ConflictKind
from ralphloop.repo.merge import Labels, Merged, merged
from ralphloop.repo.work_tree import Repository

LABELS = Labels(landed="landed", own="own")
LINES = tuple(f"line {number}" for number in range(8))
Tree = dict[str, str]  # contents by path; what begins with `->` is a link
Names = ("f", "g", "d/f", "d/g", "d/e/f", "d", "d/e")
_numbers = count()


def text_of(changed: dict[int, str]) -> str:
    """Eight lines, some of them others."""
    return "".join(f"{changed.get(number, line)}\n" for number, line in enumerate(LINES))


def fits(tree: Tree) -> bool:
    """Whether no file stands where another one needs a directory."""
    return not any(other.startswith(f"{path}/") for path in tree for other in tree)


contents = st.one_of(
    st.dictionaries(st.integers(0, 7), st.sampled_from(["A", "B"]), max_size=2).map(text_of),
    st.sampled_from(["\0binary 1", "\0binary 2", "-> here", "-> there", ""]),
)
trees = st.dictionaries(st.sampled_from(Names), contents, max_size=4).filter(fits)


@pytest.fixture(scope="module")
def repo(tmp_path_factory: pytest.TempPathFactory) -> Repository:
    """One repository for all examples: they are objects in it."""
    root = tmp_path_factory.mktemp("merged")
    subprocess.run(["git", "init", "-q"], cwd=root, check=True)
    return Repository.open(root)


def stored(repo: Repository, tree: Tree) -> str:
    """A tree object with these files."""
    lines = []
    for path, text in sorted(tree.items()):
        is_link = text.startswith("-> ")
        content = text.removeprefix("-> ").encode()
        name = repo.git.run("hash-object", "-w", "--stdin", stdin=content).decode().strip()
        lines.append(f"{'120000' if is_link else '100644'} {name}\t{path}")
    index = {"GIT_INDEX_FILE": str(repo.git_dir / f"index-{next(_numbers)}")}
    git = repo.git.writing().adapted(env=index)
    git.run("read-tree", "--empty")
    git.run("update-index", "--index-info", stdin="".join(f"{it}\n" for it in lines).encode())
    return git.line("write-tree")


def read(repo: Repository, tree: str) -> Tree:
    """The files of a tree object."""
    found = {}
    for line in repo.git.line("ls-tree", "-r", tree).splitlines():
        meta, _, path = line.partition("\t")
        mode, _, name = meta.split()
        link = "-> " if mode == "120000" else ""
        found[path] = link + repo.git.run("cat-file", "blob", name).decode()
    return found


def put(repo: Repository, base: Tree, landed: Tree, own: Tree) -> Merged:
    """One side onto the other."""
    return merged(repo, stored(repo, base), stored(repo, landed), stored(repo, own), LABELS)


# Contents that are nobody else's: nothing looks renamed.
versions = st.dictionaries(st.sampled_from(Names), st.integers(0, 3), max_size=4).map(
    lambda tree: {
        path: f"{path} {which}\n" * 3 if which else f"\0{path}" for path, which in tree.items()
    }
)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(base=versions.filter(fits), landed=versions.filter(fits), own=versions.filter(fits))
def test_no_side_is_dropped_without_a_word(
    repo: Repository, base: Tree, landed: Tree, own: Tree
) -> None:
    """Every path is as the one side has it that changed it, or it is told to be in conflict.

    Then it is as it landed, or has both sides between markers.
    """
    found = put(repo, base, landed, own)
    result = read(repo, found.tree)
    assert fits(result)
    told = {it.own_path.decode(): it for it in found.conflicts}
    for path in {*base, *landed, *own}:
        was, there, mine = (tree.get(path) for tree in (base, landed, own))
        now = result.get(path)
        if path not in told:
            assert now == (there if mine in (there, was) else mine), path
            assert mine in (there, was) or there == was, path
        elif told[path].kind.has_markers:
            assert (there or "?").split("\n")[0] in (now or ""), path
            assert (mine or "?").split("\n")[0] in (now or ""), path
        else:
            assert mine != there, path
            assert now == there, path


@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
@given(base=trees, landed=trees, own=trees)
def test_it_is_what_git_merges_where_git_finds_no_conflict(
    repo: Repository, base: Tree, landed: Tree, own: Tree
) -> None:
    """Renames included: git's own merge is clean just where ours is, and the tree is the same."""
    ours = put(repo, base, landed, own)
    names = [stored(repo, it) for it in (base, landed, own)]
    git = repo.git.writing().adapted(
        env={
            f"GIT_{who}_{what}": "x@y"
            for who in ("AUTHOR", "COMMITTER")
            for what in ("NAME", "EMAIL")
        }
    )
    first = git.line("commit-tree", names[0], "-m", "base")
    sides = [git.line("commit-tree", name, "-p", first, "-m", "side") for name in names[1:]]
    theirs = git.attempt("-c", "merge.directoryRenames=false", "merge-tree", "--write-tree", *sides)
    if theirs.returncode > 1:
        pytest.skip("this git cannot merge without a work tree")
    if theirs.returncode == 0:
        assert not ours.conflicts, (theirs.stdout, ours)
        assert ours.tree == theirs.stdout.decode().strip()
    else:
        assert ours.conflicts or ours.joined, theirs.stdout


@pytest.mark.parametrize("ending", ["\n", "\r\n"])
def test_line_endings_and_a_missing_last_one_are_kept(repo: Repository, ending: str) -> None:
    """Lines that nobody changed stay as they are, to the byte."""
    base = ending.join(LINES)
    found = put(
        repo,
        {"f": base},
        {"f": base.replace("line 0", "landed")},
        {"f": base.replace("line 7", "own")},
    )
    assert not found.conflicts
    assert read(repo, found.tree)["f"] == base.replace("line 0", "landed").replace("line 7", "own")


TESTS = "import calc\n\n\ndef test_old():\n    assert calc.one() == 1\n"
LANDED = """
\ndef test_two():
    found = calc.two()
    assert found == 2
"""
OWN = """
\ndef test_three():
    found = calc.three()
    assert found == 3
"""


def test_what_both_sides_only_added_is_taken_whole_in_the_order_of_landing(
    repo: Repository,
) -> None:
    """Lines that happen to be the same in both stay in both: neither function loses one."""
    found = put(repo, {"t.py": TESTS}, {"t.py": TESTS + LANDED}, {"t.py": TESTS + OWN})
    assert not found.conflicts
    assert found.joined == (b"t.py",)
    assert read(repo, found.tree)["t.py"] == TESTS + LANDED + OWN


@pytest.mark.parametrize(
    ("landed", "own"),
    [
        pytest.param(LANDED, OWN.replace("test_three", "test_two"), id="a function of one name"),
        pytest.param("\n### Fixed\n\n- One.\n", "\n### Fixed\n\n- Two.\n", id="a heading"),
        pytest.param('"a" = 1\n"b" = 2\n', '"a" = 1\n"c" = 3\n', id="an entry"),
    ],
)
def test_what_both_sides_added_alike_stays_a_conflict(
    repo: Repository, landed: str, own: str
) -> None:
    """Two of the same name would be one too many, and one would hide the other."""
    found = put(repo, {"t.py": TESTS}, {"t.py": TESTS + landed}, {"t.py": TESTS + own})
    assert [it.kind for it in found.conflicts] == [ConflictKind.ADDED_LINES]
    assert found.joined == ()


@pytest.mark.parametrize(
    ("landed", "own"),
    [
        pytest.param(TESTS.replace("== 1", "== 2"), TESTS + OWN, id="one changed a line there"),
        pytest.param(TESTS + LANDED, "import calc\n" + OWN, id="one removed lines there"),
    ],
)
def test_what_one_side_changed_is_a_conflict_as_ever(
    repo: Repository, landed: str, own: str
) -> None:
    """Only additions are taken without asking."""
    found = put(repo, {"t.py": TESTS}, {"t.py": landed}, {"t.py": own})
    assert [it.kind for it in found.conflicts] == [ConflictKind.TEXT]


def test_lines_of_one_sign_are_no_markers(repo: Repository) -> None:
    """Headings underlined with many signs are text, however long they are."""
    base = f"Changes\n{'=' * 47}\n\n"
    mine, theirs = (f"{name} things\n{'=' * length}\n" for name, length in (("My", 9), ("X", 200)))
    found = put(repo, {"c.rst": base}, {"c.rst": base + theirs}, {"c.rst": base + mine})
    assert not found.conflicts
    assert read(repo, found.tree)["c.rst"] == base + theirs + mine
