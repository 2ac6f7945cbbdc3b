"""The report on paper: HTML that needs nothing and runs nothing, Markdown that stays words."""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Iterator
from datetime import UTC
from functools import cache
from html.parser import HTMLParser
from pathlib import Path

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ralphloop.journal.journal import Journal
from ralphloop.ui.report.render import as_html, as_markdown, code, escaped
from ralphloop.ui.report.values import PassPoint, Report, Series, Span, UsedBy
from tests.ui.report_nights import (
    EVENING,
    HOSTILE,
    Night,
    eventful,
    open_journal,
    story,
    story_list,
    told,
)

LOADING = ("src", "href", "action", "data", "poster", "srcset", "background", "formaction")


@pytest.fixture
def journal(tmp_path: Path) -> Iterator[Journal]:
    """A new journal."""
    with open_journal(tmp_path) as opened:
        yield opened


@pytest.fixture
def night(journal: Journal) -> Report:
    """The night in which nearly everything happened."""
    return told(journal, eventful(journal))


@cache
def one_night() -> Report:
    """The same, for tests that need only one."""
    with tempfile.TemporaryDirectory() as place, open_journal(Path(place)) as journal:
        return told(journal, eventful(journal))


class Elements(HTMLParser):
    """All tags with their attributes, and all text."""

    VOID = ("meta", "rect", "line", "circle", "polyline", "path", "br")

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str, str]] = []
        self.open: list[str] = []
        self.text = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember it."""
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]
        if tag not in self.VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Remember it; nothing is left open."""
        self.tags.append(tag)
        self.attributes += [(tag, name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        """It must be the one that is open."""
        if tag not in self.VOID:
            assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        """Remember the words."""
        self.text += data


def test_the_page_is_whole_and_loads_nothing(night: Report) -> None:
    """Every element is closed; no script, no address; tiles lead to their part; the policy forbids the rest."""
    page = Elements(as_html(night))
    assert page.open == []
    assert not {"script", "link", "img", "iframe", "object", "form"} & set(page.tags)
    loads = (it for it in page.attributes if it[1] in LOADING or it[1].startswith("on"))
    assert [it for it in loads if not it[2].startswith("#")] == []
    links = [value for tag, name, value in page.attributes if tag == "a"]
    assert links
    assert all(f' id="{value.removeprefix("#")}"' in as_html(night) for value in links)
    policy = next(value for _, name, value in page.attributes if value.startswith("default-src"))
    assert policy.startswith("default-src 'none'; style-src 'unsafe-inline'")
    assert "url(" not in re.sub(r"url\(#\w+\)", "", as_html(night))


def test_everything_that_matters_is_on_the_page(night: Report) -> None:
    """Groups, question, commands, money, decisions, near misses."""
    text = Elements(as_html(night, UTC)).text
    for words in (
        "6 of 9 stories passed",
        "Which tax rate applies to gift cards?",
        "git cherry-pick --no-commit",
        "$6.67 of $15.00 (44%)",
        "circuit CLOSED → HALF_OPEN",
        "“Done” that was not",
        "3 tests were skipped",
        "git has no upstream",
        "2026-11-15 22:00",
    ):
        assert words in text


def test_each_picture_carries_its_numbers_as_a_table(night: Report) -> None:
    """Whoever cannot see it can read it: five pictures, a label and a table each."""
    html = as_html(night, UTC)
    figures = re.findall(r"<figure.*?</figure>", html, re.DOTALL)
    assert len(figures) == 5
    for figure in figures:
        assert 'role="img" aria-label="' in figure
        assert figure.count("<tr>") >= 2
    assert "00:11" not in figures[0]
    assert "<td><bdi>US-6</bdi></td><td><bdi>verified</bdi></td>" in figures[0]


def figure(html: str, key: str) -> str:
    """One picture of a page."""
    return html.partition(f'<figure id="{key}">')[2].partition("</figure>")[0]


def test_lanes_are_a_timeline(journal: Journal) -> None:
    """A row for each lane: at work, waiting to land, landing, what went back; with its numbers."""
    night = Night(journal)
    for n, lane in ((1, 1), (2, 2)):
        night.event("iteration_started", n, story=f"US-{n}", lane=lane)
    for n, kind, data in (
        (2, "landing", {"story": "US-2", "lane": 2}),
        (1, "landing", {"story": "US-1", "lane": 1, "ahead": 1}),
        (2, "iteration_finished", {}),
        (1, "iteration_finished", {}),
        (1, "story_returned", {"story": "US-1", "lane": 1, "reason": "conflict with US-2"}),
    ):
        night.now += 60
        night.event(kind, n, **data)
    night.end("interrupted")
    report = told(journal, story_list(story(1), story(2)))
    drawn = figure(as_html(report, UTC), "lanes")
    assert re.findall(r'class="before"><bdi>(.*?)</bdi>', drawn) == ["lane 1", "lane 2"]
    strips = re.findall(r"<svg.*?</svg>", drawn, re.DOTALL)
    first, second = (re.findall(r'class="(lane-\w+)"', strip) for strip in strips)
    assert first == ["lane-working", "lane-queued", "lane-landing", "lane-returned"]
    assert second == ["lane-working", "lane-landing"]
    assert "1m 00s in all" in drawn
    assert "1 story was sent back" in drawn
    assert drawn.rpartition("<td>")[2].startswith("<bdi>US-1 went back: conflict with US-2</bdi>")


def test_an_empty_run_has_sentences_instead_of_pictures(journal: Journal) -> None:
    """Nothing happened is said, not drawn."""
    Night(journal)
    html = as_html(told(journal, story_list()))
    text = Elements(html).text
    for words in (
        "No story passed in this run.",
        "No iteration has ended yet.",
        "It stayed CLOSED all the time.",
        "It never had to wait.",
    ):
        assert words in text
    assert '<rect class="passed' not in html
    assert 'class="strips"' not in html


def test_bars_are_told_apart_without_colour(night: Report) -> None:
    """Tokens are hatched where dollars are plain; states lie in rows of their own."""
    html = as_html(night)
    assert ".tokens, .checking { fill: url(#hatch)" in html
    for strip in re.findall(r"<svg.*?</svg>", figure(html, "circuit"), re.DOTALL):
        assert len(set(re.findall(r'class="(lane-\w+)"', strip))) <= 1


def blocked_by(journal: Journal, words: str) -> Report:
    """A run in which these words are title, question, finding and reason."""
    night = Night(journal)
    state = {"standing": "blocked", "reason": words}
    night.iteration("US-1", status="BLOCKED", state=state, findings=[words])
    night.end("blocked", words)
    return told(journal, story_list(story(1, words)))


@pytest.mark.parametrize("words", HOSTILE, ids=range(len(HOSTILE)))
def test_hostile_words_are_only_text(tmp_path: Path, words: str) -> None:
    """Tags, directions, emoji, ten kilobytes, templates: the page keeps exactly its elements."""
    with open_journal(tmp_path / "a") as calm, open_journal(tmp_path / "b") as wild:
        harmless, hostile = blocked_by(calm, "a title"), blocked_by(wild, words)
    page = Elements(as_html(hostile))
    assert page.open == []
    assert page.tags == Elements(as_html(harmless)).tags
    assert len(page.attributes) == len(Elements(as_html(harmless)).attributes)
    assert hostile.groups[0].stories[0].title[:10] in page.text
    assert "\u202e" not in page.text
    assert max(len(line) for line in as_markdown(hostile).splitlines()) < 2_000


def test_markdown_says_the_same(night: Report) -> None:
    """The same facts, readable in a terminal."""
    text = as_markdown(night, UTC)
    assert text.startswith("# shop: 6 of 9 stories passed")
    assert "1. Answer US-7: Which tax rate applies to gift cards?" in text
    assert "- cost: $6.67 of $15.00 (44%)" in text
    assert "- 22:36 waited: usage limit reached" in text
    assert "\n\n\n" not in text


def test_markdown_cannot_be_made_to_link_mention_or_embed() -> None:
    """Words of a story stay words in a pull request."""
    text = escaped(HOSTILE[4])
    assert "\\]" in text
    assert "!\\[" in text
    assert "@\u200beveryone" in text
    assert "\\`rm" in text
    assert "\\|" in text
    assert escaped("<img src=x>").startswith("\\<")
    assert escaped("# title") == "\\# title"
    assert escaped("test_cart_items.py") == "test_cart_items.py"


@given(text=st.text(st.characters(exclude_characters="\n\r", exclude_categories=["Cs"])))
def test_a_code_span_holds_any_text(text: str) -> None:
    """The fence is longer than any row of backticks inside."""
    span = code(text)
    fence = re.match("`+", span)
    assert fence is not None
    inner = span[len(fence[0]) : -len(fence[0])] if text.strip("`") else ""
    assert not re.search(rf"(?<!`){fence[0]}(?!`)", inner)


MOMENTS = st.floats(-1e5, 1e5).map(lambda seconds: EVENING + seconds)
COSTS = st.lists(
    st.builds(
        UsedBy, st.text(max_size=40), cost_usd=st.floats(0, 1e9), tokens=st.integers(0, 2**53)
    ),
    max_size=8,
).map(tuple)
SPANS = st.lists(
    st.builds(
        Span, st.sampled_from(["CLOSED", "OPEN", "quota", "new"]), st.just("why"), MOMENTS, MOMENTS
    ),
    min_size=1,
    max_size=8,
).map(tuple)


@given(costs=COSTS, spans=SPANS, times=st.lists(MOMENTS, max_size=8))
@example(
    costs=(UsedBy("", cost_usd=5e-324),), spans=(Span("CLOSED", "", EVENING, EVENING),), times=[]
)
def test_whatever_the_numbers_the_pictures_stay_in_their_frame(
    costs: tuple[UsedBy, ...], spans: tuple[Span, ...], times: list[float]
) -> None:
    """Huge and tiny costs, clocks set back, moments outside of the run: nothing leaves its frame."""
    passed = tuple(PassPoint(at, n, f"US-{n}", "checked") for n, at in enumerate(times, 1))
    series = Series(passed, costs, costs, costs[0] if costs else None, spans, len(spans), spans)
    html = as_html(msgspec.structs.replace(one_night(), series=series), UTC)
    boxes = r'<rect class="\S+" x="(\S+)%" y="(\S+)%" width="(\S+)%" height="(\S+)%">'
    for box in re.findall(boxes, html.partition("<h2>Pictures</h2>")[2]):
        x, y, width, height = map(float, box)
        assert 0 <= x <= x + width <= 100.02
        assert 0 <= y <= y + height <= 100.02


def test_json_is_the_whole_report(night: Report) -> None:
    """What other programs get is what the page is made of, with a version."""
    data = json.loads(msgspec.json.encode(night))
    assert data["v"] == 1
    assert data["passed"] == 6
    assert data["groups"][0]["stories"][0]["id"] == "US-7"
    assert data["series"]["waits"][0]["kind"] == "quota"
    assert msgspec.convert(data, Report) == night


def test_a_page_about_five_hundred_hostile_stories_stays_small(journal: Journal) -> None:
    """Half a megabyte is a page; titles of ten kilobytes do not make it more."""
    Night(journal)
    stories = story_list(*(story(n, HOSTILE[n % len(HOSTILE)]) for n in range(1, 501)))
    html = as_html(told(journal, stories))
    assert html.count('class="story"') == 500
    assert len(html) < 500_000
