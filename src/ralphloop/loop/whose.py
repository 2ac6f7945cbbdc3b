"""Whose word each changed file is, as the repository tells it.

What judges a story is compared with how it stood when the run first started, moved on by what
persons changed since: an agent that made the judge of another story easier gains nothing by it.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import cache, partial
from pathlib import PurePosixPath

from ralphloop.core.own_work import PathChange, PathEntry
from ralphloop.core.sides import Side
from ralphloop.loop.run import Run
from ralphloop.repo.git import ANYHOW
from ralphloop.repo.judges import Judge, crates_asked_for, place_of
from ralphloop.repo.snapshot import Change, Snapshotter
from ralphloop.text.asserting import is_asserting_go, is_asserting_rust

_MANIFEST = "Cargo.toml"
_MOST_MANIFESTS = 40
_LARGEST_SCRIPT = 256 * 1024
_MOST_LISTED = 100_000
_LOOKED_BACK = 500  # iterations


def text_in(measure: Snapshotter, tree: str, prefix: str, path: str) -> str:
    """The text of a file of the project in a tree; empty where there is none."""
    ended = measure.git().attempt("cat-file", "blob", f"{tree}:{prefix}{path}")
    found = ended.stdout[:_LARGEST_SCRIPT] if ended.returncode == 0 else b""
    return found.decode("utf-8", "replace")


def judge_of(measure: Snapshotter, tree: str, prefix: str, argv: Sequence[str]) -> Judge:
    """A command with the files behind it, as this tree has them."""
    names = measure.git().names("ls-tree", "-r", "-z", "--name-only", "--full-tree", tree)
    inside = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
    listed = [name for _, name in zip(range(_MOST_LISTED), inside, strict=False)]
    return Judge(argv, cache(partial(text_in, measure, tree, prefix)), listed)


def place_changes(
    measure: Snapshotter, tree: str, prefix: str, judge: Judge, changes: Sequence[Change]
) -> dict[str, Side]:
    """The side of each changed path for a command that judges; `tree` is what stood before."""

    @cache
    def naming(name: str) -> frozenset[str]:
        asked = ("grep", "-l", "-z", "-I", "-F", "-e", name, tree)
        found = measure.git().names(*asked, ok=ANYHOW)
        return frozenset(it.removeprefix(f"{tree}:").removeprefix(prefix) for it in found)

    return {
        change.path: place_of(
            change.path.removeprefix(prefix),
            existed=change.before is not None,
            judge=judge,
            naming=naming,
        )
        for change in changes
    }


def helpers_of_tests(
    measure: Snapshotter,
    trees: Sequence[str],
    prefix: str,
    changes: Sequence[Change],
    contents: Mapping[str, bytes],
) -> frozenset[str]:
    """Changed files of Go and Rust that assert for tests and belong to no product, by their text.

    What a file was says so, of a new one what it is.  In Rust it is of a crate that is asked for as
    a dev-dependency.
    """

    def text_of(change: Change) -> str:
        return contents.get(change.before or change.after or "", b"").decode("utf-8", "replace")

    of_go = [it for it in changes if it.path.endswith(".go") and is_asserting_go(text_of(it))]
    of_rust = [it for it in changes if it.path.endswith(".rs") and is_asserting_rust(text_of(it))]
    crates = _crates_of_tests(measure, trees, prefix) if of_rust else ()
    of_rust = [it for it in of_rust if it.path.startswith(crates)] if crates else []
    return frozenset(it.path for it in (*of_go, *of_rust))


def _crates_of_tests(measure: Snapshotter, trees: Sequence[str], prefix: str) -> tuple[str, ...]:
    """The directories of crates that some manifest asks for as a dev-dependency, and none else."""
    for_tests = set[str]()
    for_product = set[str]()
    for tree in trees:
        names = measure.git().names("ls-tree", "-r", "-z", "--name-only", "--full-tree", tree)
        inside = (name.removeprefix(prefix) for name in names if name.startswith(prefix))
        manifests = [it for it in inside if PurePosixPath(it).name == _MANIFEST][:_MOST_MANIFESTS]
        for manifest in manifests:
            crates = crates_asked_for(manifest, text_in(measure, tree, prefix, manifest))
            for_tests |= crates.for_tests
            for_product |= crates.for_product
    return tuple(f"{prefix}{it}/" for it in for_tests - for_product)


def at_first_start(
    run: Run, measure: Snapshotter, now: str, is_wanted: Callable[[str, PathChange], bool]
) -> Mapping[str, PathEntry | None]:
    """What stood at some paths when the run first started, where that is not what the tree has.

    What changed while no agent ran is a person's, and taken over.  With lanes a start may begin
    with an older state than the one before it ended with: what an agent wrote is never a person's.
    """
    first = run.session.baseline.start_tree
    if not first or first == now or not measure.has(first):
        return {}
    differing = measure.entries_changed(first, now)
    base = {path: it.before for path, it in differing.items() if is_wanted(path, it)}
    if not base:
        return {}
    rounds = list(reversed(list(run.journal.latest_iterations(run.id, _LOOKED_BACK))))
    trees = [first]
    by_agents = set[tuple[str, PathEntry | None]]()
    for one in rounds:
        ended = one.end_tree or one.tree
        trees += [one.tree, ended]
        if ended != one.tree and measure.has(one.tree) and measure.has(ended):
            wrote = measure.entries_changed(one.tree, ended)
            by_agents |= {(path, wrote[path].after) for path in base if path in wrote}
    for ended, begun in zip(trees[0::2], trees[1::2], strict=False):
        if ended == begun or not (measure.has(ended) and measure.has(begun)):
            continue
        since = measure.entries_changed(ended, begun)
        by_persons = {path: since[path].after for path in base if path in since}
        base |= {path: it for path, it in by_persons.items() if (path, it) not in by_agents}
    return {path: entry for path, entry in base.items() if entry != differing[path].after}
