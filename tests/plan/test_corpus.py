"""Documents with one planted fault each, and documents without: all faults are found, and no other."""

from __future__ import annotations

from pathlib import Path

import pytest

from ralphloop.errors import InputError
from ralphloop.plan.convert import convert
from ralphloop.plan.draft import Shelf, drafted
from ralphloop.stories.lint import as_lines, is_observable

CORPUS = Path(__file__).parent / "corpus"


def documents(name: str) -> list[tuple[str, str]]:
    """Each document of a file with its head line."""
    parts = (CORPUS / name).read_text(encoding="utf-8").split("%% ")[1:]
    return [(head.strip(), text) for head, _, text in (part.partition("\n") for part in parts)]


def found_in(text: str) -> tuple[list[str], list[str]]:
    """What is remarked upon in a document, and the ids of its stories in order."""
    name = (
        "tasks.yaml"
        if text.startswith("tasks:")
        else "prd.json"
        if text.startswith("{")
        else "p.md"
    )
    try:
        converted = convert(text, name)
        assert converted is not None
        assert converted.entries
        draft = drafted(converted.entries, Shelf(Path("prd.json")))
    except InputError as error:
        return [error.message], []
    return list(as_lines(draft.remarks)), [str(entry["id"]) for entry in draft.entries]


@pytest.mark.parametrize(("head", "text"), documents("faulty.md"))
def test_the_planted_fault_is_found_and_nothing_else(head: str, text: str) -> None:
    """Where it is, and as what it is; the clean stories beside it are left alone."""
    _, story, words = head.split(" | ")
    found, ids = found_in(text)
    assert len(found) == 1, found
    assert words in found[0]
    if story != "-":
        name = ids[int(story[1:]) - 1] if story.startswith("#") else story
        assert found[0].startswith(f"{name}: ")


@pytest.mark.parametrize(("head", "text"), documents("clean.md"))
def test_nothing_is_found_in_a_clean_document(head: str, text: str) -> None:
    """A linter that cries wolf is switched off."""
    assert found_in(text)[0] == [], head


def test_the_corpus_is_as_large_as_it_claims() -> None:
    """Twenty of each, at least."""
    assert len(documents("faulty.md")) >= 20
    assert len(documents("clean.md")) >= 20


@pytest.mark.parametrize(
    ("seen", "shows"),
    [
        ("test_tally.py::Tally::test_it_adds_up", True),
        ("tests/test_a.py", True),
        ("src/lib.rs tests::adds", True),
        ("the log names the file", True),
        ("by looking at it", False),
        ("obvious, e.g. from use", False),
    ],
)
def test_a_test_by_its_name_is_something_one_can_see(seen: str, shows: bool) -> None:
    """Whatever its runner calls it; a way of looking is not yet a thing to see."""
    assert is_observable(seen) is shows
