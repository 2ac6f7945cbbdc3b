"""What an honest agent does with git and files, as data: one row for each deed.

A row is independent of where it is done.  Its `deed` is Python that follows the library of either
`tests/loop/projects.py` or `tests/lanes/yards.py`, and `PRELUDE` (`git(…)` for the agent's own
git): it does the work and says nothing, so that whoever uses it adds `done()` or something else.
`expected` is what the story means the committed tree to hold, besides what ralph writes itself.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Literal, NamedTuple

FILE = "100644"
EXECUTABLE = "100755"
LINK = "120000"
COMMIT = "160000"  # of a submodule; what is in it is the commit's subject

PRELUDE = r"""
import subprocess

def git(*arguments, where="."):
    # The agent's own git, as its shell tool would call it.
    return subprocess.run(
        ["git", "-c", "protocol.file.allow=always", *arguments],
        cwd=where, check=True, capture_output=True,
    ).stdout.decode("utf-8", "surrogateescape").strip()
"""


class Entry(NamedTuple):
    """One path of a committed tree."""

    text: str
    mode: str = FILE


class Deed(NamedTuple):
    """One thing an honest agent does."""

    name: str
    deed: str
    files: Mapping[str, str] = {}  # tracked at the start
    after: Mapping[str, Entry | None] = {}  # what is different afterwards; None is gone
    submodules: tuple[str, ...] = ()  # of the project at the start, with a file `inner.txt` each
    ends: Literal["passes", "review"] = "passes"
    left_out: tuple[str, ...] = ()  # stays in the work tree, uncommitted, and is spoken of
    said: tuple[str, ...] = ()  # each is somewhere in what is printed, or in the report
    stays: tuple[str, ...] = ()  # ignored, and still in the work tree afterwards

    @property
    def expected(self) -> dict[str, Entry]:
        """The files of the project in the committed tree, apart from ralph's own."""
        start = {name: Entry(text) for name, text in self.files.items()}
        links = {name: Entry("start of the submodule", COMMIT) for name in self.submodules}
        both = {**start, **links, **self.after}
        return {name: entry for name, entry in both.items() if entry is not None}


OLD = "def old():\n    return 1\n"
TWO = {"keep.txt": "keep\n", "old.txt": "one\ntwo\nthree\nfour\nfive\n"}
ODD = "not utf-8 \udcff\udcfe.txt"  # two bytes that are no UTF-8

DEEDS = (
    Deed("plain edit", "write('old.txt', 'edited\\n')", TWO, {"old.txt": Entry("edited\n")}),
    Deed("plain removal", "os.remove('old.txt')", TWO, {"old.txt": None}),
    Deed("git rm", "git('rm', '-q', 'old.txt')", TWO, {"old.txt": None}),
    Deed(
        "git rm of a directory",
        "git('rm', '-q', '-r', 'dir')",
        {**TWO, "dir/a.txt": "a\n", "dir/b/c.txt": "c\n"},
        {"dir/a.txt": None, "dir/b/c.txt": None},
    ),
    Deed(
        "git rm --cached",
        "git('rm', '-q', '--cached', 'old.txt')\n"
        "with open('.gitignore', 'a') as file:\n    file.write('old.txt\\n')",
        TWO,
        {"old.txt": None},
    ),
    Deed(
        "plain rename",
        "os.rename('old.txt', 'new.txt')",
        TWO,
        {"old.txt": None, "new.txt": Entry(TWO["old.txt"])},
    ),
    Deed(
        "git mv",
        "git('mv', 'old.txt', 'new.txt')",
        TWO,
        {"old.txt": None, "new.txt": Entry(TWO["old.txt"])},
    ),
    Deed(
        "git mv of a directory",
        "git('mv', 'dir', 'moved')",
        {**TWO, "dir/a.txt": "a\n", "dir/b/c.txt": "c\n"},
        {
            "dir/a.txt": None,
            "dir/b/c.txt": None,
            "moved/a.txt": Entry("a\n"),
            "moved/b/c.txt": Entry("c\n"),
        },
    ),
    Deed(
        "git mv and edit",
        "git('mv', 'old.txt', 'new.txt')\nwrite('new.txt', 'one\\ntwo\\nthree\\nfour\\nSIX\\n')",
        TWO,
        {"old.txt": None, "new.txt": Entry("one\ntwo\nthree\nfour\nSIX\n")},
    ),
    Deed(
        "rename that changes case only",
        "git('mv', 'old.txt', 'Old.txt')",
        TWO,
        {"old.txt": None, "Old.txt": Entry(TWO["old.txt"])},
    ),
    Deed(
        "git mv there and back",
        "git('mv', 'old.txt', 'new.txt')\ngit('mv', 'new.txt', 'old.txt')\nwrite('more.txt', 'm\\n')",
        TWO,
        {"more.txt": Entry("m\n")},
    ),
    Deed(
        "two files change places",
        "os.rename('keep.txt', 'tmp')\nos.rename('old.txt', 'keep.txt')\nos.rename('tmp', 'old.txt')",
        TWO,
        {"keep.txt": Entry(TWO["old.txt"]), "old.txt": Entry("keep\n")},
    ),
    Deed(
        "commits itself",
        "write('new.txt', 'new\\n')\ngit('add', '-A')\ngit('commit', '-q', '-m', 'mine')",
        TWO,
        {"new.txt": Entry("new\n")},
    ),
    Deed(
        "commits a removal itself",
        "git('rm', '-q', 'old.txt')\ngit('commit', '-q', '-m', 'mine')",
        TWO,
        {"old.txt": None},
    ),
    Deed(
        "commits and amends",
        "write('new.txt', 'new\\n')\ngit('add', '-A')\ngit('commit', '-q', '-m', 'mine')\n"
        "write('new.txt', 'better\\n')\ngit('mv', 'old.txt', 'moved.txt')\n"
        "git('add', '-A')\ngit('commit', '-q', '--amend', '-m', 'mine, better')",
        TWO,
        {
            "new.txt": Entry("better\n"),
            "old.txt": None,
            "moved.txt": Entry(TWO["old.txt"]),
        },
    ),
    Deed(
        "commits a part",
        "write('one.txt', '1\\n')\nwrite('two.txt', '2\\n')\n"
        "git('add', 'one.txt')\ngit('commit', '-q', '-m', 'half')",
        TWO,
        {"one.txt": Entry("1\n"), "two.txt": Entry("2\n")},
    ),
    Deed(
        "stash and pop",
        "write('new.txt', 'new\\n')\nwrite('old.txt', 'edited\\n')\n"
        "git('stash', '-q', '-u')\ngit('stash', 'pop', '-q')",
        TWO,
        {"new.txt": Entry("new\n"), "old.txt": Entry("edited\n")},
    ),
    Deed(
        "stash and pop with the index",
        "git('rm', '-q', 'old.txt')\nwrite('new.txt', 'new\\n')\ngit('add', 'new.txt')\n"
        "git('stash', '-q')\ngit('stash', 'pop', '-q', '--index')",
        TWO,
        {"new.txt": Entry("new\n"), "old.txt": None},
    ),
    Deed(
        "stages a part",
        "write('old.txt', 'half\\n')\ngit('add', 'old.txt')\nwrite('old.txt', 'whole\\n')\n"
        "write('new.txt', 'new\\n')",
        TWO,
        {"old.txt": Entry("whole\n"), "new.txt": Entry("new\n")},
    ),
    Deed(
        "intent to add",
        "write('new.txt', 'new\\n')\ngit('add', '-N', 'new.txt')",
        TWO,
        {"new.txt": Entry("new\n")},
    ),
    Deed(
        "intent to add, then removed",
        "write('new.txt', 'new\\n')\ngit('add', '-N', 'new.txt')\nos.remove('new.txt')\n"
        "write('other.txt', 'other\\n')",
        TWO,
        {"other.txt": Entry("other\n")},
    ),
    Deed(
        "staged, then removed",
        "write('new.txt', 'new\\n')\ngit('add', 'new.txt')\nos.remove('new.txt')\n"
        "write('other.txt', 'other\\n')",
        TWO,
        {"other.txt": Entry("other\n")},
    ),
    Deed(
        "git rm, then written again",
        "git('rm', '-q', 'old.txt')\nwrite('old.txt', 'anew\\n')",
        TWO,
        {"old.txt": Entry("anew\n")},
    ),
    Deed(
        "mode",
        "os.chmod('old.txt', 0o755)",
        TWO,
        {"old.txt": Entry(TWO["old.txt"], EXECUTABLE)},
    ),
    Deed("symlink", "os.symlink('keep.txt', 'link')", TWO, {"link": Entry("keep.txt", LINK)}),
    Deed(
        "symlink that points nowhere",
        "os.symlink('no/such/file', 'link')",
        TWO,
        {"link": Entry("no/such/file", LINK)},
    ),
    Deed(
        "file becomes symlink",
        "os.remove('old.txt')\nos.symlink('keep.txt', 'old.txt')",
        TWO,
        {"old.txt": Entry("keep.txt", LINK)},
    ),
    Deed(
        "directory becomes symlink",
        "os.rename('dir', 'real')\nos.symlink('real', 'dir')",
        {**TWO, "dir/a.txt": "a\n"},
        {"dir/a.txt": None, "real/a.txt": Entry("a\n"), "dir": Entry("real", LINK)},
    ),
    Deed(
        "file becomes directory",
        "os.remove('thing')\nwrite('thing/part.py', 'X = 1\\n')\nwrite('thing/notes.md', 'n\\n')",
        {**TWO, "thing": "file\n"},
        {"thing": None, "thing/part.py": Entry("X = 1\n"), "thing/notes.md": Entry("n\n")},
    ),
    Deed(
        "file becomes directory, by git",
        "git('mv', 'thing', 'tmp')\nos.mkdir('thing')\ngit('mv', 'tmp', 'thing/part.txt')",
        {**TWO, "thing": "file\n"},
        {"thing": None, "thing/part.txt": Entry("file\n")},
    ),
    Deed(
        "file becomes directory of prose",
        "os.remove('thing')\nwrite('thing/notes.md', 'n\\n')",
        {**TWO, "thing": "file\n"},
        {"thing": None, "thing/notes.md": Entry("n\n")},
    ),
    Deed(
        "directory becomes file",
        "os.remove('dir/a.txt')\nos.remove('dir/b/c.txt')\nos.rmdir('dir/b')\nos.rmdir('dir')\n"
        "write('dir', 'now a file\\n')",
        {**TWO, "dir/a.txt": "a\n", "dir/b/c.txt": "c\n"},
        {"dir/a.txt": None, "dir/b/c.txt": None, "dir": Entry("now a file\n")},
    ),
    Deed(
        "directory becomes file, by git",
        "git('mv', 'dir/a.txt', 'tmp')\ngit('rm', '-q', '-r', 'dir')\ngit('mv', 'tmp', 'dir')",
        {**TWO, "dir/a.txt": "a\n", "dir/b/c.txt": "c\n"},
        {"dir/a.txt": None, "dir/b/c.txt": None, "dir": Entry("a\n")},
    ),
    Deed(
        "odd names",
        "for name in ('with space.txt', 'qu\"o\\'te.txt', '-dash.txt', 'new\\nline.txt', ':colon',\n"
        "             'st*r?.txt', '[x].txt', 'back\\\\slash', 'tab\\there', '\\u00fcn\\u00efc\\u00f6de-\\u732b.txt',\n"
        "             '#hash', '!bang'):\n"
        "    write(name, 'odd\\n')",
        TWO,
        {
            name: Entry("odd\n")
            for name in (
                "with space.txt",
                "qu\"o'te.txt",
                "-dash.txt",
                "new\nline.txt",
                ":colon",
                "st*r?.txt",
                "[x].txt",
                "back\\slash",
                "tab\there",
                "\u00fcn\u00efc\u00f6de-\u732b.txt",
                "#hash",
                "!bang",
            )
        },
    ),
    Deed(
        "odd names move",
        "git('mv', '--', '-dash.txt', 'with space.txt')\ngit('rm', '-q', ':(literal)new\\nline*.txt')",
        {**TWO, "-dash.txt": "odd\n", "new\nline*.txt": "odd\n", "new\nline-not.txt": "stays\n"},
        {"-dash.txt": None, "new\nline*.txt": None, "with space.txt": Entry("odd\n")},
    ),
    Deed(
        "a name that is no UTF-8",
        "write(os.fsdecode(b'not utf-8 \\xff\\xfe.txt'), 'bytes\\n')",
        TWO,
        {ODD: Entry("bytes\n")},
    ),
    Deed(
        "a name that is no UTF-8 moves",
        "os.rename(os.fsdecode(b'not utf-8 \\xff\\xfe.txt'), 'utf-8.txt')",
        {**TWO, ODD: "bytes\n"},
        {ODD: None, "utf-8.txt": Entry("bytes\n")},
    ),
    Deed(
        "commits in a submodule",
        "write('sub/inner.txt', 'changed inside\\n')\n"
        "git('commit', '-q', '-a', '-m', 'inside', where='sub')",
        TWO,
        {"sub": Entry("inside", COMMIT)},
        submodules=("sub",),
    ),
    Deed(
        "makes a nested repository",
        "write('nested/file.txt', 'nested\\n')\ngit('init', '-q', where='nested')\n"
        "git('add', '-A', where='nested')\ngit('commit', '-q', '-m', 'n', where='nested')\n"
        "write('beside.txt', 'beside\\n')",
        TWO,
        {"beside.txt": Entry("beside\n")},
        ends="review",
        left_out=("nested/file.txt",),
        said=("nested",),
    ),
    Deed(
        "switches to a branch and back",
        "git('switch', '-q', '-c', 'try-it')\nwrite('new.txt', 'new\\n')\ngit('add', '-A')\n"
        "git('commit', '-q', '-m', 'on a branch')\ngit('switch', '-q', '-')\n"
        "git('merge', '-q', '--ff-only', 'try-it')\ngit('branch', '-q', '-d', 'try-it')",
        TWO,
        {"new.txt": Entry("new\n")},
    ),
    Deed(
        "a large file",
        "with open('large.bin', 'wb') as file:\n    file.truncate(60_000_000)\n"
        "write('new.txt', 'new\\n')",
        TWO,
        {"new.txt": Entry("new\n")},
        left_out=("large.bin",),
        said=("large.bin",),
    ),
    Deed(
        "an empty file beside real work",
        "write('pkg/__init__.py', '')\nwrite('pkg/work.py', 'X = 1\\n')\nwrite('pkg/py.typed', '')",
        TWO,
        {
            "pkg/__init__.py": Entry(""),
            "pkg/work.py": Entry("X = 1\n"),
            "pkg/py.typed": Entry(""),
        },
    ),
    Deed("empties a file", "write('old.txt', '')", TWO, {"old.txt": Entry("")}),
    Deed(
        "ignored files",
        "write('build/out.bin', 'built\\n')\nwrite('new.txt', 'new\\n')\n"
        "with open('.gitignore', 'a') as file:\n    file.write('build/\\n')",
        TWO,
        {"new.txt": Entry("new\n")},
    ),
)

# Rows that were added for the checkout: what git does with a file depends on who staged it.
IN_THE_CHECKOUT = (
    Deed(
        "file becomes directory of ignored files",
        "os.remove('thing')\nwrite('thing/__pycache__/x.pyc', 'built\\n')",
        {**TWO, "thing": "file\n"},
        {"thing": None},
        stays=("thing/__pycache__/x.pyc",),
    ),
    Deed(
        "stages a nested repository",
        "write('nested/file.txt', 'nested\\n')\ngit('init', '-q', where='nested')\n"
        "git('add', '-A', where='nested')\ngit('commit', '-q', '-m', 'n', where='nested')\n"
        "write('beside.txt', 'beside\\n')\ngit('add', '-A')",
        TWO,
        {"beside.txt": Entry("beside\n")},
        ends="review",
        left_out=("nested/file.txt",),
        said=("nested",),
    ),
    Deed(
        "stages a large file",
        "with open('large.bin', 'wb') as file:\n    file.truncate(60_000_000)\n"
        "write('new.txt', 'new\\n')\ngit('add', '-A')",
        TWO,
        {"new.txt": Entry("new\n")},
        left_out=("large.bin",),
        said=("large.bin",),
    ),
    Deed(
        "adds a submodule",
        "write('../inner/file.txt', 'inner\\n')\ngit('init', '-q', where='../inner')\n"
        "git('add', '-A', where='../inner')\ngit('commit', '-q', '-m', 'added', where='../inner')\n"
        "git('submodule', 'add', '-q', '../inner', 'added')",
        TWO,
        {"added": Entry("added", COMMIT)},
    ),
)

OURS = frozenset(
    {
        "prd.json",
        "progress.txt",
        "ralph.toml",
        ".gitignore",
        ".gitmodules",
        "base.txt",
    }
)


def committed(root: Path, treeish: str = "HEAD", *, but: frozenset[str] = OURS) -> dict[str, Entry]:
    """What a commit holds, apart from what every project has."""
    found = {}
    for line in _git(root, "ls-tree", "-r", "-z", treeish).split(b"\0")[:-1]:
        head, _, raw = line.partition(b"\t")
        mode, kind, name = head.decode().split()
        path = raw.decode("utf-8", "surrogateescape")
        if path in but:
            continue
        if kind == "commit":
            text = _git(root / path, "show", "-s", "--format=%s", name).strip()
        else:
            text = _git(root, "cat-file", "blob", name)
        found[path] = Entry(text.decode("utf-8", "surrogateescape"), mode)
    return found


def add_submodules(root: Path, beside: Path, names: tuple[str, ...]) -> None:
    """Give a repository its submodules, each with one commit, and commit that."""
    for name in names:
        source = beside / f"source of {name}"
        source.mkdir()
        (source / "inner.txt").write_text("inner\n")
        _git(source, "init", "-q", "-b", "main")
        _git(source, "add", "-A")
        _git(source, "commit", "-q", "-m", "start of the submodule")
        _git(root, "-c", "protocol.file.allow=always", "submodule", "add", "-q", str(source), name)
    if names:
        _git(root, "commit", "-q", "-m", "submodules")


def _git(root: Path, *arguments: str) -> bytes:
    return subprocess.run(["git", *arguments], cwd=root, capture_output=True, check=True).stdout
