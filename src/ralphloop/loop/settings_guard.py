"""The files that say how a run works stay as they were while an agent works.

Which checks count, which agents are started and what they are told is for a person to say.  A run
keeps the settings it began with, the next one reads these files again: so what changed in them
while an agent worked is put back, kept under a ref and said.  Whether a person did it meanwhile
cannot be told; between two starts nobody looks.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

from ralphloop.atomic import write_atomic
from ralphloop.loop.runner import Runner
from ralphloop.loop.setup import PROMPT_NAME
from ralphloop.project import CONFIG_NAME, agent_directories
from ralphloop.repo.own_files import project_prefix
from ralphloop.room import open_regular

_LARGEST = 1 << 20
_MOST_FILES = 100

_LINK = b"\0link to "  # no text begins like this

Settings = dict[str, bytes]  # content, or where a link leads


def read_settings(root: Path) -> Settings:
    """The files by their names from the project's root, without very large ones."""
    found: Settings = {}
    for path in _paths(root):
        if path.is_symlink():
            found[path.relative_to(root).as_posix()] = _LINK + os.fsencode(path.readlink())
            continue
        try:
            with open_regular(path) as file:
                content = file.read(_LARGEST + 1)
        except OSError:
            continue
        if len(content) <= _LARGEST:
            found[path.relative_to(root).as_posix()] = content
    return found


def put_back_settings(runner: Runner, number: int) -> tuple[str, ...]:
    """Put back what changed since the agent started; what it was, in words."""
    before, root = runner.settings, runner.setup.project.root
    now = read_settings(root) if before is not None else {}
    if before is None or now == before:
        return ()
    changed = sorted(name for name in {*before, *now} if before.get(name) != now.get(name))
    _keep(runner, number, {name: now[name] for name in changed if name in now})
    for name in changed:
        _restore(root, name, before.get(name))
    verb = "was" if len(changed) == 1 else "were"
    return (f"{', '.join(changed)} {verb} changed while the agent worked, and put back",)


def _keep(runner: Runner, number: int, files: Settings) -> None:
    """The other version, for whoever wants it."""
    repo, root = runner.setup.repo, runner.setup.project.root
    if repo is None or not files:
        return
    from ralphloop.repo.set_aside import keep_files, ref_name

    ref, prefix = ref_name(runner.run, number, "settings"), project_prefix(repo.root, root)
    # A link may stand where the branch has a directory.
    names = {name: f"{name}.link" if it.startswith(_LINK) else name for name, it in files.items()}
    keep_files(repo, ref, {f"{prefix}{names[name]}": it for name, it in files.items()})
    remark = f"the settings as they were after the agent are kept at {ref}"
    runner.remarks = (*runner.remarks, remark)


def _restore(root: Path, name: str, content: bytes | None) -> None:
    path = root / name
    if any(parent.is_symlink() for parent in path.parents if parent.is_relative_to(root)):
        return  # beyond a link nothing is ours
    if content is None or path.is_symlink():
        path.unlink(missing_ok=True)
    if content is None:
        return
    path.parent.mkdir(parents=True, exist_ok=True)
    if not content.startswith(_LINK):
        write_atomic(path, content, within=root)
    elif not path.is_dir():
        path.unlink(missing_ok=True)
        path.symlink_to(os.fsdecode(content.removeprefix(_LINK)))


def _paths(root: Path) -> Iterator[Path]:
    yield from (root / CONFIG_NAME, root / PROMPT_NAME)
    for folder in agent_directories(root):
        if folder.is_symlink():
            yield folder
        else:
            yield from sorted(folder.glob("*.toml"))[:_MOST_FILES]
