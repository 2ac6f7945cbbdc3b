"""`ralph seal`: take acceptance tests out of every agent's reach."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

import click

from ralphloop.cli import output
from ralphloop.cli.shared.seals import keep_sealed, refuse_while_running, warn_of_reach
from ralphloop.cli.shared.steering import refuse_agent
from ralphloop.errors import InputError, RepositoryError, UsageError
from ralphloop.project import Project, find_project
from ralphloop.repo.experiment import is_test_file
from ralphloop.repo.git import first_lines, literal_pathspecs, printable
from ralphloop.repo.work_tree import Repository
from ralphloop.room import read_regular
from ralphloop.sealed import LARGEST_FILE, MOST_FILES, SealedFile, sealed_files
from ralphloop.text.plain import counted, some


@click.command()
@click.argument("paths", nargs=-1, type=click.Path(path_type=Path))
@click.option(
    "--for",
    "stories",
    metavar="STORY",
    multiple=True,
    help="They have to be green for this story; repeatable.",
)
@click.option("--list", "as_list", is_flag=True, help="Show what is sealed, without its text.")
@click.option("--json", "as_json", is_flag=True, help="With --list: as JSON.")
def seal(paths: tuple[Path, ...], stories: tuple[str, ...], as_list: bool, as_json: bool) -> None:
    """Seal acceptance tests: no agent can read or change them.

    The files leave the work tree and the branch, in a commit of their own, and are kept in your
    state directory.  They run in a clean tree when a story is judged; prompts and reports name the
    tests that fail, never their text.

    \b
    ralph seal tests/accept                   they speak for the whole project
    ralph seal tests/test_refund.py --for US-3
    """
    project = find_project()
    if as_list:
        _show(project, as_json=as_json)
        return
    if not paths:
        raise UsageError("name the tests to seal", "ralph seal tests/accept, or: ralph seal --list")
    refuse_agent(project, "seal")
    repo = Repository.open(project.root)
    refuse_while_running(project)
    wanted = list(_files(repo, paths))
    if not any(is_test_file(path) for path in wanted):
        raise InputError(
            f"{some(wanted, 3)}: none of these is a file of tests", "Name files such as test_x.py."
        )
    _seal_all(project, repo, wanted, stories)


def _files(repo: Repository, paths: Sequence[Path]) -> Iterator[str]:
    """The files below these paths, from the repository's root."""
    found: dict[str, None] = {}
    for path in paths:
        real = path.resolve()
        if not real.is_relative_to(repo.root.resolve()) or not path.exists():
            reason = "does not exist" if not path.exists() else "lies outside of the repository"
            raise InputError(reason, "Name files of this repository.", place=str(path))
        for one in sorted(real.rglob("*")) if real.is_dir() else (real,):
            is_generated = "__pycache__" in one.parts or ".git" in one.parts
            if one.is_file() and not one.is_symlink() and not is_generated:
                found[one.relative_to(repo.root.resolve()).as_posix()] = None
    if not found:
        raise InputError("there is no file to seal", place=str(paths[0]))
    if len(found) > MOST_FILES:
        raise InputError(f"{len(found)} files are more than can be sealed ({MOST_FILES})")
    yield from found


def _seal_all(
    project: Project, repo: Repository, wanted: Sequence[str], stories: tuple[str, ...]
) -> None:
    """Keep the files, then take them out of the work tree and of the branch."""
    for path in wanted:
        try:
            content = read_regular(repo.root / path, most=LARGEST_FILE + 1)
        except OSError as error:
            raise InputError(f"cannot be read: {error.strerror}", place=path) from None
        if len(content) > LARGEST_FILE:
            raise InputError("is larger than 4 MB", "Seal tests, not data.", place=path)
        is_executable = os.access(repo.root / path, os.X_OK)
        keep_sealed(project, repo, path, content, stories, is_executable=is_executable)
    tracked = repo.git.names("ls-files", "-z", "--", *(f":(top,literal){it}" for it in wanted))
    for path in wanted:
        (repo.root / path).unlink(missing_ok=True)
    if tracked:
        _commit_removal(repo, tracked)
    _tell(project, wanted, tracked)


def _commit_removal(repo: Repository, tracked: Sequence[str]) -> None:
    """Take these paths out of the branch, and nothing else that is staged."""
    words = f"Seal {counted(len(tracked), 'acceptance test file')}"
    how = ("--pathspec-from-file=-", "--pathspec-file-nul")
    # Nothing of the repository's own runs for it: it may not be trusted yet.
    git = repo.git.writing().adapted(config=(f"core.hooksPath={os.devnull}",))
    ended = git.attempt(
        "commit",
        "--quiet",
        "--no-gpg-sign",
        "-m",
        words,
        *how,
        stdin=literal_pathspecs(tracked),
    )
    if ended.returncode != 0:
        raise RepositoryError(
            f"the files are sealed, but git did not commit that: {first_lines(ended.stderr)}",
            "Commit their removal yourself: git commit -a",
        )


def _tell(project: Project, wanted: Sequence[str], tracked: Sequence[str]) -> None:
    names = some([printable(path) for path in wanted], 5)
    output.note(f"Sealed {counted(len(wanted), 'file')}: {names}.")
    output.note("They are kept in your state directory and nowhere else: include it in backups.")
    if tracked:
        output.warn(
            "git's history still has them: an agent that looks there can read them"
            f" (git log -- {printable(tracked[0])})"
        )
    warn_of_reach(project)


def _show(project: Project, *, as_json: bool) -> None:
    files = sealed_files(project.root, os.environ)
    data = [
        {
            "path": one.path,
            "sealed_at": one.sealed_at,
            "by": one.by,
            "stories": one.stories,
            "sha256": one.digest,
        }
        for one in files
    ]
    lines = [_line(one) for one in files] or ["Nothing is sealed."]
    output.show(lines, data, as_json=as_json)


def _line(one: SealedFile) -> str:
    whose = f"for {some(one.stories)}" if one.stories else "for the project"
    return output.safe(f"{printable(one.path)}  {whose}, sealed {one.sealed_at} by {one.by}")
