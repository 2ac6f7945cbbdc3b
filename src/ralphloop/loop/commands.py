"""Commands of the settings that are to tell somebody something: `session.on_end`, `notify.command`.

They need the world outside: a screen, a login, the network.  But where agents are confined, what
lies in the work tree is theirs by the time it runs.  So a command that takes what it runs from the
tree runs in the box of checks; a program that lies elsewhere, and is given nothing of the tree,
runs outside, with a PATH and hooks of git that lead to nothing in it.  Whether it takes something
from the tree is decided from its words, and where they do not tell, it does.
"""

import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path, PurePath

from ralphloop.loop.confine import box_of_commands
from ralphloop.loop.prepare import Setup
from ralphloop.own_code import RUNS_CODE, runs_code_of
from ralphloop.proc import programs
from ralphloop.proc.programs import Beginning

_SHELLS = frozenset("sh bash dash zsh ksh fish".split())
# What starts another program that is named behind it.
_CARRIERS = frozenset("env timeout nice nohup sudo xargs time stdbuf setsid flock doas".split())
_VERSION = re.compile(r"[0-9.]+$")
_TOKEN = re.compile(r"[^\s'\"=;|&<>(){},]+")
# What a shell makes of words cannot be told from the words.
_UNTOLD = re.compile(
    r"\./|[`*?\[\\]|\$\(|\$[\w{][^\s'\"]{0,200}/|(?:^|[\s;&|(])(?:\.|cd|pushd|source|eval)\s"
)


def begin_command(setup: Setup, argv: Sequence[str]) -> Beginning:
    """How a command of the settings is started: as it is, in a box, or outside and out of reach."""
    env = setup.options.env
    root = setup.project.root
    if not programs.confines():
        return Beginning(argv, env)
    if takes_from_tree(argv, root):
        box = box_of_commands(setup)
        return Beginning(*box.start(argv, root, env), confined=True)
    outside = programs.trusted_environment(env)
    program = argv[0] if "/" in argv[0] else programs.program(argv[0])
    return Beginning((program, *argv[1:]), outside | _no_hooks_of_tree(setup))


def takes_from_tree(argv: Sequence[str], root: Path) -> bool:
    """Whether a command runs, or may run, something that agents could have written."""
    first = argv[0]
    if "/" in first and programs.is_distrusted(root / first):
        return True
    if "/" not in first and programs.find(first) is None:
        return True  # only there, or nowhere
    rest = list(argv[1:])
    if runs_code_of(root, argv) or any(_in_tree(word, root) for word in _words(rest)):
        return True
    name = _plain(first)
    if name in _CARRIERS:
        # Whatever it carries is somewhere behind it.
        return any(_plain(word) in RUNS_CODE for word in rest)
    if name in _SHELLS and any(word.startswith("-") for word in rest[:1]):
        line = " ".join(rest[1:])
        if "PWD" in line or _UNTOLD.search(os.path.expandvars(line)):
            return True
        return any(_plain(word) in RUNS_CODE for word in _TOKEN.findall(line))
    # Code that is given in words looks for modules where it runs, which is the tree.
    return name in RUNS_CODE and any(word.startswith("-") for word in rest[:1])


def _words(rest: Sequence[str]) -> Iterator[str]:
    for word in rest:
        yield word
        yield from _TOKEN.findall(os.path.expandvars(word))


def _in_tree(word: str, root: Path) -> bool:
    path = root / os.path.expanduser(word) if word.strip("./") else None  # noqa: PTH111
    try:
        return path is not None and os.path.lexists(path) and programs.is_distrusted(path)
    except ValueError:
        return False  # no name of a file: a NUL in it


def _plain(word: str) -> str:
    name = PurePath(word).name
    return _VERSION.sub("", name) or name


def _no_hooks_of_tree(setup: Setup) -> dict[str, str]:
    """Where the person's hooks lie in the tree, a git that is started outside runs none."""
    repo = setup.repo
    if repo is None:
        return {}
    hooks = repo.git.line("config", "--type=path", "--get", "core.hooksPath", ok=(0, 1))
    if not hooks or not programs.is_distrusted(repo.root / hooks):
        return {}
    return {
        "GIT_CONFIG_COUNT": "1",
        "GIT_CONFIG_KEY_0": "core.hooksPath",
        "GIT_CONFIG_VALUE_0": os.devnull,
    }
