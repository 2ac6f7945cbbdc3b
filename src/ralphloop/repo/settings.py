"""What git obeys and what lies in the work tree, where agents write.

A person's configuration may include a file of the tree, or name a program there that git starts
while it signs, fetches or pushes.  That happens outside of any sandbox, so these files stay as they
are while agents work.  Filters, hooks and drivers are not meant: git runs them in its own box.
"""

import os
import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

from ralphloop.proc import programs
from ralphloop.repo.work_tree import Repository

_INCLUDES = re.compile(r"(?:include|includeif\..*)\.path", re.DOTALL)
_PROGRAMS = re.compile(
    r"gpg\.(?:.*\.)?program|gpg\.ssh\.defaultkeycommand|credential\.(?:.*\.)?helper"
    r"|core\.(?:sshcommand|askpass|gitproxy|alternaterefscommand)"
    r"|remote\..*\.(?:uploadpack|receivepack)",
    re.DOTALL,
)


class GitSetting(NamedTuple):
    origin: str  # the file it stands in; empty: none
    key: str  # in small letters, but for a name in the middle
    value: str


class ObeyedFiles(msgspec.Struct, frozen=True):
    files: tuple[Path, ...] = ()  # of the work tree, to be kept as they are
    problem: str = ""  # what cannot be kept so, in words
    fix: str = ""


def git_settings(repo: Repository) -> list[GitSetting]:
    """Every setting that is in force, with the file it comes from."""
    fields = repo.git.names("config", "--list", "--show-origin", "-z")
    pairs = zip(fields[0::2], fields[1::2], strict=False)
    found = []
    for origin, setting in pairs:
        key, _, value = setting.partition("\n")
        file = origin.removeprefix("file:") if origin.startswith("file:") else ""
        found.append(GitSetting(str(repo.root / file) if file else "", key, value))
    return found


def obeyed_in_tree(repo: Repository, home: Path) -> ObeyedFiles:
    """Files that git obeys and an agent could write; or why that cannot be prevented."""
    files: dict[Path, None] = {}
    for setting in git_settings(repo):
        for path in _named_by(setting, repo.root, home):
            if not programs.is_distrusted(path):
                continue
            if not path.is_file() or programs.links_to(path):
                return ObeyedFiles(
                    problem=f"git obeys {path} ({setting.key}), which an agent could put there",
                    fix="Take that setting out of git's configuration, or name a file elsewhere.",
                )
            files[path] = None
    return ObeyedFiles(tuple(files))


def _named_by(setting: GitSetting, root: Path, home: Path) -> Iterator[Path]:
    """The files that a setting makes git read or start, itself included."""
    if setting.origin:
        yield Path(os.path.normpath(setting.origin))
    beside = Path(setting.origin).parent if setting.origin else root
    if _INCLUDES.fullmatch(setting.key):
        yield _expanded(setting.value, beside, home)
    elif _PROGRAMS.fullmatch(setting.key):
        try:
            words = shlex.split(setting.value.lstrip("!"))
        except ValueError:
            words = setting.value.split()
        for number, word in enumerate(words):
            path = _expanded(word, root, home)
            # The program itself, or a script that it is given.
            if "/" in word and (number == 0 or path.is_file()):
                yield path


def _expanded(word: str, beside: Path, home: Path) -> Path:
    path = home / word[2:] if word.startswith("~/") else beside / word
    return Path(os.path.normpath(path))
