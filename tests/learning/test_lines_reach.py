"""Lines that were learned reach the stories they are about, and few others."""

from __future__ import annotations

from pathlib import Path

import pytest
from msgspec.structs import replace

from ralphloop.config.model import LearningSection
from ralphloop.core.model import Story
from ralphloop.learning import store
from ralphloop.learning.aggregate import id_of
from ralphloop.learning.capturing import capture
from ralphloop.learning.model import EntryWord, NoteSource, SharedEntry
from ralphloop.learning.select import carry
from ralphloop.learning.wording import paths_in
from ralphloop.project import Project
from tests.learning.held_out_lines import HELD_OUT
from tests.learning.line_cases import GO, LAYOUTS, PYTHON, Layout, Line
from tests.learning.support import NOON, RUN, Night, git, record, repository, story

DAY = 86_400.0
CONFIG = LearningSection(holdout=0, budget_tokens=4_000)


def settle(project: Project, layout: Layout) -> None:
    """The project with its history, and everything that was said in it."""
    for name, text in layout.files.items():
        (project.root / name).parent.mkdir(parents=True, exist_ok=True)
        (project.root / name).write_text(text)
    repository(project.root, at=NOON - DAY)
    night = Night(project)
    for number, line in enumerate(layout.lines):
        if line.by_person:
            add(project, line.text)
            continue
        kept = record(passed=True, said=f"LEARNED: {line.text}", files=line.changed)
        task = story(f"BEFORE-{number}", title=f"Something else, number {number}")
        assert not capture(project, night.journal, RUN, night.add(task.id, kept), task)
    night.journal.close()
    store.rebuild(project, now=NOON)


def add(project: Project, text: str) -> None:
    """As `ralph learnings add` does."""
    entry = SharedEntry(
        id="",
        word=EntryWord.APPROVED,
        text=text,
        source=NoteSource.PERSON,
        at=store.moment(NOON),
        files=tuple(path for path in paths_in(text) if (project.root / path).exists()),
    )
    store.decide(project, [replace(entry, id=id_of(entry))])


def given(project: Project, asked: Story) -> str:
    """What the story's prompt carries."""
    return carry(project, asked, config=CONFIG, agent="codex").text


def asked_in(layout: Layout, name: str) -> Story:
    """A story of the layout."""
    return Story(id=name, index=0, **layout.stories[name])  # type: ignore[arg-type]


class Score:
    """How many lines came where they should, and where they should not."""

    def __init__(self) -> None:
        self.missed: list[tuple[str, str]] = []
        self.strayed: list[tuple[str, str]] = []
        self.own = 0
        self.foreign = 0

    def count(self, line: Line, name: str, *, is_carried: bool) -> None:
        """One line and one story."""
        if name in line.about:
            self.own += 1
            if not is_carried:
                self.missed.append((name, line.text))
        else:
            self.foreign += 1
            if is_carried:
                self.strayed.append((name, line.text))


@pytest.mark.parametrize("layouts", [LAYOUTS, HELD_OUT], ids=["known", "held out"])
def test_lines_reach_the_stories_they_are_about(
    tmp_path: Path, layouts: tuple[Layout, ...]
) -> None:
    """Of lines about a story's files nine of ten are carried, of foreign ones at most one of ten."""
    score = Score()
    for layout in layouts:
        project = Project(tmp_path / layout.name.replace(" ", "-").replace("/", "-"))
        project.root.mkdir()
        settle(project, layout)
        for name in layout.stories:
            text = given(project, asked_in(layout, name))
            for line in layout.lines:
                score.count(line, name, is_carried=line.text in text)
    assert score.own >= 25
    assert score.foreign >= 25
    assert len(score.missed) <= 0.1 * score.own, score.missed
    assert len(score.strayed) <= 0.1 * score.foreign, score.strayed


@pytest.mark.parametrize("layout", LAYOUTS, ids=[one.name for one in LAYOUTS])
def test_a_persons_general_word_goes_everywhere(layout: Layout, project: Project) -> None:
    """What a person says about no file at all is told to every story."""
    settle(project, layout)
    everywhere = [one for one in layout.lines if one.by_person and len(one.about) > 1]
    assert everywhere
    for name in layout.stories:
        text = given(project, asked_in(layout, name))
        assert all(line.text in text for line in everywhere)


def test_a_line_said_in_this_night_reaches_the_next_story(project: Project) -> None:
    """Nobody waits for the next aggregation: what was said last is known at the next start."""
    settle(project, PYTHON)
    said = "SpooledStringIO forgets its encoding after a rollover"
    say(project, said, story("LATE", title="Something late"))
    assert said in given(project, asked_in(PYTHON, "spool"))


def say(project: Project, said: str, asked: Story, *, commit: str = "") -> None:
    """One more story passes, and its agent says what it learned."""
    night = Night(project)
    number = night.add(asked.id, record(passed=True, said=f"LEARNED: {said}"))
    assert not capture(project, night.journal, RUN, number, asked, commit=commit)
    night.journal.close()


def change(project: Project, path: str, text: str) -> str:
    """A commit of the next day that changes a file."""
    (project.root / path).write_text(text)
    git(project.root, "add", "--all")
    git(project.root, "commit", "--quiet", "--message=Change it", at=NOON + DAY)
    return git(project.root, "rev-parse", "HEAD")


def test_a_line_whose_file_changed_since_is_old(project: Project) -> None:
    """It is asked about and told as old, until a person says that it still holds."""
    settle(project, GO)
    said = "VerifyToken compares in constant time, keep hmac.Equal"
    about = asked_in(GO, "expiry")
    assert f"{said} (an agent said so, unproven)" in given(project, about)
    change(project, "internal/auth/token.go", "package auth\n\nfunc VerifyToken() {\n}\n")
    assert f"{said} (old: internal/auth/token.go was changed since" in given(project, about)
    (known,) = (one for one in store.rebuild(project, now=NOON).patterns if one.text == said)
    assert known.is_old
    assert known.waits
    assert "internal/auth/token.go was changed since" in known.because


def test_a_persons_word_about_a_file_that_changed_is_asked_about(project: Project) -> None:
    """Approved or not, a line about a file that changed waits for a word; a new one makes it new."""
    settle(project, GO)
    said = "internal/auth/token.go is reviewed by the security team, change it last"
    change(project, "internal/auth/token.go", "package auth\n")
    (known,) = (one for one in store.rebuild(project, now=NOON).patterns if one.text == said)
    assert known.is_old
    assert known.waits
    add_later = SharedEntry(
        id=known.id,
        word=EntryWord.APPROVED,
        text=said,
        source=NoteSource.PERSON,
        at=store.moment(NOON + 400_000_000),
        files=known.files,
    )
    store.decide(project, [add_later])
    (known,) = (one for one in store.rebuild(project, now=NOON).patterns if one.text == said)
    assert not known.is_old
    assert not known.waits


def test_the_storys_own_commit_makes_nothing_old(project: Project) -> None:
    """The change in which a line was learned is no change since."""
    settle(project, GO)
    own = change(project, "internal/queue/queue.go", "package queue\n\ntype Broker struct {\n}\n")
    said = "Broker is made anew after each error"
    say(project, said, story("US-9", title="Another thing"), commit=own)
    (known,) = (one for one in store.rebuild(project, now=NOON).patterns if one.text == said)
    assert known.files == ("internal/queue/queue.go",)
    assert not known.is_old
