"""The site has every page, and what it says about money is what the prices say."""

from __future__ import annotations

import re
import runpy
import tomllib

import pytest
from ruamel.yaml import YAML

from tests.docs.pages import ROOT

DOCS = ROOT / "docs"
SIZES = ((200_000, 30_000, 6_000), (800_000, 60_000, 15_000), (3_000_000, 150_000, 40_000))
_LINK = re.compile(r"\]\(([^()\s]+)\)")
_ROW = re.compile(r"^\| `([\w.-]+)` \| (.*) \|$", re.M)


def listed(entries: object) -> list[str]:
    """Every page of a part of the navigation."""
    if isinstance(entries, str):
        return [entries]
    values = entries.values() if isinstance(entries, dict) else entries
    assert isinstance(values, list) or hasattr(values, "__iter__")
    return [page for entry in values for page in listed(entry)]


def test_every_page_is_in_the_navigation_once() -> None:
    """But for the decisions, which have a list of their own, and what is made while it is built."""
    settings = YAML(typ="safe", pure=True).load((ROOT / "mkdocs.yml").read_text(encoding="utf-8"))
    pages = listed(settings["nav"])
    there = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
    wanted = {page for page in there if not page.startswith("decisions/")}
    assert sorted(pages) == sorted({*wanted, "decisions/README.md", "index.md", "changelog.md"})
    assert settings["strict"] is True
    assert settings["theme"]["font"] is False


@pytest.mark.parametrize("name", ["README.md", "CHANGELOG.md"])
def test_what_lies_above_the_documents_leads_into_the_site(name: str) -> None:
    """Each link is to a page of the site or to another place; the rest are words."""
    made = runpy.run_path(str(ROOT / "contrib" / "site" / "pages.py"))
    page = made["TAKEN"][name]
    text = made["turned"]((ROOT / name).read_text(encoding="utf-8"), name, page)
    links = [link.partition("#")[0] for link in _LINK.findall(text)]
    assert links
    for link in links:
        is_page = (DOCS / link).is_file() or link in made["TAKEN"].values()
        assert is_page or link.startswith("https://"), link


def test_its_requirements_are_pinned_with_hashes_and_name_no_place() -> None:
    """A fresh clone builds the same site, from wherever packages come there."""
    text = (ROOT / "requirements-docs.txt").read_text()
    pins = re.findall(r"^([\w.-]+)==", text, re.M)
    assert {"mkdocs", "mkdocs-material"} <= set(pins)
    assert len(re.findall(r"==[^\n]* \\\n    --hash=sha256:", text)) == len(pins)
    assert not re.search(r"://|^--|^-[a-z]", text, re.M)


@pytest.mark.parametrize("name", sorted(path.name for path in (DOCS / "images").glob("*.svg")))
def test_a_picture_is_used_and_fetches_nothing(name: str) -> None:
    """No font or picture from elsewhere, and no picture that nobody sees."""
    text = (DOCS / "images" / name).read_text(encoding="utf-8")
    assert not re.search(r"@font-face|@import|url\(\s*['\"]?https?:|href=['\"]https?:", text)
    pages = [ROOT / "README.md", *DOCS.rglob("*.md")]
    assert any(f"images/{name}" in page.read_text(encoding="utf-8") for page in pages)


def test_what_a_start_costs_is_what_the_prices_say() -> None:
    """Every row is the arithmetic that the page tells, and its day is that of the prices."""
    prices = tomllib.loads((ROOT / "src/ralphloop/agents/prices.toml").read_text(encoding="utf-8"))
    page = (DOCS / "guides" / "what-a-night-costs.md").read_text(encoding="utf-8")
    assert f"List prices of {prices['checked']}" in page
    rows = _ROW.findall(page)
    assert len(rows) >= 5
    for model, shown in rows:
        price = prices["models"][model]
        written = price.get("cache_write", price["input"])
        costs = [
            (read * price["cache_read"] + wrote * written + said * price["output"]) / 1e6
            for read, wrote, said in SIZES
        ]
        assert shown == " | ".join(f"${cost:.2f}" for cost in (*costs, 20 * costs[1])), model
