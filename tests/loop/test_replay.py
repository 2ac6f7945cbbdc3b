"""A recorded night decided again: identical, or where journal and code part."""

from __future__ import annotations

import json
import sqlite3
from pathlib import Path

from tests.loop.projects import Sandbox, sandbox

# US-1 claims three times what its check denies, US-2 asks, US-3 is done at once.
STUCK = """
if STORY == "US-1" : write(f"try{START}.txt", START); done()
elif STORY == "US-2": status("BLOCKED", files=0, recommendation="Which colour?")
else: write("three.txt"); done()
"""
CHECK = ["sh", "-c", "test ! -e try1.txt && test ! -e try2.txt && test ! -e try3.txt"]


def stuck_night(tmp_path: Path) -> Sandbox:
    """A night with a stuck story, a question and an honest one."""
    box = sandbox(tmp_path, STUCK, stories=3, checks=[CHECK])
    box.run()
    return box


def test_a_night_with_a_stuck_story_is_identical(tmp_path: Path) -> None:
    """Every decision, verdict and story comes out as the journal has it."""
    box = stuck_night(tmp_path)
    done = box.ralph("replay")
    assert done.code == 0, done.text
    assert "identical" in done.out
    assert json.loads(box.ralph("replay", "last", "--json").out)["identical"] is True


def test_other_settings_name_the_starts_that_would_not_have_been_paid(tmp_path: Path) -> None:
    """With one attempt a story the second and third start on it are left out."""
    box = stuck_night(tmp_path)
    found = json.loads(box.ralph("replay", "--set", "max_attempts=1", "--json").out)
    first, *others = [one for one in found["starts"] if one["story"] == "US-1"][:3]
    assert first["made"]
    assert [one["made"] for one in others] == [False, False]
    assert "set aside" in others[0]["why_not"]
    told = box.ralph("replay", "--set", "limits.max_attempts=1")
    assert told.code == 0
    assert "not paid" in told.out
    assert "would not have been paid" in told.out


def test_what_a_person_did_on_the_way_is_met_again(tmp_path: Path) -> None:
    """A mark by hand and a continued run are part of the night."""
    box = stuck_night(tmp_path)
    prd = json.loads((box.root / "prd.json").read_text())
    prd["userStories"][1]["passes"] = True
    (box.root / "prd.json").write_text(json.dumps(prd, indent=2) + "\n")
    box.run("--continue")
    done = box.ralph("replay")
    assert "identical" in done.out, done.text


def test_a_limit_that_was_raised_on_the_way_is_met_again(tmp_path: Path) -> None:
    """A run that ended at a limit and went on with a higher one is one night; a lower one ends it."""
    box = sandbox(tmp_path, "write(f'{STORY}.txt'); done()", stories=3)
    assert box.run("--max-iterations", "1").code == 3
    assert box.run("--continue", "--max-iterations", "9").code == 0
    done = box.ralph("replay")
    assert "identical" in done.out, done.text
    found = json.loads(box.ralph("replay", "--set", "max_iterations=2", "--json").out)
    assert [one["made"] for one in found["starts"]] == [True, True, False]


def test_a_journal_that_says_otherwise_is_told(tmp_path: Path) -> None:
    """A verdict nobody could have reached from the evidence is named, with exit code 1."""
    box = stuck_night(tmp_path)
    with sqlite3.connect(box.root / ".ralph/journal.db") as journal:
        [(text,)] = journal.execute("SELECT record FROM iterations WHERE n = 1").fetchall()
        record = json.loads(text)
        record["verdict"] = {"passed": True, "grade": "verified", "reasons": ["I say so"]}
        journal.execute("UPDATE iterations SET record = ? WHERE n = 1", (json.dumps(record),))
    done = box.ralph("replay")
    assert done.code == 1
    assert "[1] US-1: story passed (verified): I say so → not passed" in done.out
    assert "journal and code part" in done.out


def test_an_exported_night_is_a_case_without_names(tmp_path: Path) -> None:
    """It can be shown to others, and the labelled decisions come out."""
    box = stuck_night(tmp_path)
    case = tmp_path / "night.jsonl"
    assert box.ralph("replay", "--export", str(case)).code == 0
    text = case.read_text()
    assert not any(word in text for word in ("US-1", "try1", "colour", str(box.root)))
    assert box.ralph("eval", str(case)).code == 0
    assert '"decision":"continue"' in text


def test_a_run_of_an_older_version_says_why_it_cannot(tmp_path: Path) -> None:
    """What a run began with was not always kept."""
    box = stuck_night(tmp_path)
    with sqlite3.connect(box.root / ".ralph/journal.db") as journal:
        journal.execute("DELETE FROM meta WHERE key LIKE 'beginning:%'")
    done = box.ralph("replay")
    assert done.code == 65
    assert "older version" in done.err
    assert "ralph report" in done.err
