"""What waits for a person's eyes, of whichever run, and that what they took waits nowhere."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import pytest

from ralphloop.loop.offline_requests import accept
from ralphloop.night.look import look
from ralphloop.night.reviews import ReviewItem, to_review
from ralphloop.night.values import next_steps
from ralphloop.project import Project
from tests.loop.guards import told
from tests.loop.projects import Sandbox, sandbox, story

CHECK = [["sh", "check.sh"]]
# The first story changes what judges it, so that somebody has to look at it.
AGENT = """
if STORY == "US-1": write("check.sh", "exit 0\\n")
write(f"{STORY}.txt", f"{STORY}, start {START}")
done(words=f"Wrote {STORY}.")
"""


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    """Two nights: one that left a story to review and a checked one, and one with a third."""
    made = sandbox(tmp_path, AGENT, stories=2, checks=CHECK, files={"check.sh": "true\n"})
    done = made.run()
    assert done.code == 0, told(done)
    add_story(made, "US-3")
    done = made.run()
    assert done.code == 0, told(done)
    return made


def add_story(box: Sandbox, name: str) -> None:
    """One more story, as a person writes it."""
    path = box.root / "prd.json"
    listed = json.loads(path.read_text())
    listed["userStories"].append(story(name))
    path.write_text(json.dumps(listed, indent=2) + "\n")
    box.git("commit", "-qam", f"ask for {name}")


def waiting(box: Sandbox, *, run: str | None = None, everything: bool = False) -> list[ReviewItem]:
    """What waits for eyes."""
    project = Project(box.root)
    return list(to_review(project, run, now=time.time(), everything=everything))


def report(box: Sandbox, *arguments: str) -> dict[str, Any]:
    """`ralph report --json`."""
    found: dict[str, Any] = json.loads(box.ralph("report", *arguments, "--json").out)
    return found


def test_stories_of_earlier_runs_are_offered_until_somebody_looked(box: Sandbox) -> None:
    """Most doubtful first, then the newest; each with its own commit, and none that was accepted."""
    offered = waiting(box)
    assert [one.look.story.id for one in offered] == ["US-1", "US-3", "US-2"]
    assert [one.is_earlier for one in offered] == [True, False, True]
    for one in offered:
        (commit,) = one.shows
        shown = box.git("show", "--format=%s", "--stat", commit)
        assert f"{one.look.story.id}.txt" in shown
    assert box.status()["stories"]["unreviewed"] == ["US-1", "US-2", "US-3"]
    accept(Project(box.root), "US-2")
    assert [one.look.story.id for one in waiting(box)] == ["US-1", "US-3"]
    every = waiting(box, everything=True)
    assert {one.look.story.id for one in every} == {"US-1", "US-2", "US-3"}
    assert box.status()["stories"]["unreviewed"] == ["US-1", "US-3"]


def test_those_of_one_run_are_asked_for_by_its_name(box: Sandbox) -> None:
    """A run that is named shows what passed in it."""
    first = next(one.run for one in waiting(box) if one.look.story.id == "US-1")
    assert [one.look.story.id for one in waiting(box, run=first)] == ["US-1", "US-2"]
    assert "US-3" not in box.ralph("review", first).out
    assert "US-2" in box.ralph("review", first).out


def test_what_was_accepted_is_nowhere_a_thing_to_do(box: Sandbox) -> None:
    """Status, report and the report of the night it passed in ask for a look until then."""
    first = next(one.run for one in waiting(box) if one.look.story.id == "US-1")
    assert "1 story needs review" in box.ralph("status").out
    for found in (report(box), report(box, first)):
        assert any("Review US-1" in step["words"] for step in found["next_steps"])
        assert "to review" in found["headline"]
    accept(Project(box.root), "US-1")
    status = box.ralph("status").out
    assert "needs review" not in status
    assert "2 stories passed and nobody has looked yet" in status
    assert "1 accepted" in status
    for found in (report(box), report(box, first)):
        assert not any("US-1" in step["words"] for step in found["next_steps"])
        assert "to review" not in found["headline"]
        groups = {group["key"]: group["count"] for group in found["groups"]}
        assert groups["review"] == 0
        assert groups["accepted"] == 1
    assert "passed (accepted)" in box.ralph("stories").out
    for name in ("US-2", "US-3"):
        accept(Project(box.root), name)
    assert not any(step.kind == "review" for step in next_steps(look(Project(box.root))))


def test_what_was_sent_back_is_nothing_to_do_in_the_night_it_passed_in(box: Sandbox) -> None:
    """The report of that night says so, before and after the story passed again."""
    first = next(one.run for one in waiting(box) if one.look.story.id == "US-1")
    assert box.ralph("reject", "US-1", "leave the check alone").code == 0
    for again in (False, True):
        if again:
            done = box.run()
            assert done.code == 0, told(done)
        found = report(box, first)
        assert not any("US-1" in step["words"] for step in found["next_steps"])
        assert "to review" not in found["headline"]
        assert found["headline"].startswith("2 of 2 stories passed")
        groups = {group["key"]: group["count"] for group in found["groups"]}
        assert groups["review"] == 0
        assert groups["sent_back"] == 1
        assert "Sent back since" in box.ralph("report", first).out


def test_what_passed_before_is_told_in_short(box: Sandbox) -> None:
    """Its words and criteria are in the report of its own night, not in every one after it."""
    shown = box.ralph("report").out
    assert "the agent says: Wrote US-3." in shown
    assert "**US-2**" in shown
    assert "Wrote US-2." not in shown
    assert "US-2 works" not in shown


def test_what_a_question_left_half_done_is_named(tmp_path: Path) -> None:
    """The files that a story changed before it asked stand with it in the report."""
    agent = """
write("half.py", "x = 1\\n")
status("BLOCKED", words="Made the first half.", recommendation="Which colour?")
"""
    asking = sandbox(tmp_path, agent, stories=1, checks=CHECK, files={"check.sh": "true\n"})
    assert asking.run().code == 2
    assert "  - changed so far: half.py\n" in asking.ralph("report").out


def test_what_was_given_in_words_waits_like_the_rest(box: Sandbox) -> None:
    """An errand of before the newest run is offered with its commit."""
    done = box.ralph("do", "Write the file of the errand")
    assert done.code == 0, told(done)
    add_story(box, "US-4")
    assert box.run().code == 0
    offered = {one.look.story.title: one for one in waiting(box)}
    errand = offered["Write the file of the errand"]
    assert errand.is_earlier
    assert errand.shows
    accept(Project(box.root), errand.look.story.id)
    assert "Write the file of the errand" not in {one.look.story.title for one in waiting(box)}
