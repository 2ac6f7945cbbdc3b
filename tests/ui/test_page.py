"""The page: what it shows, what it sends when something changes, what it asks of a run."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from ralphloop.core.run_state import Standing
from ralphloop.night.look import look
from ralphloop.project import Project
from ralphloop.ui.monitor.moments import Facts
from ralphloop.ui.page.devices import form_word
from ralphloop.ui.page.parts import NAMES, ROWS, Painter, Piece
from tests.ui.monitor_nights import (
    RUN,
    Night,
    finished,
    half_open,
    in_lanes,
    running,
    stuck,
    waiting,
)
from tests.ui.page_visits import Elements, Visits, digests
from tests.ui.test_report_model import multiply_iterations

INTERNAL = (
    "circuit_open", "CIRCUIT_OPEN", "transient", "usage_limit", "HALF_OPEN", "set_aside",
    "tool_result", "startup_error", "project_complete", "None", "Undefined",
)  # fmt: skip


@pytest.fixture
def night(tmp_path: Path) -> Iterator[Night]:
    """An agent works on the fourth story."""
    night = running(tmp_path / "shop")
    with night.held():
        yield night


@pytest.fixture
def visits(night: Night, tmp_path: Path) -> Iterator[Visits]:
    """Its page."""
    with Visits(night.project, tmp_path / "state") as visits:
        yield visits


def test_everything_a_person_wants_to_know_is_there(visits: Visits) -> None:
    """State, question, story at work with its log, money, circuit, stories, iterations."""
    page = Elements(visits.get("", visits.known()).text)
    words = " ".join(page.words.split())
    for told in (
        "Running, 3 of 8 stories passed",
        "1 question for you",
        "Is there a Volapük dictionary?",
        "Checkout validates the address before payment",
        "iteration 5, attempt 2",
        "Bash pytest -q tests/test_checkout.py",
        "$1.68 of $10.00",
        "all well",
        "waits on US-006",
    ):
        assert told in words, told


@pytest.mark.parametrize("begin", [running, waiting, stuck, finished])
def test_no_internal_word_is_shown(begin: Callable[[Path], Night], tmp_path: Path) -> None:
    """Whatever the state is called in the journal."""
    night = begin(tmp_path / "shop")
    with Visits(night.project, tmp_path / "state") as visits:
        visits.hours.now = night.clock.now
        text = Elements(visits.get("", visits.known()).text).words
    log = text.partition("Log")[2].partition("Money")[0]  # in the console's own words
    shown = text.replace(log, "").replace("the start ended usage_limit", "")  # written by the test
    assert not [word for word in INTERNAL if word in shown]


def test_times_are_points_that_the_browser_tells(visits: Visits) -> None:
    """Each has an ISO moment, so that everybody reads their own clock."""
    page = Elements(visits.get("", visits.known()).text)
    times = [attrs for tag, attrs in page.found if tag == "time"]
    assert len(times) > 10
    assert all((attrs["datetime"] or "").endswith("Z") and attrs["data-as"] for attrs in times)


def test_landmarks_and_fields_have_names(visits: Visits) -> None:
    """Every section says by which heading it is called; every field has its label."""
    page = Elements(visits.get("", visits.known()).text)
    ids = {attrs["id"] for _, attrs in page.found if "id" in attrs}
    labels = {attrs["for"] for tag, attrs in page.found if tag == "label"}
    fields = {attrs["id"] for tag, attrs in page.found if tag == "textarea"}
    named = {attrs["aria-labelledby"] for tag, attrs in page.found if tag == "section"}
    assert fields <= labels
    assert named <= ids
    assert {"header", "main", "footer"} <= page.tags


def test_a_project_without_a_run_says_what_to_do(tmp_path: Path) -> None:
    """Nothing is asked for that cannot be had."""
    with Visits(Project(tmp_path), tmp_path / "state") as visits:
        cookie = visits.known()
        page = Elements(visits.get("", cookie).text)
        assert "No run yet" in page.words
        assert "ralph init" in page.words
        assert "button" not in page.tags
        assert visits.get("iterations", cookie).status == 404


def test_an_unreadable_journal_is_said(night: Night, visits: Visits) -> None:
    """The page stays and says what is wrong."""
    night.journal.close()
    night.project.journal.write_bytes(b"not a journal" * 100)
    assert "Journal unreadable" in visits.get("", visits.known()).text


def test_after_the_end_it_says_what_to_do(tmp_path: Path) -> None:
    """The stories to look at, with a way to them; no command for what the page does itself."""
    night = finished(tmp_path / "shop")
    with Visits(night.project, tmp_path / "state") as visits:
        page = Elements(visits.get("", visits.known()).text)
    assert "stories to look at" in page.words
    assert "review" in {attrs.get("href") for _, attrs in page.found}
    assert "ralph review" not in page.words
    assert "git log" not in page.words  # there is no git here
    assert "Pause" not in page.words


def test_lanes_show_every_story_at_work(visits: Visits, night: Night) -> None:
    """Two agents work at once: both are there, and both stories run."""
    night.start("US-005")
    page = visits.get("", visits.known()).text
    now = Elements(page.partition('id="now"')[2].partition("</section>")[0]).words
    assert "Checkout validates" in now
    assert "Export orders" in now
    assert page.count(">running<") == 2


def test_the_page_says_what_each_lane_does(tmp_path: Path) -> None:
    """The lines of the monitor, at every story at work."""
    night = in_lanes(tmp_path / "shop")
    with night.held(), Visits(night.project, tmp_path / "state") as visits:
        page = Elements(visits.get("", visits.known()).text).words
    assert "lane 1 waits for landing, 1 before it" in page
    assert "lane 4 works" in page


# --- what is sent ----------------------------------------------------------------------------


def test_nothing_is_sent_that_the_browser_has(visits: Visits) -> None:
    """Who has just loaded the page gets an empty first word."""
    cookie = visits.known()
    has = digests(visits.get("", cookie).text)
    assert len(has.split(".")) == len(NAMES)
    with visits.stream(cookie, has) as stream:
        assert stream.next() == ("parts", [])


def test_a_change_brings_the_parts_that_changed(visits: Visits, night: Night) -> None:
    """A step of the agent is a new log, not a new page; a story that passes is more."""
    cookie = visits.known()
    has = digests(visits.get("", cookie).text)
    with visits.stream(cookie, has) as stream:
        stream.next()
        night.acts("Edit src/shop/other.py")
        parts = stream.parts()
        assert "Edit src/shop/other.py" in parts["log"]
        assert set(parts) <= {"log", "now"}
        night.finish("US-004", passed=True, state={"standing": "passed", "grade": "verified"})
        seen: dict[str, str] = {}
        while "4 of 8" not in seen.get("head", "") or "past" not in seen:
            seen |= stream.parts()
    assert "steer" not in seen
    assert sum(map(len, parts.values())) < 20_000


def test_everybody_shares_one_look(
    visits: Visits, night: Night, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Ten windows cost as many renderings as one."""
    counted: list[int] = []
    real = Painter.pieces

    def counting(painter: Painter, facts: Facts, at: float) -> dict[str, Piece]:
        counted.append(1)
        return real(painter, facts, at)

    monkeypatch.setattr(Painter, "pieces", counting)
    devices = [visits.known() for _ in range(3)]
    windows = [visits.stream(devices[number % 3]) for number in range(10)]
    streams = [window.__enter__() for window in windows]
    for stream in streams:
        stream.parts()
    before = len(counted)
    night.acts("Edit src/shop/other.py")
    for stream in streams:
        assert "other.py" in stream.parts()["log"]
    for window in windows:
        window.__exit__(None, None, None)
    assert len(counted) - before <= 2


def test_ten_thousand_iterations_and_stories_stay_a_page(tmp_path: Path) -> None:
    """The newest are shown, older ones are found page by page, and a change stays small."""
    titles = tuple(f"Story number {number}" for number in range(10_000))
    night = Night(tmp_path / "shop", titles=titles)
    night.begin()
    for story in ("US-001", "US-002"):
        night.start(story)
        night.finish(story)
    multiply_iterations(night.journal, 10_000)
    with night.held(), Visits(night.project, tmp_path / "state") as visits:
        cookie = visits.known()
        page = visits.get("", cookie).text
        assert len(page) < 200_000
        assert "All 10,000 stories" in page
        seen, address = [], "iterations"
        for _ in range(3):
            found = Elements(visits.get(address, cookie).text)
            links = [attrs["href"] or "" for tag, attrs in found.found if tag == "a"]
            seen += [int(link[12:]) for link in links if link.startswith("iteration?n=")]
            address = next(link for link in links if link.startswith("iterations?before="))
        assert seen == list(range(10_000, 10_000 - 3 * ROWS, -1))
        assert 'iteration?n=1"' in visits.get("iterations?before=2", cookie).text
        last = visits.get(f"stories?from={10_000 - ROWS}", cookie).text
        assert "Story number 9999" in last
        assert "More" not in last
        with visits.stream(cookie, digests(page)) as stream:
            stream.next()
            night.n = 10_000
            night.tell("agent_event", 10_000, kind="tool", summary="Bash make")
            assert sum(map(len, stream.parts().values())) < 20_000


# --- what is asked ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("kind", "fields", "wish"),
    [
        ("pause", {}, {}),
        ("stop", {}, {}),
        ("note", {"text": "use v2"}, {"text": "use v2"}),
        (
            "answer",
            {"story": "US-006", "text": "Yes:\r\nhere"},
            {"story": "US-006", "text": "Yes:\nhere"},
        ),
        ("retry", {"story": "US-006"}, {"story": "US-006"}),
        ("skip", {"story": "US-005"}, {"story": "US-005"}),
    ],
)
def test_a_wish_is_the_same_row_that_the_command_writes(
    visits: Visits,
    night: Night,
    monkeypatch: pytest.MonkeyPatch,
    kind: str,
    fields: dict[str, str],
    wish: dict[str, str],
) -> None:
    """Asked of the run that goes on, in the name of a person."""
    monkeypatch.setattr("ralphloop.cli.shared.steering._PATIENCE_S", 0.0)
    found = visits.post("do", visits.known(), kind=kind, **fields)
    assert found.status == 303
    assert night.requests() == [(kind, wish)]
    (row,) = night.journal.pending_requests(RUN)
    assert row.payload.by is not None


def test_without_a_script_the_next_page_says_what_became_of_it(
    visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, and to the device that asked."""
    monkeypatch.setattr("ralphloop.cli.shared.steering._PATIENCE_S", 0.0)
    cookie, other = visits.known(), visits.known()
    assert visits.post("do", cookie, kind="pause").header("location") == "./"
    said = "was asked to pause; it answers when this iteration ends"
    assert said not in visits.get("", other).text
    assert said in visits.get("", cookie).text
    assert said not in visits.get("", cookie).text


def test_with_a_script_the_answer_is_a_sentence(tmp_path: Path) -> None:
    """What the run says, or why it was refused and what to do."""
    night = finished(tmp_path / "shop")
    with Visits(night.project, tmp_path / "state") as visits:
        cookie = visits.known()
        body = f"word={form_word(cookie)}&kind=answer&story=US-404&text=x".encode()
        found = visits.send("do", cookie, body, [("accept", "application/json")])
    said = json.loads(found.text)
    assert said["done"] is False
    assert "There is no story 'US-404'. `ralph status`" in said["words"]


@pytest.mark.parametrize(("kind", "said"), [("answer", "open again"), ("retry", "open again")])
def test_between_runs_it_is_done_at_once(tmp_path: Path, kind: str, said: str) -> None:
    """As by the command: the story is open again and the next start finds it so."""
    night = running(tmp_path / "shop")
    night.finish("US-004")
    night.end("interrupted", "stopped by a person")
    with Visits(night.project, tmp_path / "state") as visits:
        cookie = visits.known()
        visits.post("do", cookie, kind=kind, story="US-006", text="Here it is.")
        assert said in visits.get("", cookie).text
        refused = visits.post("do", cookie, kind="pause")
        assert refused.status == 303
        assert "No run is going on here" in visits.get("", cookie).text
    (story,) = [
        one
        for one in look(Project(night.project.root), now=time.time()).stories
        if one.story.id == "US-006"
    ]
    assert story.standing is Standing.OPEN


def test_half_open_is_told_with_its_reason(tmp_path: Path) -> None:
    """And what it means."""
    night = stuck(tmp_path / "shop")
    with night.held(), Visits(night.project, tmp_path / "state") as visits:
        words = Elements(visits.get("", visits.known()).text).words
    assert half_open(0).reason in words
    assert "the next start decides" in words
