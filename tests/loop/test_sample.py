"""The sample of `ralph init` is never worked on, and what a list lacks is said before a night."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.loop.projects import Sandbox, sandbox, story

WORKS = "write(f'{STORY}.txt'); done()"


def set_up(tmp_path: Path) -> Sandbox:
    """A repository with the list that `ralph init` wrote, committed."""
    box = sandbox(tmp_path, WORKS, checks=[["true"]])
    (box.root / "prd.json").unlink()
    made = box.ralph("init", "--yes")
    assert made.code == 0, made.text
    assert "SAMPLE-1" in (box.root / "prd.json").read_text()
    box.git("add", "-A")
    box.git("commit", "-qm", "Set up ralph")
    return box


@pytest.mark.parametrize(
    "words", [(), ("--dry-run",), ("--detach",), ("--lanes", "2"), ("--dry-run", "--json")]
)
def test_the_sample_is_not_worked_on(tmp_path: Path, words: tuple[str, ...]) -> None:
    """Every way to begin ends with 65, says whose stories these are, and what to do."""
    box = set_up(tmp_path)
    done = box.run(*words)
    assert done.code == 65, done.text
    assert "SAMPLE-1 and SAMPLE-2 are the sample of `ralph init`, not yours" in done.err
    assert "ralph stories add" in done.err
    assert box.starts == 0


def test_the_check_of_the_list_names_the_sample(tmp_path: Path) -> None:
    """It says why no run would begin, and ends with 1; a list of one's own is left alone."""
    box = set_up(tmp_path)
    checked = box.ralph("stories", "check")
    assert checked.code == 1, checked.text
    said = " ".join(checked.out.split())
    assert "SAMPLE-1: is the sample of `ralph init`, not yours" in said
    assert "ralph stories add" in said
    added = box.ralph("stories", "add", "Greet", "-c", "`greet Ada` prints Hello")
    assert added.code == 0, added.text
    checked = box.ralph("stories", "check")
    assert (checked.code, "sample" in checked.out) == (0, False), checked.text


def test_a_sample_left_among_ones_own_is_named(tmp_path: Path) -> None:
    """Only the one that is still to the letter; a story that is asked for alone is worked on."""
    box = set_up(tmp_path)
    path = box.root / "prd.json"
    listed = json.loads(path.read_text())
    listed["userStories"][0]["title"] = "Say in the README how to fly"
    listed["userStories"].append({"id": "MINE", "title": "Do mine", "passes": False})
    path.write_text(json.dumps(listed))
    box.git("commit", "-qam", "Mine")
    done = box.run()
    assert done.code == 65, done.text
    assert "SAMPLE-2 is the sample of `ralph init`" in done.err
    assert "SAMPLE-1" not in done.err
    alone = box.run("--story", "MINE")
    assert alone.code == 4, alone.text
    assert box.passes()["MINE"]


def test_the_first_story_makes_it_run(tmp_path: Path) -> None:
    """As the words say."""
    box = set_up(tmp_path)
    added = box.ralph("stories", "add", "Greet", "-c", "`greet Ada` prints Hello")
    assert added.code == 0, added.text
    box.git("commit", "-qam", "Mine")
    done = box.run()
    assert done.code == 0, done.text
    assert "sample" not in done.text


def test_an_empty_list_is_told_how_to_get_a_story(tmp_path: Path) -> None:
    """Not to correct the file."""
    box = sandbox(tmp_path, WORKS)
    (box.root / "prd.json").write_text('{"userStories": []}')
    box.git("commit", "-qam", "none")
    for words in ((), ("--dry-run",)):
        done = box.run(*words)
        assert done.code == 65, done.text
        assert "ralph stories add" in done.err


MISTYPED = {"acceptanceCriterias": ["x"], "id": "US-1", "title": "Do it", "passes": False}


@pytest.mark.parametrize("lanes", [0, 2])
def test_a_mistyped_key_is_said_by_the_run_and_its_plan(tmp_path: Path, lanes: int) -> None:
    """It would be swallowed otherwise; the run goes on."""
    box = sandbox(tmp_path, WORKS, stories=[MISTYPED], checks=[["true"]])
    words = '"acceptanceCriterias" is not read; did you mean "acceptanceCriteria"?'
    planned = box.run("--dry-run", "--lanes", str(lanes))
    assert planned.code == 0, planned.text
    assert f"US-1: {words}" in planned.text
    as_json = json.loads(box.run("--dry-run", "--json").out)
    assert any(words in one for one in as_json["remarks"])
    done = box.run("--lanes", str(lanes))
    assert done.code == 0, done.text
    assert f"US-1: {words}" in done.text


def test_remarks_are_few_and_name_the_command_that_shows_all(tmp_path: Path) -> None:
    """At most three, what is not read at all first; then how many there are."""
    vague = [story(f"US-{n}") | {"acceptanceCriteria": ["it is nice"]} for n in range(2, 9)]
    box = sandbox(tmp_path, WORKS, stories=[*vague, MISTYPED], checks=[["true"]])
    checked = box.ralph("stories", "check", "--json").out
    total = len(json.loads(checked))
    planned = box.run("--dry-run").text
    shown = [line for line in planned.splitlines() if line.startswith("  ! ")]
    assert len(shown) == 4
    assert "acceptanceCriterias" in shown[0]
    assert f"{total - 3} more" in shown[3]
    assert "`ralph stories check`" in shown[3]


def test_an_honest_list_and_an_errand_are_not_remarked_on(tmp_path: Path) -> None:
    """Nothing is said where nothing is missing, nor of words that somebody typed."""
    box = sandbox(tmp_path, WORKS, checks=[["true"]])
    assert "! " not in box.run("--dry-run").text
    done = box.ralph("do", "make it so")
    assert "acceptance criteria" not in done.text
