"""What honest work is graded: commits of any repository, each replayed as a story.

    python benchmarks/histories.py CLONE --check "pytest -q" --commits 12 --work /tmp/graded
    python benchmarks/histories.py CLONE --check "npx vitest run" --bring DIRECTORY

For each commit a repository is made at its parent, with one story that has the commit's subject,
and `ralph run` starts an agent that applies the whole commit and says that it is done.  Commits are
taken from the newest back: those that change behaviour and bring tests.  Where the check is red at
the parent or at the commit itself, or takes longer than two minutes, the commit is left out and
named.

DIRECTORY holds what the checks need and git does not know, such as `node_modules`; it is laid into
each repository and named in `lanes.copy`.  The table has the grade of each story, why it has no
better one, whether the tree is the commit's, and what checking took, as a multiple of the check
alone.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ralphloop.core.grading import Grade
from ralphloop.core.proof import is_test_path
from ralphloop.journal.queries import JournalReader
from ralphloop.proof.python import NotPython, pieces_of
from ralphloop.proof.trees import NoGrammar, grammar_of, pieces_of_tree

AGENT = """\
import json, os, subprocess, sys
from pathlib import Path
sys.stdin.read()
work = json.loads(Path({work!r}).read_text())
for path in work["gone"]:
    Path(path).unlink(missing_ok=True)
for path, mode in work["here"]:
    place = Path(path)
    place.parent.mkdir(parents=True, exist_ok=True)
    show = ["git", "--git-dir", work["clone"], "show", work["commit"] + ":" + path]
    data = subprocess.run(show, check=True, capture_output=True).stdout
    if place.is_symlink() or mode == "120000":
        place.unlink(missing_ok=True)
    if mode == "120000":
        place.symlink_to(data.decode())
        continue
    place.write_bytes(data)
    place.chmod(0o755 if mode == "100755" else 0o644)
print("---RALPH_STATUS---\\nSTATUS: COMPLETE\\nEXIT_SIGNAL: true\\n---END_RALPH_STATUS---")
"""
CONFIG = """\
[agent]
name = "command"
command = {agent}
[checks]
commands = [{check}]
timeout = 600
baseline = "{baseline}"
[limits]
max_iterations = 3
[lanes]
copy = {copy}
[learning]
enabled = false
[session]
keep_awake = false
[proof]
experiments = "{experiments}"
"""
LONGEST_S = 120.0
MOST_LOOKED_AT = 2_000
OWN = ("prd.json", "ralph.toml", "progress.txt", ".gitignore")
IN_RUST = re.compile(rb"^\+.*(?:#\[test\]|assert|should_panic)", re.MULTILINE)


class Replayed(NamedTuple):
    commit: str
    subject: str
    grade: str
    is_same_tree: bool
    starts: int
    why: str
    check_s: float
    trial_s: float
    mutants_s: float


class Clone:
    """A repository that is only read."""

    def __init__(self, place: Path) -> None:
        git_dir = place / ".git"
        self.place = git_dir if git_dir.exists() else place

    def git(self, *args: str, env: dict[str, str] | None = None) -> bytes:
        """What git prints."""
        argv = ["git", f"--git-dir={self.place}", *args]
        found = subprocess.run(argv, check=True, capture_output=True, env=env or os.environ)
        return found.stdout

    def text(self, commit: str, path: str) -> bytes | None:
        """A file of a commit, or nothing."""
        try:
            return self.git("show", f"{commit}:{path}")
        except subprocess.CalledProcessError:
            return None

    def lay_out(self, commit: str, place: Path) -> None:
        """Write all files of a commit there."""
        place.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory() as room:
            env = {**os.environ, "GIT_INDEX_FILE": f"{room}/index"}
            self.git("read-tree", commit, env=env)
            self.git(f"--work-tree={place}", "checkout-index", "-a", "-f", env=env)

    def changed(self, commit: str) -> list[str]:
        """The paths that a commit changes."""
        found = self.git("diff", "--name-only", "--no-renames", "-z", f"{commit}^1", commit)
        return [path for path in found.decode().split("\0") if path]

    def entries(self, commit: str) -> dict[str, str]:
        """What a commit holds, by path."""
        return entries_of(self.git("ls-tree", "-r", "-z", commit))


def entries_of(listing: bytes) -> dict[str, str]:
    """Mode and object of each path of a listing."""
    rows = (row.partition("\t") for row in listing.decode().split("\0") if row)
    return {path: told for told, _, path in rows}


def changes_behaviour(clone: Clone, commit: str, path: str) -> bool:
    """Whether there is anything in this file that could do something else."""
    new = clone.text(commit, path)
    if new is None:
        return False
    read = pieces_of if path.endswith(".py") else pieces_of_tree
    try:
        return bool(read(path, clone.text(f"{commit}^1", path), new))
    except (NotPython, NoGrammar):
        return False


def brings_tests(clone: Clone, commit: str, paths: Sequence[str]) -> bool:
    """Whether tests changed: in files of their own, or among the code, as in Rust."""
    for path in paths:
        if is_test_path(path):
            return True
        if path.endswith(".rs"):
            diff = clone.git("diff", f"{commit}^1", commit, "--", path)
            if IN_RUST.search(diff):
                return True
    return False


def suitable(clone: Clone, skip: int) -> Iterator[str]:
    """Commits that change behaviour and bring tests, the newest first."""
    order = ["log", "--first-parent", "--format=%H", f"-{MOST_LOOKED_AT}"]
    for commit in clone.git(*order).decode().split():
        if not clone.git("log", "-1", "--format=%P", commit).split():
            return
        paths = clone.changed(commit)
        code = [
            path
            for path in paths
            if not is_test_path(path) and (path.endswith(".py") or grammar_of(path))
        ]
        if not brings_tests(clone, commit, paths):
            continue
        if not any(changes_behaviour(clone, commit, path) for path in code):
            continue
        if skip > 0:
            skip -= 1
            continue
        yield commit


def environment(room: Path) -> dict[str, str]:
    """Ours, with an identity for git and a state of its own."""
    names = ("AUTHOR_NAME", "AUTHOR_EMAIL", "COMMITTER_NAME", "COMMITTER_EMAIL")
    identity = {f"GIT_{name}": "bench@example.com" for name in names}
    homes = {
        "XDG_STATE_HOME": str(room / "state"),
        "XDG_CONFIG_HOME": str(room / "config"),
    }
    return {**os.environ, **identity, **homes, "RALPH_TRUST": "1"}


def is_green(clone: Clone, commit: str, check: Sequence[str], bring: Path | None) -> bool:
    """Whether the check is green at this commit, in a tree that holds nothing else."""
    with tempfile.TemporaryDirectory(prefix="history-") as room:
        place = Path(room) / "tree"
        clone.lay_out(commit, place)
        lay_beside(place, bring)
        subprocess.run(["git", "init", "-q"], cwd=place, check=True)
        return ends_well(check, place)


def ends_well(check: Sequence[str], place: Path) -> bool:
    """Whether a check ends with 0 there, and soon enough."""
    try:
        ended = subprocess.run(
            check,
            check=False,
            cwd=place,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            timeout=LONGEST_S,
        )
    except subprocess.TimeoutExpired:
        return False
    return ended.returncode == 0


def lay_beside(place: Path, bring: Path | None) -> list[str]:
    """Copy what the checks need besides; its names."""
    names = list[str]()
    for one in sorted(bring.iterdir()) if bring else ():
        names.append(one.name)
        if one.is_dir():
            shutil.copytree(one, place / one.name, symlinks=True, dirs_exist_ok=True)
        else:
            shutil.copy2(one, place / one.name)
    return names


def replay(clone: Clone, commit: str, room: Path, wanted: argparse.Namespace) -> Replayed:
    """One commit as a story."""
    place = room / "repo"
    clone.lay_out(f"{commit}^1", place)
    copied = lay_beside(place, wanted.bring)
    subject = clone.git("log", "-1", "--format=%s", commit).decode().strip()
    entries = clone.entries(commit)
    paths = clone.changed(commit)
    work = {
        "clone": str(clone.place.resolve()),
        "commit": commit,
        "gone": [path for path in paths if path not in entries],
        "here": [[path, entries[path].split()[0]] for path in paths if path in entries],
    }
    (room / "work.json").write_text(json.dumps(work))
    agent = room / "agent.py"
    agent.write_text(AGENT.format(work=str(room / "work.json")))
    story = {
        "id": "H-1",
        "title": subject[:150],
        "description": subject,
        "priority": 1,
        "passes": False,
    }
    settings = CONFIG.format(
        agent=json.dumps([sys.executable, str(agent)]),
        check=json.dumps(wanted.check),
        baseline="strict",
        copy=json.dumps(copied),
        experiments=wanted.experiments,
    )
    run_night(place, room, story, settings, copied)
    listing = subprocess.run(
        ["git", "ls-tree", "-r", "-z", "HEAD"], cwd=place, check=True, capture_output=True
    )
    there = entries_of(listing.stdout)
    is_same = {path: told for path, told in there.items() if path not in OWN} == {
        path: told for path, told in entries.items() if path not in OWN
    }
    return read_journal(place, commit, subject, is_same)


def run_night(
    place: Path, room: Path, story: dict[str, object], settings: str, ignored: Sequence[str]
) -> None:
    """One run over one story, in a new repository of the files that are there."""
    env = environment(room)
    (place / "prd.json").write_text(json.dumps({"userStories": [story]}, indent=2))
    (place / "ralph.toml").write_text(settings)
    subprocess.run(["git", "init", "-q"], cwd=place, check=True, env=env)
    unseen = "\n".join((*ignored, ".ralph/", "__pycache__/", "target/", "Cargo.lock"))
    (place / ".git" / "info" / "exclude").write_text(unseen + "\n")
    for args in (["add", "-A"], ["commit", "-q", "-m", "start"]):
        subprocess.run(["git", *args], cwd=place, check=True, env=env)
    argv = [sys.executable, "-m", "ralphloop", "run"]
    nothing = subprocess.DEVNULL
    ran = subprocess.run(argv, check=False, cwd=place, env=env, capture_output=True, stdin=nothing)
    (room / "log").write_bytes(ran.stdout + ran.stderr)


def read_journal(place: Path, commit: str, subject: str, is_same: bool) -> Replayed:
    """How the story was judged."""
    with JournalReader.open(place / ".ralph" / "journal.db") as journal:
        latest = journal.latest_run()
        iterations = list(journal.every_iteration(latest.id)) if latest else []
    if not iterations:
        return Replayed(commit, subject, "not run", is_same, 0, "see log", 0.0, 0.0, 0.0)
    last = iterations[-1]
    verdict = last.record.verdict
    trial = last.record.evidence.trial
    why = list(verdict.reasons)
    first = iterations[0].record.evidence.trial
    if len(iterations) > 1 and first:
        why += [f"asked: {words}" for words in first.challenges]
    if trial:
        why += [*trial.look_at, *trial.untried, *trial.mutation.remarks]
    grade = str(verdict.grade) if verdict.passed and verdict.grade else "not passed"
    return Replayed(
        commit,
        subject,
        grade,
        is_same,
        len(iterations),
        "; ".join(dict.fromkeys(why)),
        sum(check.duration_s for check in last.checks),
        trial.took_s if trial else 0.0,
        trial.mutation.took_s if trial else 0.0,
    )


def main() -> int:
    """The table; the exit code says whether seven of ten are verified."""
    arguments = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    arguments.add_argument("clone", type=Path)
    arguments.add_argument("--check", type=shlex.split, required=True)
    arguments.add_argument("--commits", type=int, default=12)
    arguments.add_argument("--skip", type=int, default=0, help="leave out the newest ones")
    arguments.add_argument("--only", default="", help="these commits, with commas between")
    arguments.add_argument("--bring", type=Path, help="a directory of what git does not know")
    arguments.add_argument("--work", type=Path, help="where to keep it all; else thrown away")
    arguments.add_argument("--experiments", default="auto")
    wanted = arguments.parse_args()
    clone = Clone(wanted.clone)
    room = wanted.work or Path(tempfile.mkdtemp(prefix="histories-"))
    chosen = iter(wanted.only.split(",")) if wanted.only else suitable(clone, wanted.skip)
    found = list[Replayed]()
    left_out = 0
    for commit in chosen:
        if len(found) >= wanted.commits:
            break
        ends = (f"{commit}^1", commit)
        if not all(is_green(clone, one, wanted.check, wanted.bring) for one in ends):
            left_out += 1
            print(f"{commit[:9]} left out: the check is red there or before", flush=True)
            if left_out > 3 * wanted.commits:
                break
            continue
        own = room / commit[:9]
        shutil.rmtree(own, ignore_errors=True)
        own.mkdir(parents=True)
        began = time.monotonic()
        one = replay(clone, commit, own, wanted)
        found.append(one)
        tree = "" if one.is_same_tree else " TREE DIFFERS"
        ratio = 1 + (one.trial_s + one.mutants_s) / one.check_s if one.check_s else 0.0
        print(
            f"{one.commit[:9]} {one.grade:12} {one.starts} start(s){tree} {ratio:.1f}x"
            f" (check {one.check_s:.1f} s, mutants {one.mutants_s:.1f} s,"
            f" in all {time.monotonic() - began:.0f} s) {one.subject[:70]}\n    {one.why[:900]}",
            flush=True,
        )
    if wanted.work is None:
        shutil.rmtree(room, ignore_errors=True)
    if not found:
        return 1
    grades = Counter(one.grade for one in found)
    spent = sum(one.trial_s + one.mutants_s for one in found)
    plain = sum(one.check_s for one in found)
    verified = grades[str(Grade.VERIFIED)]
    asked = sum(one.starts > 1 for one in found)
    equal = sum(one.is_same_tree for one in found)
    print(
        f"{len(found)} commits, {left_out} left out; {dict(grades)}; asked {asked};"
        f" trees equal {equal}; checking {1 + spent / max(plain, 0.01):.2f}x"
    )
    return 0 if verified >= 0.7 * len(found) else 1


if __name__ == "__main__":
    sys.exit(main())
