"""The morning report in a real browser: from disk, without network, without a complaint."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ralphloop.core.model import StoryList
from ralphloop.journal.journal import Journal
from ralphloop.ui.report.render import as_html
from tests.e2e.chromium import Page, browser
from tests.ui.report_nights import HOSTILE, Night, eventful, open_journal, story, story_list, told

pytestmark = [pytest.mark.e2e, pytest.mark.tool("chromium")]
PNG = b"\x89PNG\r\n\x1a\n"
Told = Callable[[Journal], StoryList]


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """A browser with nothing open yet."""
    with browser(tmp_path) as opened:
        yield opened


def written(place: Path, tell: Told) -> Path:
    """The page about a night, as a file."""
    with open_journal(place) as journal:
        report = told(journal, tell(journal))
    path = place / "report.html"
    path.write_text(as_html(report), encoding="utf-8")
    return path


def some(count: int) -> Told:
    """A night with so many stories, all with titles of ill will."""

    def tell(journal: Journal) -> StoryList:
        night = Night(journal)
        for number in range(1, min(count, 3) + 1):
            night.passes(f"US-{number}", reason=HOSTILE[number])
        night.end("interrupted", HOSTILE[0])
        titles = (HOSTILE[number % len(HOSTILE)] for number in range(count))
        return story_list(*(story(number, title) for number, title in enumerate(titles, 1)))

    return tell


def assert_quiet(page: Page, path: Path) -> None:
    """Nothing was loaded but the file itself, and nothing was complained about."""
    assert page.requests == [path.as_uri()]
    assert page.complaints == []


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1100, 390], ids=["desktop", "phone"])
def test_the_page_fits_and_shows(tmp_path: Path, page: Page, width: int, dark: bool) -> None:
    """On a desk and on a phone, by day and by night: no sideways scrolling, five pictures."""
    path = written(tmp_path, eventful)
    page.show(path, width=width, dark=dark)
    assert_quiet(page, path)
    assert page.value("document.documentElement.scrollWidth <= innerWidth")
    assert page.value("document.querySelectorAll('figure .strips').length") == 5
    background = page.value("getComputedStyle(document.body).backgroundColor")
    assert background == ("rgb(20, 23, 26)" if dark else "rgb(255, 255, 255)")
    shot = page.screenshot()
    assert shot.startswith(PNG)
    (tmp_path / "report.png").write_bytes(shot)


@pytest.mark.parametrize("count", [0, 1, 500])
def test_any_number_of_hostile_stories_is_only_text(tmp_path: Path, page: Page, count: int) -> None:
    """Nothing of a title runs, loads or breaks the page; every story is there."""
    path = written(tmp_path, some(count))
    page.show(path, width=390)
    page.value("document.querySelectorAll('details').forEach(it => it.open = true)")
    assert page.screenshot(whole=False).startswith(PNG)
    assert_quiet(page, path)
    assert page.value("document.querySelectorAll('.story').length") == count
    foreign = "script, img, iframe, a:not([href^=\\'#\\'])"  # tiles lead to their part
    assert page.value(f"document.querySelectorAll('{foreign}').length") == 0
    assert page.value("document.documentElement.scrollWidth <= innerWidth")
    if count:
        assert "<script>alert(1)</script>" in page.value("document.body.innerText")


def test_even_a_script_that_slipped_in_would_not_run(tmp_path: Path, page: Page) -> None:
    """The page's own policy is a second wall: script, image and style sheet are all refused."""
    path = written(tmp_path, some(1))
    evil = (
        "<script>document.title = 'owned'</script><img src='http://127.0.0.1:9/x.png'>"
        "<link rel=stylesheet href='http://127.0.0.1:9/x.css'>"
    )
    path.write_text(path.read_text().replace("</header>", f"</header>{evil}"))
    page.show(path)
    assert page.value("document.title").startswith("shop: ")
    assert page.complaints
    assert page.value("document.querySelector('img').naturalWidth") == 0


def test_it_prints(tmp_path: Path, page: Page) -> None:
    """Whoever wants paper gets a PDF of a few pages."""
    page.show(written(tmp_path, eventful), dark=True)
    printed = page.pdf()
    assert printed.startswith(b"%PDF-")
    assert 1 <= printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ") <= 12
