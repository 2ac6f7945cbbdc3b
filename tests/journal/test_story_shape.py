"""What the journal says of a story is stored as the first version stored it, and read in parts."""

from __future__ import annotations

import json
from pathlib import Path

import msgspec
import pytest

from ralphloop.core import readable
from ralphloop.core.run_state import RunState, Standing, StoryState
from ralphloop.journal.journal import Journal
from ralphloop.journal.records import json_text
from ralphloop.journal.story_shape import PARTS_OF_STORIES, stored_story, story_in_parts

# Every key that there was before a story had parts, each with a value that is not its default.
GOLDEN = json.loads((Path(__file__).parent / "golden" / "story-state-v1.json").read_text())


def written(state: StoryState) -> dict[str, object]:
    """What stands in the journal's row; an empty value says nothing."""
    row = json.loads(json_text(stored_story(state)))
    return {key: value for key, value in row.items() if value != {}}


def test_a_state_of_the_first_version_is_read_and_written_the_same() -> None:
    """No key of it is lost, and what was stored once is stored so again."""
    state = msgspec.convert(story_in_parts(GOLDEN), StoryState)
    assert written(state) == GOLDEN
    assert state.standing is Standing.SET_ASIDE
    assert (state.attempt.failed, state.totals.failed) == (3, 5)
    assert (state.conversation.id, state.conversation.agent) == ("c-1", "claude")
    assert (state.landing.count, state.base.start_tree) == (2, "4b825dc6")
    assert state.proof.works_sent_back == ("w-1",)


def test_each_key_belongs_to_one_part() -> None:
    """Two parts with the same key would overwrite each other where they are stored."""
    keys = [key for part in PARTS_OF_STORIES.values() for key in part]
    assert len(keys) == len(set(keys))
    assert not set(keys) & set(StoryState.__struct_fields__)


def test_a_fresh_state_is_stored_as_nothing() -> None:
    """Defaults are left out, of every part."""
    assert stored_story(StoryState()) == {}
    assert msgspec.convert(story_in_parts({}), StoryState) == StoryState()


@pytest.mark.parametrize("key", sorted(GOLDEN))
def test_one_key_that_cannot_be_read_costs_only_itself(key: str) -> None:
    """Who only looks at a journal of another version sees all the rest."""
    seen = readable(story_in_parts(GOLDEN | {key: [None]}), StoryState)
    assert written(seen) == {name: value for name, value in GOLDEN.items() if name != key}


def test_a_journal_gives_back_what_it_was_given(tmp_path: Path) -> None:
    """A story of its own row, and one within the state a run began with."""
    state = msgspec.convert(story_in_parts(GOLDEN), StoryState)
    with Journal.open(tmp_path / "journal.db") as journal:
        journal.put_stories("r1", {"US-1": state})
        journal.save_part("r1", RunState(starts=3, stories={"US-1": state}))
        assert journal.story_states("r1") == {"US-1": state}
        assert journal.part(RunState, "r1") == RunState(starts=3, stories={"US-1": state})
        row = journal.row("SELECT state FROM stories WHERE run = 'r1'")
        assert row is not None
        assert json.loads(row["state"]) == GOLDEN
        assert journal.meta("beginning:r1") == {"starts": 3, "stories": {"US-1": GOLDEN}}
