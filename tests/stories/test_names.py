"""Names made from story ids are safe whatever the id is."""

from __future__ import annotations

import re
import subprocess

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ralphloop.stories.names import label, quoted, slug

HOSTILE = [
    "$(rm -rf ~)", "a\nb", "../../x", "--force", ".lock", "a..b", "x.lock", "@{", "ünï 日本", "x" * 300,
    "", " ", "\0", "CON", "a/b\\c", "\ud800", "~^:?*[", "-",
]  # fmt: skip


def test_a_slug_is_readable_and_ends_in_eight_hex_digits() -> None:
    """An ordinary id stays recognisable."""
    assert re.fullmatch(r"us-001-[0-9a-f]{8}", slug("US-001"))
    assert re.fullmatch(r"ecran-d-accueil-[0-9a-f]{8}", slug("Écran d'accueil"))
    assert re.fullmatch(r"story-[0-9a-f]{8}", slug("日本"))


@given(st.text(alphabet=st.characters(), max_size=400) | st.sampled_from(HOSTILE))
def test_any_id_gives_a_safe_name(story_id: str) -> None:
    """A slug never holds anything but small letters, digits and inner dashes."""
    assert re.fullmatch(r"[a-z0-9]([a-z0-9-]{0,47}[a-z0-9])", slug(story_id))


@given(st.text(), st.text())
def test_different_ids_have_different_slugs(one: str, other: str) -> None:
    """Ids that look alike once cleaned are told apart by their hash."""
    assert (slug(one) == slug(other)) == (one == other)


@pytest.mark.parametrize("story_id", HOSTILE)
def test_git_takes_a_slug_as_part_of_a_ref(story_id: str) -> None:
    """Git itself accepts the name."""
    ref = f"refs/ralph/set-aside/{slug(story_id)}/1"
    assert subprocess.run(["git", "check-ref-format", ref], check=False).returncode == 0


@given(st.text(alphabet=st.characters(), max_size=400))
def test_words_for_people_are_one_printable_line(text: str) -> None:
    """Neither a quotation nor a label can move a cursor or fill a screen."""
    for words in (quoted(text), label(text)):
        assert words.isprintable()
    assert len(label(text)) < 800
