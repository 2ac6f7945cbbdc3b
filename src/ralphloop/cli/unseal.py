"""`ralph unseal`: bring sealed tests back into the work tree."""

import os
import time

import click

from ralphloop.atomic import write_atomic
from ralphloop.cli.shared.steering import refuse_agent
from ralphloop.errors import InputError, LockedError
from ralphloop.night.look import holder_of
from ralphloop.project import find_project
from ralphloop.repo.git import printable
from ralphloop.repo.work_tree import Repository
from ralphloop.sealed import forget_sealed, sealed_files, sealed_text
from ralphloop.text.plain import counted, some


@click.command()
@click.argument("paths", nargs=-1, required=True)
@click.option("--forget", is_flag=True, help="Do not bring them back: delete them for good.")
def unseal(paths: tuple[str, ...], forget: bool) -> str:
    """Bring sealed tests back into the work tree, where agents can read and change them.

    PATHS are as `ralph seal --list` shows them; a directory stands for all below it.  Nothing is
    committed.
    """
    project = find_project()
    refuse_agent(project, "unseal")
    repo = Repository.open(project.root)
    if holder := holder_of(project, time.time()):
        raise LockedError(f"run {holder.run} is at work here", "First: ralph stop")
    asked = [path.rstrip("/") for path in paths]
    files = [
        one
        for one in sealed_files(project.root, os.environ)
        if any(one.path == path or one.path.startswith(f"{path}/") for path in asked)
    ]
    if not files:
        raise InputError(f"{some(paths)}: nothing of that name is sealed", "ralph seal --list")
    if not forget:
        for one in files:
            target = repo.root / one.path
            if target.exists():
                raise InputError("is there already", "Move it away first.", place=one.path)
        for one in files:
            content = sealed_text(project.root, os.environ, one)
            target = repo.root / one.path
            write_atomic(target, content, within=repo.root, parents=True)
            if one.is_executable:
                target.chmod(0o755)
    forget_sealed(project.root, os.environ, [one.path for one in files])
    done = "Deleted" if forget else "Unsealed"
    names = some([printable(one.path) for one in files], 5)
    return f"{done} {counted(len(files), 'file')}: {names}."
