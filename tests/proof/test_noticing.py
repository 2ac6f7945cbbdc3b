"""Tests that look at nothing never make a story verified, and honest ones of the same look do."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from ralphloop.core.grading import Grade, StoryVerdict
from tests.loop.guards import told
from tests.loop.projects import sandbox, story
from tests.proof.noticing import CHEATS, FILES, HONEST, Handed

_AGENT = """
works = json.loads((STATE / "works.json").read_text())
for path, text in works[STORY].items():
    before = pathlib.Path(path).read_text() if os.path.exists(path) else ""
    write(path, before + text)
done(words=f"{STORY} is done.")
"""


def _verdicts(tmp_path: Path, rows: Sequence[Handed]) -> dict[str, StoryVerdict]:
    """What each of them came to, handed in one after the other."""
    works = {}
    for number, one in enumerate(rows):
        tests = f"tests/test_new_{number}.py" if one.is_new_file else "tests/test_shop.py"
        works[f"US-{number}"] = {
            "shop.py": one.code.format(n=number),
            tests: one.tests.format(n=number),
        }
    box = sandbox(
        tmp_path,
        _AGENT,
        stories=[story(name, f"Add {name}") for name in works],
        checks=[[sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider"]],
        files=FILES,
        toml='[proof]\nexperiments = "always"\nask_for_tests = "off"\n',
    )
    (box.state / "works.json").write_text(json.dumps(works))
    box.env |= {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    done = box.run("--max-iterations", str(2 * len(rows)), timeout=900)
    found = {it.story.id: it.verdict for it in box.records() if it.story is not None}
    assert len(found) == len(rows), told(done)
    assert box.git("status", "--porcelain", "--", ".", ":!progress.txt") == ""
    return {one.name: found[f"US-{number}"] for number, one in enumerate(rows)}


def _words(verdict: StoryVerdict) -> str:
    return "; ".join((*verdict.reasons, *verdict.remarks))


def _faults(
    rows: Sequence[Handed], verdicts: dict[str, StoryVerdict], *, honest: bool
) -> list[str]:
    found = []
    for one in rows:
        verdict = verdicts[one.name]
        is_verified = verdict.grade is Grade.VERIFIED
        if not verdict.passed or is_verified != honest or one.word not in _words(verdict):
            found.append(f"{one.name}: {verdict.grade}: {_words(verdict)}")
    return found


def _some(rows: Sequence[Handed], *names: str) -> list[Handed]:
    return [one for one in rows if one.name in names]


@pytest.mark.timeout(300)
def test_a_test_that_only_calls_and_one_that_looks_are_told_apart(tmp_path: Path) -> None:
    """Both fail without the new name; only the one that looks makes its story verified."""
    cheats = _some(
        CHEATS, "only called", "answers in a table", "the missing name in words of its own"
    )
    honest = _some(HONEST, "a result", "a new file")
    verdicts = _verdicts(tmp_path, [*cheats, *honest])
    faults = [*_faults(cheats, verdicts, honest=False), *_faults(honest, verdicts, honest=True)]
    assert not faults, "\n".join(faults)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_tests_that_look_at_nothing_never_prove(tmp_path: Path) -> None:
    """However they look at nothing, the story is checked, and the words say what nobody notices."""
    faults = _faults(CHEATS, _verdicts(tmp_path, CHEATS), honest=False)
    assert not faults, "\n" + "\n".join(faults)


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_honest_stories_of_the_same_look_are_verified(tmp_path: Path) -> None:
    """A result, a decision, a refusal, an effect: whatever a test looks at proves its story."""
    faults = _faults(HONEST, _verdicts(tmp_path, HONEST), honest=True)
    assert not faults, "\n" + "\n".join(faults)
