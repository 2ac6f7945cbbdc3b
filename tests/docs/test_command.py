"""`ralph docs` has every page of this version, with links that lead on in a terminal."""

from __future__ import annotations

import re
import tomllib

import pytest

from ralphloop.cli.shared.doc_pages import every_page, for_terminal, page_called, section_of
from tests.conftest import RunRalph
from tests.docs.pages import ROOT

DOCS = ROOT / "docs"
NAMES = sorted(path.relative_to(DOCS).with_suffix("").as_posix() for path in DOCS.rglob("*.md"))
_LEADS = re.compile(r"`ralph docs ([\w./-]+)(?:#([\w-]+))?`")
_CODE = re.compile(r"^ *```.*?^ *```$|`[^`\n]*`", re.M | re.S)


def test_every_page_is_there() -> None:
    """Guides, references, what stands beside them, and decisions."""
    assert sorted(every_page()) == NAMES


def test_an_installation_has_the_same_pages() -> None:
    """What the wheel takes along is every directory and every single page."""
    made = tomllib.loads((ROOT / "pyproject.toml").read_text())
    taken = made["tool"]["hatch"]["build"]["targets"]["wheel"]["force-include"]
    assert {source: f"ralphloop/{source}" for source in taken} == taken
    for name in NAMES:
        parent = f"docs/{name}".rpartition("/")[0]
        assert f"docs/{name}.md" in taken or (parent != "docs" and parent in taken), name


@pytest.mark.parametrize("name", NAMES)
def test_links_of_a_page_lead_to_pages_and_headings(name: str) -> None:
    """Each is a command that shows something, and no mark of a link is left over."""
    pages = every_page()
    shown = for_terminal(pages[name], pages[name].text, pages)
    for asked, anchor in _LEADS.findall(shown):
        found = page_called(asked, pages)
        assert found is not None, asked
        assert not anchor or section_of(found.text, anchor), f"{asked}#{anchor}"
    assert "](" not in _CODE.sub("", shown)
    assert "<img" not in shown


def test_the_list_names_all_but_the_decisions(run_ralph: RunRalph) -> None:
    """One line a page, and how to find more."""
    done = run_ralph("docs", cwd=ROOT)
    listed = {line.split()[0] for line in done.stdout.splitlines() if line[:1].strip()}
    assert {name for name in NAMES if not name.startswith("decisions/")} <= listed
    assert "--search" in done.stdout


def test_a_part_of_a_page_is_shown_alone(run_ralph: RunRalph) -> None:
    """From its heading to the next one."""
    done = run_ralph("docs", "commands#ralph-status", cwd=ROOT)
    assert done.stdout.startswith("## ralph status\n")
    assert "## ralph stories" not in done.stdout
    wrong = run_ralph("docs", "commands#nothing", cwd=ROOT)
    assert (wrong.returncode, "has no heading 'nothing'" in wrong.stderr) == (64, True)


def test_words_are_found(run_ralph: RunRalph) -> None:
    """In any case, with the lines that have them; what nobody wrote is said to be nowhere."""
    done = run_ralph("docs", "--search", "CIRCUIT breaker", cwd=ROOT)
    assert "reference/commands" in done.stdout
    assert "breaker" in done.stdout.lower()
    wrong = run_ralph("docs", "-s", "xyzzyx", cwd=ROOT)
    assert (wrong.returncode, "no page has 'xyzzyx'" in wrong.stderr) == (64, True)


def test_a_decision_is_found_by_its_number(run_ralph: RunRalph) -> None:
    """As people speak of them."""
    assert run_ralph("docs", "012", cwd=ROOT).stdout.startswith("# 012")


def test_an_unknown_page_offers_to_search(run_ralph: RunRalph) -> None:
    """With the word that was typed."""
    done = run_ralph("docs", "budgets", cwd=ROOT)
    assert done.returncode == 64
    assert "`ralph docs --search budgets`" in done.stderr
