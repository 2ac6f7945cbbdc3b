"""Aggregation: near-duplicates become one pattern, counted by stories and scored."""

from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.learning.aggregate import MAX_PATTERNS, aggregate
from ralphloop.learning.model import (
    EntryWord,
    Note,
    NoteKind,
    NoteSource,
    PatternStanding,
    SharedEntry,
)
from ralphloop.text.durations import iso
from tests.learning.support import NOON, index_of, learning, measured, note

LISTED = "every new api module must be listed in src/api/registry.txt"
DAY = 86_400.0


@pytest.mark.parametrize(
    "other, same",
    [
        (LISTED, True),
        ("New api modules have to be listed in src/api/registry.txt.", True),
        ("new cli modules must be listed in src/cli/registry.txt", False),
        ("new api modules must not be listed in src/api/registry.txt", False),
        ("never list new api modules in src/api/registry.txt", False),
        ("the api caches its answers for a minute", False),
    ],
)
def test_near_duplicates_are_merged(other: str, same: bool) -> None:
    """The same advice in other words is one pattern; opposites and other files are not."""
    index = index_of(learning("US-1", LISTED), learning("US-2", other))
    assert len(index.patterns) == (1 if same else 2)


def test_two_stories_establish_a_pattern_two_attempts_do_not() -> None:
    """What one story says five times is still said by one story."""
    alone = index_of(*[learning("US-1", measured(LISTED))] * 5).patterns[0]
    both = index_of(*(learning(f"US-{n}", measured(LISTED)) for n in (1, 2))).patterns[0]
    assert (alone.standing, alone.story_count) == (PatternStanding.NOTED, 1)
    assert (both.standing, both.story_count) == (PatternStanding.ESTABLISHED, 2)


def test_an_echo_does_not_confirm() -> None:
    """A story that was given a pattern and repeats it has not found it; measured facts count."""
    given_id = index_of(learning("US-1", LISTED)).patterns[0].id
    echo = learning("US-2", LISTED, carried=(given_id,))
    assert index_of(learning("US-1", LISTED), echo).patterns[0].story_count == 1
    failed = Note(
        kind=NoteKind.FAILURE,
        text="`make` failed: error: no rule",
        lesson="went away with a change in `Makefile`",
        source=NoteSource.CHECK,
    )
    first = learning("US-1", failed)
    again = learning("US-2", failed, carried=(index_of(first).patterns[0].id,))
    assert index_of(first, again).patterns[0].standing is PatternStanding.ESTABLISHED


def test_the_shortest_wording_stands() -> None:
    """Nothing rides along with what two stories agree on."""
    long = f"{LISTED} twice"
    for pair in ((long, LISTED), (LISTED, long)):
        (one,) = index_of(learning("US-1", pair[0]), learning("US-2", pair[1])).patterns
        assert one.text == LISTED


def test_a_lesson_from_a_model_must_be_agreed_on_too() -> None:
    """Two stories with the same failure and different advice confirm neither advice."""
    texts = ("list it in the registry file", "call the number on the back of the box instead")
    notes = [
        Note(kind=NoteKind.FAILURE, text="the api module was not found", lesson=text)
        for text in texts
    ]
    index = index_of(*(learning(f"US-{n}", one) for n, one in enumerate(notes)))
    assert [one.story_count for one in index.patterns] == [1] * 2


def test_a_measured_failure_names_what_changed_every_time() -> None:
    """Files that changed by chance drop out of the lesson once there are two fixes."""

    def fixed(task: str, *files: str) -> Note:
        return Note(
            kind=NoteKind.FAILURE,
            text="`make` failed: error: not registered",
            lesson="went away with a change in " + ", ".join(files),
            source=NoteSource.CHECK,
            evidence=tuple(f"file {path}" for path in files),
        )

    index = index_of(
        learning("US-1", fixed("US-1", "src/a.py", "src/registry.py")),
        learning("US-2", fixed("US-2", "src/b.py", "src/registry.py")),
    )
    assert index.patterns[0].lesson == "went away with a change in `src/registry.py`"


def test_which_files_change_together_is_found_across_stories() -> None:
    """A file that comes with most changes of a directory is a pattern after two stories."""
    stories = [
        learning(f"US-{n}", files=(f"src/api/feature_{n}.py", "src/api/registry.py"))
        for n in range(3)
    ]
    elsewhere = [learning(f"UI-{n}", files=(f"src/ui/{n}.py", f"tests/{n}.py")) for n in range(3)]
    patterns = index_of(*stories, *elsewhere).patterns
    assert [one.text for one in patterns] == [
        "a change in `src/api/` mostly comes with one in `src/api/registry.py`"
    ]
    assert patterns[0].category == "api"
    assert not index_of(stories[0]).patterns


def test_failed_stories_do_not_teach_which_files_belong_together() -> None:
    """Only work that passed shows what belongs together."""
    files = ("src/a.py", "src/b.py")
    stories = [learning(f"US-{n}", files=files, outcome="failed") for n in range(4)]
    assert not index_of(*stories).patterns


def test_the_score_knows_how_often_and_how_lately() -> None:
    """More stories and fresher ones raise it."""

    def score(*learnings: object, now: float = NOON) -> float:
        patterns = index_of(*learnings, now=now).patterns  # type: ignore[arg-type]
        return next(one.score for one in patterns if one.text == LISTED)

    once = learning("US-1", LISTED)
    assert score(once, learning("US-2", LISTED)) > score(once)
    assert score(once, now=NOON + 90 * DAY) < score(once)


def test_what_a_person_forgot_does_not_come_back() -> None:
    """Forgotten is forgotten, also in other words and when later stories say it again."""
    decided = [SharedEntry(id="0123abcd", word=EntryWord.FORGOTTEN, text=LISTED)]
    later = [
        learning(f"US-{n}", "New api modules must be listed in src/api/registry.txt")
        for n in range(9)
    ]
    assert not aggregate(later, decided, now=NOON).patterns


def test_what_a_person_approved_stands_as_it_was_approved() -> None:
    """Approval covers the words that were approved, not what later stories make of them."""
    text = "run with --no-verify until the hook is fixed"
    decided = [SharedEntry(id="0123abcd", word=EntryWord.APPROVED, text=text)]
    shorter = "run with --no-verify until hook fixed"
    twisted = Note(kind=NoteKind.DISCOVERY, text=text, lesson="and then delete the hook for good")
    index = aggregate([learning("US-1", shorter, twisted)], decided, now=NOON)
    found = {one.id: one for one in index.patterns}
    approved = found.pop("0123abcd")
    assert (approved.text, approved.lesson) == (text, "")
    assert approved.standing is PatternStanding.APPROVED
    assert [one.standing for one in found.values()] == [PatternStanding.HELD_BACK]


def test_ids_do_not_change_as_more_is_learned() -> None:
    """A person who noted an id finds the same pattern next week."""
    first = index_of(learning("US-1", LISTED)).patterns[0].id
    more = [learning(f"US-{n}", f"{LISTED} really", timestamp=iso(NOON + n)) for n in range(2, 6)]
    assert first in {one.id for one in index_of(learning("US-1", LISTED), *more).patterns}


WORDS = st.sampled_from("alpha beta gamma delta never src/a.py src/b.py `x` error list".split())


@given(st.lists(st.lists(WORDS, max_size=6).map(" ".join), max_size=25))
def test_counting_is_sound(texts: list[str]) -> None:
    """No pattern counts more stories than there are, and every id is there once."""
    index = index_of(*(learning(f"US-{n % 7}", text) for n, text in enumerate(texts)))
    ids = [one.id for one in index.patterns]
    assert len(set(ids)) == len(ids)
    assert all(1 <= one.story_count <= 7 for one in index.patterns)
    assert len(index.patterns) <= max(1, len(set(texts)))


def test_hostile_notes_cost_no_more_than_their_number() -> None:
    """Twice as many notes that share nearly all words take about twice as long."""

    def seconds(count: int) -> float:
        text = "common words shared by all of these notes number{0} and{0} also{0}"
        notes = [learning(f"US-{n}", note(text.format(n))) for n in range(count)]
        start = time.process_time()
        index = index_of(*notes)
        assert len(index.patterns) <= MAX_PATTERNS
        return time.process_time() - start

    small, large = seconds(1_000), seconds(4_000)
    assert large < 12 * small + 0.2


def test_what_the_stories_asked_for_is_no_pattern() -> None:
    """A file that comes with every change because every story says so teaches nothing."""
    files = ("tests/test_a.py", "CHANGELOG.md", "tests/data.json")

    def taught(*asked: str) -> set[str]:
        told = [learning(f"US-{n}", files=files, asked=asked) for n in range(4)]
        return {one.text for one in index_of(*told).patterns}

    changelog = "a change in `tests/` mostly comes with one in `CHANGELOG.md`"
    data = "a change in `tests/` mostly comes with one in `tests/data.json`"
    assert {changelog, data} <= taught()
    assert changelog not in taught("CHANGELOG.md")
    assert data in taught("CHANGELOG.md")
