"""What a lane will not have: said before a run, and again where one could not begin for it."""

from collections.abc import Iterator
from pathlib import Path

from ralphloop.config.model import Config
from ralphloop.errors import RalphError, RepositoryError
from ralphloop.lanes.worktrees import included
from ralphloop.repo.work_tree import Repository, project_prefix
from ralphloop.stacks.lane_setup import LaneLack, LaneRecipe, lacking_in_lane

_UNTRACKED = ("ls-files", "--others", "--directory", "-z")


def lacking_in_lanes(root: Path, config: Config, repo: Repository | None) -> Iterator[LaneLack]:
    """What the checks of a project need and its lanes will not have, with what to write."""
    lanes = config.lanes
    copied = list(lanes.copy)
    untracked: list[str] = []
    if repo is not None:
        prefix = project_prefix(repo.root, root)
        paths = [*included(repo, (), prefix)]
        copied += [path.removeprefix(prefix) for path in paths if path.startswith(prefix)]
        listed = repo.git.attempt(*_UNTRACKED, "--", f":(top,literal){prefix}" if prefix else ":/")
        names = listed.stdout.decode("utf-8", "replace").split("\0")
        untracked = [name.removeprefix(prefix) for name in names if name.startswith(prefix)]
    recipe = LaneRecipe(tuple(copied), lanes.setup)
    yield from lacking_in_lane(root, config.checks.commands, recipe, untracked)


def for_want_of(error: RalphError, lacking: Iterator[LaneLack]) -> RalphError:
    """The error with what its lane lacks, which is likely why; itself where nothing does."""
    first = next(lacking, None)
    if first is None:
        return error
    return RepositoryError(f"{error.message}\n  in a lane {first.words}", first.fix)
