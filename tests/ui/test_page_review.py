"""Deciding on the page: claim, evidence and change of a story; accept, send back, undo, proposals."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralphloop.cli.shared.proposed_stories import open_proposals
from ralphloop.core.totals import spent_words
from ralphloop.journal.lock import RunLock
from ralphloop.night.look import look
from ralphloop.night.values import StoryLook
from ralphloop.project import Project
from ralphloop.text.durations import format_duration
from ralphloop.ui.page import decisions
from ralphloop.ui.page.devices import form_word
from tests.cli.test_serve import served
from tests.loop.projects import UNITTEST, Sandbox, sandbox, story
from tests.night import test_review as nights
from tests.ui.page_visits import Answered, Elements, Visits
from tests.ui.report_nights import HOSTILE

MARKUP = "</title></svg><img src=x onerror=alert(2)>"
HOSTILE_FILE = "<img src=x onerror=alert(3)>.py"
# The fourth story does and says whatever might become more than text.
AGENT = f"""
HOSTILE = {[words for words in HOSTILE if len(words) < 500]!r}
if STORY == "US-4":
    write({HOSTILE_FILE!r}, "# " + " ".join(HOSTILE).replace(chr(0), "") + "\\n")
    for words in HOSTILE:
        print(words)
        print("DOUBT: " + words)
        print("FOUND: " + words)
    done()
    sys.exit()
"""
STORIES = [*nights.STORIES, story("US-4", HOSTILE[0], acceptanceCriteria=[MARKUP, HOSTILE[0]])]
STORIES[1] = {**STORIES[1], "dependsOn": ["US-1"]}


@pytest.fixture(scope="module")
def night(tmp_path_factory: pytest.TempPathFactory) -> Sandbox:
    """Honest work, a table of answers that depends on it, a weakened test, and a hostile story."""
    place = tmp_path_factory.mktemp("night")
    agent = nights.APPEND + AGENT + nights.AGENT
    made = sandbox(place, agent, stories=STORIES, checks=UNITTEST, files=nights.FILES)
    assert made.run().code == 0
    return made


@pytest.fixture
def project(night: Sandbox, tmp_path: Path) -> Project:
    """A copy of it for one test."""
    shutil.copytree(night.root, tmp_path / "shop", symlinks=True)
    return Project(tmp_path / "shop")


@pytest.fixture
def visits(project: Project, tmp_path: Path) -> Iterator[Visits]:
    """Its page."""
    with Visits(project, tmp_path / "state") as visits:
        yield visits


def standing(project: Project, name: str) -> StoryLook:
    """How a story stands now."""
    return next(one for one in look(project).stories if one.story.id == name)


def section(page: str, name: str) -> str:
    """The words of one part of a page."""
    return " ".join(Elements(page.partition(name)[2].partition("</section>")[0]).words.split())


def text_of(answer: Answered) -> str:
    """All words of a page, on one line."""
    return " ".join(Elements(answer.text).words.split())


# --- what is shown ---------------------------------------------------------------------------


def test_the_claim_stands_beside_the_evidence(visits: Visits) -> None:
    """The agent's own words, and what was found with the lines that show it."""
    page = visits.get("story?id=US-3", visits.known()).text
    assert "I made the rounding test robust." in section(page, 'class="claim"')
    found = section(page, 'class="evidence"')
    assert "test weakened: test_total" in found
    assert "test_total as it was, on the new code → AssertionError: 0.12 != 0.13" in found
    assert page.index('class="claim"') < page.index('class="evidence"')
    assert "Its doubt: only two countries" in text_of(visits.get("story?id=US-2", visits.known()))
    assert "Found besides: total()" in text_of(visits.get("story?id=US-1", visits.known()))


def test_a_criterion_without_a_test_is_said_in_red(visits: Visits) -> None:
    """And the others have their test, before and after."""
    page = visits.get("story?id=US-1", visits.known()).text
    criteria = page.partition('class="criteria"')[2].partition("</ul>")[0]
    assert 'class="bad"' in criteria
    assert "none: no test speaks of it" in criteria
    assert "test_doubled" in criteria


def test_the_change_is_the_work_alone_tests_first_with_what_was_found(visits: Visits) -> None:
    """Our own files are named and not shown; what no test noticed stands at its line."""
    page = visits.get("story?id=US-3", visits.known()).text
    change = page.partition('class="change"')[2]
    assert change.index("tests/test_shop.py") < change.index(">shop.py<")
    assert "not shown: prd.json, progress.txt" in change
    assert 'class="found bad"' in change
    assert "weakened" in change
    words = section(page, 'class="change"')
    assert "- self.assertEqual(shop.total([0.125]), 0.13)" in words
    assert '"passes"' not in change


@pytest.mark.parametrize("name", ["US-1", "US-2", "US-3", "US-4"])
def test_no_word_of_a_terminal_is_on_it(visits: Visits, name: str) -> None:
    """Keys do nothing here."""
    page = visits.get(f"story?id={name}", visits.known())
    assert page.status == 200
    shown = text_of(page).lower()
    for word in ("enter opens", "press ", "ctrl+", "[a]ccept", "[q]uit", "pager", "ralph review"):
        assert word not in shown, word


def test_the_list_is_that_of_ralph_review(visits: Visits, night: Sandbox) -> None:
    """The same stories in the same order, and the proposed ones."""
    page = visits.get("review", visits.known())
    links = [attrs.get("href") or "" for _, attrs in Elements(page.text).found]
    told = [link.removeprefix("story?id=") for link in links if link.startswith("story?id=US")]
    printed = night.ralph("review").out
    known = sorted({"US-1", "US-2", "US-3", "US-4"}, key=printed.index)
    assert list(dict.fromkeys(told)) == known
    assert "total() knows no currency at all" in text_of(page)


def test_the_numbers_are_those_of_status_and_report(visits: Visits, night: Sandbox) -> None:
    """Stories, iterations, money and time: on the first page, in the list and in the commands."""
    cookie = visits.known()
    first, listed = text_of(visits.get("", cookie)), text_of(visits.get("review", cookie))
    status = json.loads(night.ralph("status", "--json").out)
    report = json.loads(night.ralph("report", "--json").out)
    stories = f"{status['stories']['passed']} of {status['stories']['total']} stories passed"
    assert stories in first
    assert stories in listed
    totals = report["spending"]["totals"]
    assert f"iterations{totals['iterations']} of " in first
    assert totals["iterations"] == status["session"]["iterations"]
    took = format_duration(status["run"]["active_s"])
    assert f"time{took} of " in first
    assert took in listed
    assert spent_words(status["cost_usd"], status["unpriced_starts"]) in listed
    assert f"{len(status['stories']['unreviewed'])} stories to look at" in first


def test_a_story_that_is_not_done_has_a_page_of_the_same_kind(tmp_path: Path) -> None:
    """What is asked of it, what failed, its iterations; a question can be answered there."""
    from tests.ui.monitor_nights import running

    other = running(tmp_path / "other")
    with Visits(other.project, tmp_path / "state") as visits:
        cookie = visits.known()
        asks = visits.get("story?id=US-006", cookie)
        assert "Is there a Volapük dictionary?" in text_of(asks)
        assert 'name="kind" value="answer"' in asks.text
        at_work = text_of(visits.get("story?id=US-004", cookie))
    assert "Checkout validates the address" in at_work
    assert "1 iteration on it" in at_work
    assert "Enter" not in at_work


# --- what is decided -------------------------------------------------------------------------


def test_a_story_is_accepted_and_the_next_one_comes(visits: Visits, project: Project) -> None:
    """By a form alone; the next page says so, once, and offers to take it back."""
    cookie = visits.known()
    done = visits.post("decide", cookie, kind="accept", story="US-1")
    assert (done.status, done.header("location")[:9]) == (303, "story?id=")
    assert standing(project, "US-1").is_accepted
    following = visits.get(done.header("location"), cookie)
    assert "US-1 is accepted." in text_of(following)
    assert 'value="undo"' in following.text
    assert "is accepted" not in text_of(visits.get(done.header("location"), cookie))
    back = visits.post("decide", cookie, kind="undo", story="US-1")
    assert back.header("location") == "story?id=US-1"
    assert "waits for your" in text_of(visits.get("story?id=US-1", cookie))
    assert not standing(project, "US-1").is_accepted


def test_after_the_last_one_the_list_says_so(visits: Visits, project: Project) -> None:
    """Story after story, as the answers lead."""
    cookie = visits.known()
    page = Elements(visits.get("review", cookie).text)
    links = [attrs.get("href") or "" for _, attrs in page.found]
    where, seen = next(link for link in links if link.startswith("story?id=")), []
    while where != "review":
        seen.append(where.removeprefix("story?id="))
        where = visits.post("decide", cookie, kind="accept", story=seen[-1]).header("location")
    assert sorted(seen) == ["US-1", "US-2", "US-3", "US-4"]
    assert "Nothing waits for your eyes." in text_of(visits.get("review", cookie))


def test_a_story_is_sent_back_with_the_persons_words(visits: Visits, project: Project) -> None:
    """As by the command: out of the branch, open again, and the next prompt has the words."""
    cookie = visits.known()
    why = "The test must ask for 0.13 as before."
    done = visits.post("decide", cookie, kind="send_back", story="US-3", text=why)
    assert done.status == 303
    story = standing(project, "US-3")
    assert (str(story.standing), story.story.passes) == ("open", False)
    assert [answer for answer in story.state.notes.answers if why in answer.text]
    assert "0.0001" in (project.root / "shop.py").read_text()
    following = visits.get(done.header("location"), cookie)
    assert "US-3 is open again" in text_of(following)
    assert 'value="undo"' in following.text
    back = visits.post("decide", cookie, kind="undo", story="US-3")
    assert back.header("location") == "story?id=US-3"
    assert "US-3 stands as before" in text_of(visits.get("story?id=US-3", cookie))
    assert standing(project, "US-3").grade == "needs review"
    assert "0.0001" not in (project.root / "shop.py").read_text()


def test_what_stands_on_it_is_asked_about_in_place(visits: Visits, project: Project) -> None:
    """The error beside the buttons, the words still typed; the person's choice is carried out."""
    cookie = visits.known()
    why = 'It must <b>round</b> "as before".'
    refused = visits.post("decide", cookie, kind="send_back", story="US-1", text=why)
    assert refused.status == 200
    words = section(refused.text, 'id="decide"')
    assert "cannot be taken out without what stands on it" in words
    assert why in words
    assert "<b>round</b>" not in refused.text
    choices = [
        attrs.get("value")
        for _, attrs in Elements(refused.text).found
        if attrs.get("name") == "choice"
    ]
    assert choices == ["together", "follow_up", "keep"]
    assert standing(project, "US-1").story.passes
    told = {"kind": "send_back", "story": "US-1", "text": why}
    assert visits.post("decide", cookie, **told, choice="sideways").status == 200
    assert standing(project, "US-1").story.passes
    done = visits.post("decide", cookie, **told, choice="together")
    assert done.status == 303
    assert not standing(project, "US-1").story.passes
    assert not standing(project, "US-2").story.passes


def test_a_script_gets_the_same_in_pieces(visits: Visits) -> None:
    """Where to go on, or the buttons anew with the error and the words."""
    cookie = visits.known()
    asked = [("accept", "application/json")]
    body = f"word={form_word(cookie)}&kind=send_back&story=US-1&text=It+rounds+wrong".encode()
    found = json.loads(visits.send("decide", cookie, body, asked).text)
    assert found["done"] is False
    assert "It rounds wrong" in found["html"]
    assert 'role="alert"' in found["html"]
    body = f"word={form_word(cookie)}&kind=accept&story=US-1".encode()
    found = json.loads(visits.send("decide", cookie, body, asked).text)
    assert found["done"] is True
    assert found["go"].startswith("story?id=")


def test_a_run_that_holds_the_project_is_said_and_nothing_is_lost(
    visits: Visits, project: Project
) -> None:
    """The buttons go while it lasts; what was sent meanwhile is refused in place, words kept."""
    cookie = visits.known()
    with RunLock(project.directory, run="r-other", now=time.time()):
        page = visits.get("story?id=US-3", cookie)
        assert "decide when it has ended" in text_of(page)
        assert 'value="accept"' not in page.text
        for kind in ("accept", "send_back"):
            found = visits.post("decide", cookie, kind=kind, story="US-3", text="Round it again.")
            assert found.status == 200
            assert 'role="alert"' in found.text
        assert not standing(project, "US-3").is_accepted
    assert visits.post("decide", cookie, kind="accept", story="US-3").status == 303


def test_what_takes_long_is_on_its_way_and_told_in_the_end(
    visits: Visits, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The page looks again by itself, also without a script, and a second tap does nothing twice."""
    monkeypatch.setattr(decisions, "_PATIENCE_S", 0.0)
    cookie = visits.known()
    told = {"kind": "send_back", "story": "US-3", "text": "As before, please."}
    first = visits.post("decide", cookie, **told)
    assert first.status == 200
    assert "On its way" in text_of(first)
    assert 'http-equiv="refresh"' in first.text
    assert "On its way" in text_of(visits.post("decide", cookie, **told))
    found = visits.get("story?id=US-3", cookie)
    while found.status == 200:
        assert "On its way" in text_of(found)
        time.sleep(0.05)
        found = visits.get("story?id=US-3", cookie)
    assert found.status == 303
    assert "US-3 is open again" in text_of(visits.get(found.header("location"), cookie))


def test_proposed_stories_are_taken_or_dropped(visits: Visits, project: Project) -> None:
    """One becomes a story with what the person wants to see, another is gone."""
    cookie = visits.known()
    first, second, *_ = open_proposals(project)
    seen = "total([1], 'EUR') says EUR"
    done = visits.post("decide", cookie, kind="take_proposal", proposal=first.id, text=seen)
    assert done.header("location") == "review"
    assert "was added to the list" in text_of(visits.get("review", cookie))
    stories = json.loads((project.root / "prd.json").read_text())["userStories"]
    assert stories[-1]["acceptanceCriteria"] == [seen]
    visits.post("decide", cookie, kind="drop_proposal", proposal=second.id)
    left = {one.id for one in open_proposals(project)}
    assert not left & {first.id, second.id}
    again = visits.post("decide", cookie, kind="drop_proposal", proposal=second.id)
    assert again.status == 303
    assert "Nothing that waits is called" in text_of(visits.get("review", cookie))


def test_a_note_is_about_its_story(visits: Visits, project: Project) -> None:
    """It is kept for the prompts to come, and the page comes back to the story."""
    cookie = visits.known()
    done = visits.post("do", cookie, kind="note", about="US-2", text="Ask the tax office.")
    assert done.header("location") == "story?id=US-2"
    from ralphloop.journal.queries import NOTES_KEY, JournalReader

    with JournalReader.open(project.journal) as journal:
        assert journal.meta(NOTES_KEY) == ["About US-2: Ask the tax office."]


# --- who may not -----------------------------------------------------------------------------


@pytest.mark.attack
@pytest.mark.parametrize("kind", ["", "reject", "__class__", "stop"])
def test_only_decisions_can_be_made_there(visits: Visits, project: Project, kind: str) -> None:
    """A form made by hand asks for nothing else."""
    assert visits.post("decide", visits.known(), kind=kind, story="US-1").status == 400
    assert visits.get("decide", visits.known()).status == 405


@pytest.mark.attack
def test_nobody_decides_without_cookie_word_and_origin(visits: Visits, project: Project) -> None:
    """CSRF, forged devices, foreign origins, and a page that only shows."""
    cookie, other = visits.known(), visits.known()
    body = f"word={form_word(cookie)}&kind=accept&story=US-1".encode()
    statuses = [
        visits.post("decide", kind="accept", story="US-1").status,
        visits.post("decide", "forged", kind="accept", story="US-1").status,
        visits.send("decide", cookie, b"kind=accept&story=US-1").status,
        visits.send("decide", other, body).status,
        visits.send("decide", cookie, body, [("origin", "https://evil.example")]).status,
        visits.send("decide", cookie, body, [("sec-fetch-site", "cross-site")]).status,
    ]
    assert statuses == [401, 401, 403, 403, 403, 403]
    assert not standing(project, "US-1").is_accepted


@pytest.mark.attack
def test_a_page_that_only_shows_decides_nothing(project: Project, tmp_path: Path) -> None:
    """It has no form, and takes none."""
    with Visits(project, tmp_path / "state", read_only=True) as visits:
        cookie = visits.known()
        for at in ("review", "story?id=US-3"):
            assert not Elements(visits.get(at, cookie).text).tags & {"form", "button", "textarea"}
        assert visits.post("decide", cookie, kind="accept", story="US-3").status == 403
    assert not standing(project, "US-3").is_accepted


@pytest.mark.attack
def test_hostile_titles_words_and_diffs_are_text(visits: Visits, project: Project) -> None:
    """Of a story, its agent, its files and its criteria: no element, attribute or address of theirs."""
    cookie = visits.known()
    refused = visits.post("decide", cookie, kind="send_back", story="US-1", text=MARKUP)
    pages = [visits.get(at, cookie) for at in ("", "review", "story?id=US-4", "story?id=US-1")]
    for page in (*pages, refused):
        found = Elements(page.text)
        assert page.status == 200
        assert not found.tags & {"img", "iframe", "object", "embed", "style", "svg", "b-"}
        scripts = [attrs for tag, attrs in found.found if tag == "script"]
        assert scripts == [{"src": "page.js", "defer": None}]
        names = {name for _, attrs in found.found for name in attrs}
        assert not [name for name in names if name.startswith("on")]
        links = [attrs["href"] or "" for _, attrs in found.found if "href" in attrs]
        assert not [link for link in links if ":" in link or link.startswith("//")]
        assert not set("\x1b\x00\u202e") & set(page.text)
    shown = Elements(pages[2].text).words
    assert HOSTILE_FILE in shown
    assert "<script>alert(1)</script>" in shown


@pytest.mark.attack
def test_secrets_in_a_change_are_not_shown(night: Sandbox, tmp_path: Path) -> None:
    """Nor in the words of an agent: what this machine's variables hold stands nowhere."""
    shutil.copytree(night.root, tmp_path / "shop", symlinks=True)
    with Visits(
        Project(tmp_path / "shop"), tmp_path / "state", secrets=["rounding test"]
    ) as visits:
        page = visits.get("story?id=US-3", visits.known()).text
    assert "rounding test" not in page


def test_the_real_server_takes_a_decision(project: Project) -> None:
    """Through the front door: command, socket, form, journal."""
    with served(project.root, "--port", "0") as page:
        cookie = page.enter()
        shown = page.ask("GET", "story?id=US-2", cookie).text
        word = shown.partition('name="word" value="')[2].partition('"')[0]
        done = page.ask("POST", "decide", cookie, word=word, kind="accept", story="US-2")
        assert done.status == 303
    assert standing(project, "US-2").is_accepted
