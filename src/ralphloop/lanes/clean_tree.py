"""The clean tree of a run in the checkout: what a commit would hold, and what makes it ready.

It is a clone of our own in the person's state directory, which no sandbox shows to an agent.  It is
made ready as lanes are, by `lanes.copy` and `lanes.setup`, and kept for the next run.  A program or
path that leads back into the checkout would test the agent's tree under another name: refused.
"""

import hashlib
import os
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path

import msgspec

from ralphloop.errors import GitDisturbed, RalphError, RepositoryError
from ralphloop.lanes.worktrees import (
    LaneTree,
    ReadyMark,
    make_ready,
    manifests_digest,
    read_mark,
    remove,
    tested_instead,
    what_to_do,
    write_mark,
)
from ralphloop.loop.confine import confine_site
from ralphloop.loop.prepare import Setup, Site
from ralphloop.loop.run import Run
from ralphloop.loop.workspace import Workspace
from ralphloop.proc.threads import in_thread
from ralphloop.project import Project
from ralphloop.repo.clone import Clone, open_clone
from ralphloop.repo.preflight import no_room
from ralphloop.repo.snapshot import Snapshot
from ralphloop.repo.work_tree import Repository, project_prefix
from ralphloop.room import CLEAN, state_directory
from ralphloop.text.plain import one_line

_MANIFESTS = "ralph-manifests"  # in git's directory of it: what was copied was copied for these
_MOST_WORDS = 300


def clean_root(project: Path, env: Mapping[str, str]) -> Path | None:
    """Where the clean tree of a project lies; None without a place for state."""
    state = state_directory(env)
    if state is None:
        return None
    real = project.resolve()
    digest = hashlib.sha256(os.fsencode(real)).hexdigest()[:8]
    return state / CLEAN / f"{real.name or 'root'}-{digest}"


class KeptClone:
    """The clean tree of one run; nothing is made before it is asked for."""

    def __init__(self, setup: Setup, checkout: Workspace) -> None:
        self.why_not = ""
        self._setup = setup
        self._checkout = checkout
        self._clone: Clone | None = None
        self._workspace: Workspace | None = None

    def give_up(self, why: str) -> None:
        self.why_not = why

    def close(self) -> None:
        if self._workspace is not None:
            self._workspace.close()

    async def open(self, run: Run) -> Workspace | None:
        """The place with the files of now, made ready; None where that cannot be done."""
        moment = self._checkout.tree()
        return await self.lay(run, moment)

    async def lay(self, run: Run, moment: Snapshot) -> Workspace | None:
        """The place with the files of that moment, made ready; None where that cannot be done."""
        if self.why_not:
            return None
        try:
            return await in_thread(lambda gone: self._laid(run, moment, gone))
        except GitDisturbed:
            raise
        except (RalphError, OSError) as error:
            words = error.message if isinstance(error, RalphError) else str(error)
            self.give_up(one_line(words, _MOST_WORDS))
            return None

    def _laid(self, run: Run, moment: Snapshot, gone: Callable[[], bool]) -> Workspace:
        place = self._opened(run)
        clone = self._clone
        if clone is None:
            raise RepositoryError("there is no git repository")
        whole = self._whole_tree(clone, moment)
        tree = LaneTree(0, clone.repo, "", _prefix(self._setup))
        mark = read_mark(clone.repo.git_dir) or ReadyMark()
        clone.lay(whole, moment.head, moment.branch, mark.brought)
        self._make_ready(run, place, tree, gone)
        place.touched()
        if place.tree().tree != moment.tree:
            changed = place.measure.changes(moment.tree, place.tree().tree)[:3]
            named = ", ".join(change.path for change in changed)
            raise RepositoryError(f"{named} is not the same in a copy of what git has")
        return place

    def _opened(self, run: Run) -> Workspace:
        """The workspace in the clone; both are made where they are not yet."""
        if self._workspace is not None:
            return self._workspace
        setup = self._setup
        source = self._checkout.repo
        root = clean_root(setup.project.root, setup.options.env)
        if source is None:
            raise RepositoryError("there is no git repository")
        if root is None:
            raise RepositoryError("there is no directory for what ralph keeps (HOME is not set)")
        if full := no_room(root if root.exists() else setup.project.root):
            raise RepositoryError(full)
        if leads := tested_instead(source, run.config.checks.commands):
            raise RepositoryError(leads)
        self._clone = open_clone(source, setup.project.directory / "objects", root)
        site = _site_in(setup, self._clone)
        self._clone = Clone(site.repo or self._clone.repo, source)
        self._clone.scratch.mkdir(exist_ok=True)
        self._workspace = Workspace(site, clock=self._checkout.clock, scratch=self._clone.scratch)
        return self._workspace

    def _whole_tree(self, clone: Clone, moment: Snapshot) -> str:
        """The tree that a commit of that moment would have: our own files are as HEAD has them."""
        measure = self._checkout.measure
        own = clone.own_entries(moment.head, measure.own)
        return measure.with_entries(moment.tree, own) if own else moment.tree

    def _make_ready(
        self, run: Run, place: Workspace, tree: LaneTree, gone: Callable[[], bool]
    ) -> None:
        """Bring along and set up what is not committed; raises where that fails."""
        setup = self._setup
        source = self._checkout.repo
        if source is None:
            return
        self._forget_old_copies(tree, place.root)
        if steps := what_to_do(tree, source, setup.project.root, setup.config):
            run.tell(f"The tree that stories are judged in is made ready: {steps}")
        why = make_ready(
            tree,
            source,
            setup.project.root,
            setup.config,
            lambda: gone() or run.stop.requested,
            place.check_box,
        )
        if why:
            raise RepositoryError(why)

    def _forget_old_copies(self, tree: LaneTree, root: Path) -> None:
        """Have packages copied anew where a story asks for others than were copied."""
        if not self._setup.config.lanes.copy:
            return
        wanted = manifests_digest([tree.root, root])
        note = tree.repo.git_dir / _MANIFESTS
        known = ""
        with suppress(OSError):
            known = note.read_text("utf-8")
        if known != wanted:
            mark = tree.mark()
            for path in mark.copied:
                remove(tree.root / path)
            write_mark(tree, msgspec.structs.replace(mark, recipe="", copied=(), digest=""))
            note.write_text(wanted, "utf-8")


def _prefix(setup: Setup) -> str:
    return project_prefix(setup.repo.root, setup.project.root) if setup.repo else ""


def _site_in(setup: Setup, clone: Clone) -> Site:
    """The clone as a place to judge in; stories and what is ours stay with the checkout."""
    project = Project(clone.repo.root / _prefix(setup), setup.project.root)
    repo = _like(clone.repo, setup.site.repo)
    site = msgspec.structs.replace(setup.site, project=project, repo=repo)
    return confine_site(setup, site, objects=[clone.source.objects]).site


def _like(repo: Repository, other: Repository | None) -> Repository:
    return repo.scoped(other.scope) if other else repo


def clean_tree_of(setup: Setup, checkout: Workspace) -> KeptClone | None:
    """Where the stories of a run in the checkout are to be judged; None: where they are made."""
    is_wanted = setup.config.proof.clean_tree == "auto" and setup.repo is not None
    return KeptClone(setup, checkout) if is_wanted else None
