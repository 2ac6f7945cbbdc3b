"""Every link of the documents leads somewhere."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.docs.pages import ROOT

PAGES = sorted([*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md"), *ROOT.glob("src/**/*.md")])
_LINK = re.compile(r"\[[^\]]*\]\(([^)\s]+)\)")
_FENCED = re.compile(r"^```.*?^```$|`[^`\n]*`", re.M | re.S)


def anchors(page: Path) -> set[str]:
    """The names that a page's headings get."""
    headings = re.findall(r"^#+ (.*)$", page.read_text(encoding="utf-8"), re.M)
    words = (re.sub(r"[^\w\- ]", "", heading.lower()) for heading in headings)
    return {word.replace(" ", "-") for word in words}


@pytest.mark.parametrize("page", PAGES, ids=lambda it: str(it.relative_to(ROOT)))
def test_links_lead_to_files_and_headings_that_are_there(page: Path) -> None:
    """A file that was moved or a heading that was renamed takes its links along."""
    text = _FENCED.sub("", page.read_text(encoding="utf-8"))
    for link in _LINK.findall(text):
        if link.startswith(("https://", "http://", "mailto:")):
            continue
        name, _, anchor = link.partition("#")
        target = (page.parent / name).resolve() if name else page
        assert target.exists(), link
        assert target.is_relative_to(ROOT), f"{link} leads out of the repository"
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("place", ["guides", "reference"])
def test_the_readme_leads_to_every_guide_and_reference(place: str) -> None:
    """Nothing was written that nobody finds."""
    linked = _LINK.findall((ROOT / "README.md").read_text(encoding="utf-8"))
    pages = {f"docs/{place}/{page.name}" for page in (ROOT / "docs" / place).glob("*.md")}
    assert pages - {link.partition("#")[0] for link in linked} == set()
