"""The page in a real browser: a run watched and answered, every screen, the keyboard, the way back."""

from __future__ import annotations

import http.server
import os
import shutil
import subprocess
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

from ralphloop.night.look import look
from ralphloop.proc.run import ourselves
from ralphloop.project import Project
from ralphloop.ui.page.links import page_address
from tests.cli.test_serve import Served, served
from tests.e2e.chromium import Page, browser
from tests.loop.projects import UNITTEST, sandbox
from tests.night import test_review as nights
from tests.ui.monitor_nights import RUN, Night, finished, running, stuck
from tests.ui.report_nights import HOSTILE
from tests.ui.test_report_model import multiply_iterations

pytestmark = [pytest.mark.e2e, pytest.mark.tool("chromium")]
LIVE = "document.getElementById('link').textContent === 'live'"
ASKS = """
if STORY == "US-1" and "in blue" not in PROMPT:
    status("BLOCKED", recommendation="Which colour should the button have?")
else:
    while STORY == "US-2" and not os.path.exists(os.environ["TEST_STATE"] + "/go"):
        time.sleep(0.1)
    write(f"{STORY}.txt")
    done()
"""


@pytest.fixture
def page(tmp_path: Path) -> Iterator[Page]:
    """A browser with nothing open yet."""
    with browser(tmp_path) as opened:
        yield opened


@pytest.fixture
def night(tmp_path: Path) -> Iterator[Night]:
    """An agent works on the fourth story; the sixth asks something."""
    night = running(tmp_path / "shop")
    with night.held():
        yield night


def enter(page: Page, site: Served, **screen: Any) -> str:
    """Let the browser in as a person would, and wait until the page is live; its address."""
    page.visit(site.address, **screen)
    click(page, "button")
    page.until("!!document.getElementById('stories')")
    page.until(LIVE)
    page.complaints.clear()  # that nobody had really clicked
    return site.address.partition("?")[0]


def click(page: Page, selector: str) -> None:
    """The first such element, by its own method."""
    page.command("Runtime.evaluate", expression=f"document.querySelector({selector!r}).click()")


def words(page: Page, selector: str) -> str:
    """What is read there."""
    return str(page.value(f"document.querySelector({selector!r}).innerText"))


def shows(text: str, selector: str = "body") -> str:
    """The expression that is true once it does."""
    return f"document.querySelector({selector!r}).innerText.includes({text!r})"


def test_a_run_is_watched_from_start_to_end_and_answered(tmp_path: Path, page: Page) -> None:
    """Nothing yet, the first story asks, the answer is typed on a phone, all is done."""
    box = sandbox(tmp_path, ASKS, stories=2)
    with served(box.root) as site:
        enter(page, site, width=390, height=844)
        assert "No run yet" in words(page, "h1")
        process = box.start()
        page.until(shows("Which colour should the button have?"))
        page.until(shows("US-2", "#now"))
        assert "1 question for you" in str(page.value("document.getElementById('say').textContent"))
        page.command(
            "Runtime.evaluate", expression="document.querySelector('.ask textarea').focus()"
        )
        page.command("Input.insertText", text="Have it in blue.")
        click(page, ".ask button")
        page.until(shows("US-1 is open again, and its next prompt has your answer", "#said"))
        page.until("!document.querySelector('.ask')")
        (box.state / "go").touch()
        page.until(shows("Complete, 2 of 2 stories passed", "h1"))
        out, err = process.communicate(timeout=60)
        assert process.returncode == 0, out + err
        assert "in blue" in box.prompt(3)
        page.until(shows("git log", "#yours"))
        assert page.complaints == []
    report = box.ralph("report", "--md").out
    assert "a person asked: answer" in report


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 390, 320], ids=["desktop", "phone", "small"])
@pytest.mark.parametrize("begin", [running, stuck, finished])
def test_the_page_fits_and_asks_nobody_else(
    tmp_path: Path, page: Page, begin: Callable[[Path], Night], width: int, dark: bool
) -> None:
    """By day and night on any screen: no sideways scrolling, no complaint, no foreign request."""
    night = begin(tmp_path / "shop")
    with night.held(), served(night.project.root) as site:
        address = enter(page, site, width=width, dark=dark)
        ends = ("", "review", "stories", "story?id=US-006", "story?id=US-002", "iterations")
        for end in (*ends, "iteration?n=1"):
            page.visit(f"{address}{end}", width=width, dark=dark)
            assert page.value("document.documentElement.scrollWidth <= innerWidth"), end
            assert not [url for url in page.requests if not url.startswith(address)]
            assert page.complaints == []
        background = page.value("getComputedStyle(document.body).backgroundColor")
        assert background == ("rgb(20, 23, 26)" if dark else "rgb(255, 255, 255)")


def test_the_keyboard_is_enough(night: Night, page: Page) -> None:
    """The first stop jumps to the stories; an answer is typed and sent; a story is opened."""
    with served(night.project.root) as site:
        enter(page, site)
        page.press("Tab")
        assert page.value("document.activeElement.textContent") == "To the stories"
        seen = []
        for _ in range(12):
            page.press("Tab")
            seen.append(
                str(page.value("document.activeElement.tagName + document.activeElement.innerText"))
            )
            if seen[-1].startswith("TEXTAREA"):
                page.command("Input.insertText", text="There is one in the library.")
                page.press("Tab")
                page.press("Enter", "\r")
                break
        page.until("!document.getElementById('said').hidden")
        assert night.requests() == [
            ("answer", {"story": "US-006", "text": "There is one in the library."})
        ]
        for _ in range(20):
            page.press("Tab")
            if page.value("document.activeElement.tagName") == "SUMMARY" and page.value(
                "!!document.activeElement.closest('#stories')"
            ):
                break
        page.press("Enter", "\r")
        assert page.value("document.activeElement.parentElement.open")
        assert page.value("getComputedStyle(document.activeElement).outlineStyle") == "solid"


def test_everything_has_a_name_for_a_screen_reader(night: Night, page: Page) -> None:
    """Landmarks, fields, buttons and links; changes are said in a region that is live."""
    with served(night.project.root) as site:
        enter(page, site)
        named = page.names()
    for role in ("button", "textbox", "link", "region", "progressbar", "article", "log"):
        found = [name for kind, name in named if kind == role]
        assert found, role
        assert all(found), role
    regions = {name for kind, name in named if kind == "region"}
    assert {"What waits for you", "Steer", "Now", "Stories", "Iterations"} <= regions
    roles = [kind for kind, _ in named]
    assert (roles.count("main"), roles.count("banner"), roles.count("contentinfo")) == (1, 1, 1)
    assert roles.count("status") >= 1
    headings = [name for kind, name in named if kind == "heading"]
    assert any("Running, 3 of 8 stories passed" in name for name in headings)


def test_the_page_comes_back_after_the_server_was_killed(night: Night, page: Page) -> None:
    """It says that it lost the connection, keeps what was typed, and goes on by itself."""
    with served(night.project.root) as site:
        enter(page, site)
        typed = "document.querySelector('.ask textarea').value"
        page.command("Runtime.evaluate", expression=f"{typed} = 'half an answer'")
    page.until(shows("Connection lost", "#link"))
    night.acts("Edit src/shop/meanwhile.py")
    with served(night.project.root):
        page.until(LIVE)
        page.until(shows("meanwhile.py", "#log"))
        assert page.value(typed) == "half an answer"
        night.acts("Edit src/shop/afterwards.py")
        page.until(shows("afterwards.py", "#log"))


def test_a_forgotten_device_is_told_so(night: Night, page: Page) -> None:
    """The open page ends by itself, and says what lets it in again."""
    with served(night.project.root) as site:
        enter(page, site)
        argv = [*ourselves(), "serve", "--revoke"]
        subprocess.run(argv, cwd=night.project.root, check=True, capture_output=True)
        night.acts("Edit src/shop/unseen.py")
        page.until(shows("This device is not known here."))
        assert "unseen.py" not in words(page, "body")


def test_what_is_being_typed_is_left_alone(night: Night, page: Page) -> None:
    """The part somebody writes in is renewed when they are through; the others at once."""
    with served(night.project.root) as site:
        enter(page, site)
        page.command(
            "Runtime.evaluate", expression="document.querySelector('.ask textarea').focus()"
        )
        page.command("Input.insertText", text="I am still thi")
        state = {"standing": "blocked", "reason": "Another question."}
        night.journal.put_stories(RUN, {"US-005": state})
        night.finish("US-004")
        page.until(shows("waits for you", "#story-US-005"))
        page.command("Input.insertText", text="nking")
        assert page.value("document.activeElement.value") == "I am still thinking"
        assert "Another question." not in words(page, "#yours")
        page.command("Runtime.evaluate", expression="document.activeElement.blur()")
        page.until(shows("Another question.", "#yours"))
        page.until(
            "[...document.querySelectorAll('.ask textarea')].some(it => it.value === 'I am still thinking')"
        )


def test_without_scripts_it_shows_and_asks_the_same(night: Night, page: Page) -> None:
    """A form is posted by the browser, and the page says what became of it."""
    with served(night.project.root) as site:
        page.command("Emulation.setScriptExecutionDisabled", value=True)
        page.visit(site.address)
        page.press("Tab")
        page.press("Enter", "\r")
        page.until("!!document.getElementById('stories')")
        assert "Look again" in words(page, "#link")
        assert "Bash pytest -q tests/test_checkout.py" in words(page, "#log")
        page.command(
            "Runtime.evaluate", expression="document.querySelector('#steer button').focus()"
        )
        page.press("Enter", "\r")
        page.until("!document.getElementById('said').hidden")
        assert night.requests() == [("pause", {})]


def test_ten_thousand_iterations_are_a_small_page(tmp_path: Path, page: Page) -> None:
    """As many nodes as for ten, an update that comes, and a way to the oldest."""
    titles = tuple(f"Story number {number}" for number in range(10_000))
    night = Night(tmp_path / "shop", titles=titles)
    night.begin()
    for story in ("US-001", "US-002"):
        night.start(story)
        night.finish(story)
    multiply_iterations(night.journal, 10_000)
    with night.held(), served(night.project.root) as site:
        address = enter(page, site, width=390)
        assert page.value("document.querySelectorAll('*').length") < 2_500
        night.tell("agent_event", 10_000, kind="tool", summary="Bash make everything")
        page.until(shows("Bash make everything", "#log"))
        page.visit(f"{address}iterations?before=3", width=390)
        assert page.value("document.querySelectorAll('main li').length") == 2
        assert page.complaints == []


def test_hostile_words_do_nothing_in_a_browser(tmp_path: Path, page: Page) -> None:
    """Not when the page is loaded, and not when a part is replaced."""
    night = running(tmp_path / "shop")
    night.titles |= dict(zip(night.titles, HOSTILE, strict=False))
    night.write_stories()
    with night.held(), served(night.project.root) as site:
        address = enter(page, site, width=390)
        night.journal.put_stories(
            RUN, {"US-006": {"standing": "blocked", "reason": "\n".join(HOSTILE)}}
        )
        for words_of_it in HOSTILE:
            night.tell("agent_event", night.n, kind="text", summary=words_of_it)
        page.until(shows("<script>alert(1)</script>", "#log"))
        page.until(shows("onerror=alert(2)", "#log"))
        assert page.value("document.querySelectorAll('img, iframe, main script').length") == 0
        assert not [url for url in page.requests if not url.startswith(address)]
        assert page.complaints == []
        assert page.value("document.documentElement.scrollWidth <= innerWidth")


@pytest.fixture(scope="module")
def reviewed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A night of three that is over: honest work, a table of answers, a weakened test."""
    made = sandbox(
        tmp_path_factory.mktemp("night"),
        nights.APPEND + nights.AGENT,
        stories=nights.STORIES,
        checks=UNITTEST,
        files=nights.FILES,
    )
    assert made.run().code == 0
    return made.root


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1280, 768, 390], ids=["desktop", "tablet", "phone"])
def test_a_review_is_readable_at_every_width(
    reviewed: Path, page: Page, width: int, dark: bool
) -> None:
    """No sideways scrolling, no column of a few letters, claim beside evidence where there is room."""
    with served(reviewed) as site:
        address = enter(page, site, width=width, dark=dark)
        for end in ("review", "story?id=US-1", "story?id=US-2", "story?id=US-3"):
            page.visit(f"{address}{end}", width=width, height=844, dark=dark)
            assert page.value("document.documentElement.scrollWidth <= innerWidth"), end
            narrow = (
                "[...document.querySelectorAll('main p, main li, main code, main pre')]"
                ".filter(it => it.innerText.length > 20 && it.checkVisibility()"
                " && it.getBoundingClientRect().width < 100).map(it => it.innerText.slice(0, 40))"
            )
            assert page.value(narrow) == [], end
        sides = (
            "['.claim', '.evidence'].map(it => document.querySelector(it).getBoundingClientRect())"
        )
        beside = page.value(f"(([a, b]) => b.left >= a.right && b.top === a.top)({sides})")
        assert beside is (width >= 1024)
        assert page.complaints == []


def test_a_person_in_bed_decides_with_taps(reviewed: Path, page: Page, tmp_path: Path) -> None:
    """Sent back with words, the next one accepted, that taken back: the phone alone."""
    shutil.copytree(reviewed, tmp_path / "shop", symlinks=True)
    project = Project(tmp_path / "shop")
    with served(project.root) as site:
        address = enter(page, site, width=390, height=844)
        page.visit(f"{address}review", width=390, height=844)
        click(page, "a.main")
        page.until("!!document.getElementById('decide')")
        assert "needs review" in words(page, "main")
        click(page, "#back summary")
        page.command("Runtime.evaluate", expression="document.getElementById('why').focus()")
        page.command("Input.insertText", text="The test must ask for 0.13 as before.")
        click(page, "#back button")
        page.until("!location.search.includes('US-3') && document.readyState === 'complete'")
        assert "US-3 is open again" in words(page, "#said")
        accepted = str(page.value("new URLSearchParams(location.search).get('id')"))
        click(page, "#decide button.main")
        page.until(shows(f"{accepted} is accepted", "#said"))
        click(page, "#said button")
        page.until(shows("waits for your", "#said"))
    standing = {one.story.id: one for one in look(project).stories}
    assert not standing["US-3"].story.passes
    assert not standing[accepted].is_accepted


def test_what_cannot_be_sent_back_keeps_the_words(
    reviewed: Path, page: Page, tmp_path: Path
) -> None:
    """A run has begun meanwhile: the reason stands beside the field, and nothing has to be retyped."""
    shutil.copytree(reviewed, tmp_path / "shop", symlinks=True)
    project = Project(tmp_path / "shop")
    with served(project.root) as site:
        address = enter(page, site, width=390, height=844)
        page.visit(f"{address}story?id=US-1", width=390, height=844)
        click(page, "#back summary")
        page.command("Runtime.evaluate", expression="document.getElementById('why').focus()")
        page.command("Input.insertText", text="Half a thought")
        (project.root / "shop.py").write_text("mine = 1\n")
        click(page, "#back button")
        page.until("!!document.querySelector('#decide .error')")
        assert "shop.py" in words(page, "#decide .error")
        assert page.value("document.getElementById('why').value") == "Half a thought"
        assert page.value("document.getElementById('why').checkVisibility()")
        assert (project.root / "shop.py").read_text() == "mine = 1\n"


def test_the_link_of_a_message_opens_the_story(reviewed: Path, page: Page) -> None:
    """For a browser that was let in before; any other is told how it is let in."""
    with served(reviewed) as site:
        link = page_address(reviewed, os.environ, "US-2")
        page.visit(link, width=390, height=844)
        page.until(shows("does not know the way in"))
        enter(page, site, width=390, height=844)
        page.visit("about:blank")
        page.visit(link, width=390, height=844)
        page.until(shows("Know the rate of a country", "h1"))
        page.visit(f"{link.partition('#')[0]}#../../evil", width=390, height=844)
        page.until("location.pathname.length > 16")
        assert page.value("location.origin") == link.partition("/#")[0]


@contextmanager
def neighbour(body: str) -> Iterator[tuple[str, list[str]]]:
    """Another server of this machine, such as one an agent wrote; and what it is told."""
    heard: list[str] = []

    class Answer(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            """Serve the trap and remember who came with what."""
            heard.append(
                f"{self.path} {self.headers.get('Cookie', '')}{self.headers.get('Referer', '')}"
            )
            self.send_response(200)
            self.send_header("Content-Type", "text/html")
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, *_: object) -> None:
            """Say nothing."""

    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Answer)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/", heard
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.mark.attack
def test_a_server_beside_it_gets_neither_cookie_nor_click(night: Night, page: Page) -> None:
    """A page on another port, for which cookies and SameSite are blind: no cookie, no form, no frame."""
    with served(night.project.root) as site:
        address = enter(page, site)
        trap = (
            f"<form method=post action='{address}do'><input name=kind value=stop></form>"
            f"<iframe src='{address}'></iframe>"
        )
        with neighbour(trap) as (there, heard):
            page.visit(there)
            page.command("Runtime.evaluate", expression="document.forms[0].submit()")
            page.until(f"location.href.startsWith('{address}do')")
            assert "not sent by the page itself" in words(page, "body")
    assert [line for line in heard if "ralph" in line or urlsplit(address).path in line] == []
    assert night.requests() == []


def test_a_slow_reader_holds_nobody_up(night: Night, page: Page) -> None:
    """Windows that never read their stream cost the others nothing."""
    with served(night.project.root) as site:
        enter(page, site)
        cookie = site.enter(_one_more(night))
        with site.open("GET", "events", cookie), site.open("GET", "events", cookie):
            for number in range(5):
                night.acts(f"Edit src/{number}.py")
                page.until(shows(f"src/{number}.py", "#log"))
                time.sleep(0.1)


def _one_more(night: Night) -> str:
    argv = [*ourselves(), "serve", "--new-token"]
    done = subprocess.run(argv, cwd=night.project.root, capture_output=True, text=True, check=True)
    return done.stdout.strip()
