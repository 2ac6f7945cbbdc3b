"""No cheat is verified, none passes without a word, and its honest twin is never asked about."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest
from _pytest.mark.structures import ParameterSet

from ralphloop.core.grading import StoryVerdict
from tests import sentences
from tests.loop.guards import told
from tests.loop.projects import Done, Sandbox
from tests.proof.corpus import TABLES, Row, Table, played, projects, rows, table
from tests.proof.toolchain import put_on_path

FEWEST = 60


def _verdicts(box: Sandbox) -> dict[str, list[StoryVerdict]]:
    found: dict[str, list[StoryVerdict]] = {}
    for record in box.records():
        assert record.story is not None
        found.setdefault(record.story.id, []).append(record.verdict)
    return found


def _words(verdict: StoryVerdict) -> str:
    said = (verdict.reasons, verdict.asked, verdict.look_at, verdict.remarks)
    return " ".join(words for kind in said for words in kind)


def _came_to(verdict: StoryVerdict) -> str:
    if verdict.passed:
        return str(verdict.grade)
    is_challenged = any(words.startswith("asked to explain: ") for words in verdict.reasons)
    return "needs review" if is_challenged else "never" if verdict.asked else "red"


def _faults(row: Row, honest: str, verdicts: dict[str, list[StoryVerdict]]) -> list[str]:
    """What is not as it has to be with this row."""
    cheat, found = row.cheat, []
    first, *later = verdicts.get(row.story) or [StoryVerdict(reasons=("it was never started",))]
    twins = later if row.twin == row.story else verdicts.get(row.twin) or []
    if (came := _came_to(first)) != cheat.best:
        found.append(f"the cheat came to {came}: {_words(first) or first.reasons}")
    elif cheat.word not in _words(first):
        found.append(f"no word of {cheat.word!r} in: {_words(first)}")
    if row.insists:
        if [(it.passed, str(it.grade)) for it in twins] != [(True, "needs review")]:
            found.append(f"it insisted, and came to {twins}")
    elif row.gives_up:
        found += ["it gave up, and passed"] if any(it.passed for it in later) else []
    elif [(it.passed, str(it.grade), it.asked) for it in twins] != [(True, honest, ())]:
        found.append(f"the twin came to {[(str(it.grade), _words(it)) for it in twins]}")
    return [f"{row.story} {cheat.name}: {fault}" for fault in found]


def _played(of: Table, tmp_path: Path) -> tuple[Sandbox, Done]:
    box = played(of, tmp_path)
    if of.project in ("go", "cargo"):
        put_on_path(of.project, box, tmp_path)
    return box, box.run("--json", "--max-iterations", str(3 * len(of.cheat)), timeout=600)


def _needing_its_tool(path: Path) -> ParameterSet:
    if path.stem == "npm":
        return pytest.param(path, id=path.stem, marks=pytest.mark.tool("npm"))
    tools = {"node": "node", "scripts": "make", "loaded-first": "make"}
    tool = tools.get(path.stem, "git")
    missing = pytest.mark.skipif(shutil.which(tool) is None, reason=f"{tool} is not installed")
    return pytest.param(path, id=path.stem, marks=missing)


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("path", [_needing_its_tool(path) for path in TABLES])
def test_every_cheat_is_found_and_every_twin_is_proven(tmp_path: Path, path: Path) -> None:
    """Each row of a table comes to what it may come to at best, with its word; its twin is verified."""
    of = table(path)
    box, done = _played(of, tmp_path)
    verdicts = _verdicts(box)
    faults = [
        fault for row in rows(of) for fault in _faults(row, projects()[of.project].twin, verdicts)
    ]
    assert not faults, "\n" + "\n".join([*faults, told(done)])
    assert box.git("status", "--porcelain", "--", ".", ":!progress.txt") == ""
    assert box.leftovers() == []


def test_the_corpus_is_large_and_says_what_it_cannot_catch() -> None:
    """Sixty cheats, no name twice, and whatever is verified or unfound has its reason."""
    cheats = [cheat for path in TABLES for cheat in table(path).cheat]
    names = [f"{path.stem} {cheat.name}" for path in TABLES for cheat in table(path).cheat]
    assert len(cheats) >= FEWEST
    assert len(names) == len(set(names))
    for cheat in cheats:
        assert cheat.best in ("red", "never", sentences.NEEDS_REVIEW, "checked", "verified"), (
            cheat.name
        )
        is_explained = bool(cheat.out_of_reach or cheat.gap)
        assert is_explained == (cheat.best == "verified"), cheat.name
        assert cheat.word, cheat.name
