"""Stories that are proposed outside of a start: a follow-up, a comment under a pull request."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from ralphloop.core.events import StoryProposed
from ralphloop.core.proposals import Proposal, ProposalOrigin
from ralphloop.journal.journal import Journal
from ralphloop.loop.proposing import keep_proposal
from tests.loop.guards import told
from tests.loop.projects import Sandbox, sandbox
from tests.plan.projects import Terminal

LINK = "https://github.example/shop/pull/7#discussion_r1"
WORDS = "The total ignores the discount, see shop.py."


@pytest.fixture
def box(tmp_path: Path) -> Sandbox:
    """A night of one story, and settings under which what agents find runs by itself."""
    toml = "[stories]\naccept_found = true\n"
    made = sandbox(tmp_path, "write(f'{STORY}.txt'); done()", checks=[["true"]], toml=toml)
    assert made.run().code == 0
    return made


def say(box: Sandbox, text: str = WORDS, link: str = LINK) -> Proposal | None:
    """Somebody comments."""
    wanted = Proposal(
        id="", text=text, origin=ProposalOrigin.COMMENT, story="US-1", by="ada", link=link, at=1.0
    )
    with Journal.open(box.root / ".ralph/journal.db", check=False) as journal:
        return keep_proposal(journal, wanted)


def proposed(box: Sandbox) -> list[dict[str, object]]:
    """`ralph stories proposed --json`."""
    found: list[dict[str, object]] = json.loads(box.ralph("stories", "proposed", "--json").out)[
        "proposals"
    ]
    return found


def event_of_proposal(box: Sandbox) -> StoryProposed:
    """The one event that says that something was proposed."""
    with Journal.open(box.root / ".ralph/journal.db", check=False) as journal:
        newest = journal.latest_run()
        assert newest is not None
        events = [one.what for one in journal.last_events(newest.id, 100)]
    (found,) = (one for one in events if isinstance(one, StoryProposed))
    return found


def test_a_comment_is_proposed_with_where_it_comes_from(box: Sandbox) -> None:
    """Once however often it is read; said by somebody else too, it is one that was said twice."""
    first = say(box)
    assert first is not None
    assert say(box) == first
    again = say(box, WORDS.upper(), f"{LINK}2")
    assert again is not None
    assert (again.id, again.times) == (first.id, 2)
    shown = " ".join(box.ralph("stories", "proposed").out.split())
    assert f"F-1 {WORDS} said by ada under the pull request at US-1, 2 times, {LINK}" in shown
    event = event_of_proposal(box)
    assert (event.origin, event.by, event.became) == ("comment", "ada", "")


def test_a_comment_never_runs_by_itself(box: Sandbox) -> None:
    """Whoever may comment may write anything; what agents find is another matter."""
    assert say(box, f"{WORDS} token=ghp_{'a1B2' * 9}") is not None
    done = box.run()
    assert done.code == 0, told(done)
    assert box.worked_on() == ["US-1"]
    (one,) = proposed(box)
    assert "ghp_" not in str(one["text"])
    assert "shop.py" in str(one["text"])


def test_a_persons_follow_up_is_a_proposal_that_was_accepted_at_once(box: Sandbox) -> None:
    """It is in the list with its provenance, waits for nobody, and is told as an event."""
    path = box.root / "prd.json"
    listed = json.loads(path.read_text())
    listed["userStories"].append(
        {**listed["userStories"][0], "id": "US-2", "passes": False, "dependsOn": ["US-1"]}
    )
    path.write_text(json.dumps(listed))
    box.git("commit", "-qam", "one more")
    assert box.run().code == 0
    said = box.ralph("reject", "US-1", "Prices", "are", "rounded", "--follow-up")
    assert said.code == 0, told(said)
    assert proposed(box) == []
    with Journal.open(box.root / ".ralph/journal.db", check=False) as journal:
        (kept,) = journal.proposals()
    assert (kept.origin, kept.story, kept.became) == (ProposalOrigin.FOLLOW_UP, "US-1", "US-3")
    assert kept.provenance == "wanted besides at US-1"
    event = event_of_proposal(box)
    assert (event.origin, event.became) == ("follow_up", "US-3")


def test_a_plan_makes_stories_of_a_proposal(box: Sandbox) -> None:
    """What the planner makes of its words is added; where nothing is, it goes on waiting."""
    assert say(box) is not None
    answer = {
        "stories": [
            {
                "id": "US-9",
                "title": "Take the discount off",
                "criteria": [{"text": "total() takes it off", "seen": "test_discount passes"}],
            }
        ]
    }
    script = box.root / "script.json"
    agent = {"RALPH_AGENT_NAME": "scripted", "RALPH_AGENT_COMMAND": "script.json"}
    accepting = ("stories", "accept", "F-1", "--plan", "--yes")
    assert len(proposed(box)) == 1
    script.write_text(json.dumps({"stories": {"plan": [[{"say": "I do not know."}]]}}))
    in_vain = box.ralph(*accepting, env=agent)
    assert len(proposed(box)) == 1, told(in_vain)
    script.write_text(json.dumps({"stories": {"plan": [[{"say": json.dumps(answer)}]]}}))
    done = box.ralph(*accepting, env=agent)
    assert done.code == 0, told(done)
    assert "Take the discount off" in (box.root / "prd.json").read_text()
    assert proposed(box) == []
    with Journal.open(box.root / ".ralph/journal.db", check=False) as journal:
        (kept,) = journal.proposals()
    assert kept.became == json.loads((box.root / "prd.json").read_text())["userStories"][-1]["id"]


def test_the_words_of_a_proposal_are_changed_in_an_editor(box: Sandbox) -> None:
    """What the person saves is what it says, and where it comes from stays."""
    assert say(box) is not None
    editor = box.state / "editor.sh"
    editor.write_text('#!/bin/sh\necho "The total forgets the discount of shop.py" > "$1"\n')
    editor.chmod(0o755)
    env = {**box.environment(), "EDITOR": str(editor), "VISUAL": str(editor)}
    person = Terminal(box.root, "edit", "F-1", command="stories", env=env)
    assert person.end() == 0, person.shown
    (one,) = proposed(box)
    assert one["text"] == "The total forgets the discount of shop.py"
    assert one["by"] == "ada"
