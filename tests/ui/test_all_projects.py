"""The page of all projects: what runs, what waits, and the way to each; and who may see it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from ralphloop.core.proposals import Proposal
from ralphloop.journal.known_projects import remember_project
from ralphloop.journal.queries import PROPOSAL_KEY
from ralphloop.night.every_project import key_of
from tests.cli.test_serve import served
from tests.conftest import RunRalph
from tests.ui.monitor_nights import Night, finished, running
from tests.ui.page_visits import AllVisits, Elements, Visits
from tests.ui.report_nights import HOSTILE


@pytest.fixture
def state(tmp_path: Path) -> Path:
    """A state directory of its own."""
    return tmp_path / "state"


def known(night: Night, state: Path, at: float = 1.0) -> str:
    """Make a project known as a run of it would; its key."""
    remember_project(night.project.root, {"XDG_STATE_HOME": str(state)}, at)
    return key_of(night.project.root)


@pytest.fixture
def shop(tmp_path: Path, state: Path) -> Iterator[Night]:
    """An agent works here, and a story waits for an answer."""
    night = running(tmp_path / "shop")
    known(night, state)
    with night.held():
        yield night


@pytest.fixture
def bank(tmp_path: Path, state: Path) -> Night:
    """Its night is over."""
    night = finished(tmp_path / "bank")
    known(night, state, 2.0)
    return night


def cards(page: str) -> list[str]:
    """What each project's card says, in their order."""
    parts = page.split('<article class="project"')[1:]
    return [" ".join(Elements(f"<article {part}").words.split()) for part in parts]


def test_every_project_with_a_run_is_on_one_screen(shop: Night, bank: Night, state: Path) -> None:
    """What runs, what waits for a person, the numbers of the night, and a link to each."""
    with AllVisits(state) as visits:
        page = visits.get("", visits.known()).text
    by_name = {"shop" if "shop" in card else "bank": card for card in cards(page)}
    for told in ("running", "1 question for you", "3 of 8 stories passed", "$1.68 of $10.00"):
        assert told in by_name["shop"]
    assert "at US-004 for" in by_name["shop"]
    assert "2 projects · 1 running" in " ".join(Elements(page).words.split())
    links = {attrs.get("href") for tag, attrs in Elements(page).found if tag == "a"}
    assert {f"p/{key_of(one.project.root)}/" for one in (shop, bank)} <= links


def test_what_waits_for_a_person_comes_first(tmp_path: Path, state: Path) -> None:
    """Before what runs, before what is merely newer."""
    idle = Night(tmp_path / "idle")
    idle.begin()
    idle.end("interrupted", "stopped by a person")
    known(idle, state)
    found = Night(tmp_path / "found")
    found.begin()
    found.end("interrupted", "stopped by a person")
    found.journal.set_meta(
        PROPOSAL_KEY.format("F-1"), Proposal(id="F-1", text="The login page leaks names")
    )
    known(found, state)
    busy = Night(tmp_path / "busy")
    busy.begin()
    busy.start("US-001")
    known(busy, state)
    with busy.held(), AllVisits(state) as visits:
        told = cards(visits.get("", visits.known()).text)
    assert [card.split(">")[-1].split()[0] for card in told] == ["found", "busy", "idle"]
    assert "1 proposed" in told[0]


def test_the_numbers_are_those_of_status(
    shop: Night, bank: Night, state: Path, run_ralph: RunRalph
) -> None:
    """Stories, money, iterations: the same in the card, on the project's page and in the command."""
    with AllVisits(state) as visits:
        cookie = visits.known()
        told = cards(visits.get("", cookie).text)
        for night in (shop, bank):
            status = json.loads(run_ralph("status", "--json", cwd=night.project.root).stdout)
            (card,) = [one for one in told if night.project.root.name in one]
            page = Elements(visits.get(f"p/{key_of(night.project.root)}/", cookie).text).words
            stories = status["stories"]
            passed = f"{stories['passed']} of {stories['total']} stories passed"
            cost = f"${status['cost_usd']:.2f}"
            iterations = f"{status['session']['iterations']} iterations"
            assert passed in card, card
            assert passed in " ".join(page.split())
            assert cost in card
            assert cost in page
            assert iterations in card


def test_a_projects_page_is_whole_below_it(shop: Night, bank: Night, state: Path) -> None:
    """Its stories, its iterations, its stream and its buttons; and a way back to all."""
    at = f"p/{key_of(shop.project.root)}/"
    with AllVisits(state) as visits:
        cookie = visits.known()
        page = visits.get(at, cookie)
        assert "Checkout validates the address" in page.text
        assert 'href="../../"' in page.text
        for end in ("stories", "story?id=US-006", "iterations", "iteration?n=1", "page.css"):
            assert visits.get(f"{at}{end}", cookie).status == 200, end
        assert visits.post(f"{at}do", cookie, kind="note", text="use v2").status == 303
        assert visits.get("p/0123456789ab/", cookie).status == 404
        assert visits.get("p/..%2f/", cookie).status == 404
    assert shop.requests() == [("note", {"text": "use v2"})]
    assert bank.requests() == []


def test_a_change_is_sent_by_itself(shop: Night, state: Path) -> None:
    """A story that passes in a project changes the card of all."""
    with AllVisits(state) as visits, visits.stream(visits.known()) as stream:
        assert "3 of 8" in stream.parts()["projects"]
        shop.finish("US-004", passed=True, state={"standing": "passed", "grade": "verified"})
        while "4 of 8" not in stream.parts().get("projects", ""):
            pass


def test_projects_that_are_gone_or_broken_hide_nobody(
    shop: Night, bank: Night, tmp_path: Path, state: Path
) -> None:
    """One was removed, one has an unreadable journal, one is as it was."""
    gone = finished(tmp_path / "gone")
    known(gone, state)
    gone.journal.close()
    shutil.rmtree(gone.project.root)
    bank.journal.close()
    bank.project.journal.write_bytes(b"not a journal" * 100)
    with AllVisits(state) as visits:
        told = cards(visits.get("", visits.known()).text)
    assert len(told) == 2
    assert [card for card in told if "bank" in card and "journal unreadable" in card]
    assert [card for card in told if "shop" in card and "running" in card]


def test_nothing_known_says_how_to_begin(state: Path) -> None:
    """No project, no error."""
    with AllVisits(state) as visits:
        assert "once a run was started in it" in visits.get("", visits.known()).text


@pytest.mark.attack
def test_who_was_let_in_to_one_project_is_a_stranger_to_all(
    shop: Night, bank: Night, state: Path
) -> None:
    """And the other way round: neither cookie nor ticket of the one page opens the other."""
    env = {"XDG_STATE_HOME": str(state)}
    with AllVisits(state) as every, Visits(shop.project, state) as one:
        assert every.env == one.env == env
        assert every.path != one.path
        of_one, of_all = one.known(), every.known()
        assert every.get("", of_one).status == 401
        assert every.get(f"p/{key_of(bank.project.root)}/", of_one).status == 401
        assert one.get("", of_all).status == 401
        assert every.post("enter", token=one.devices.issue_ticket()).status == 401
        assert one.post("enter", token=every.devices.issue_ticket()).status == 401
        assert one.get(f"p/{key_of(bank.project.root)}/", of_one).status == 404


@pytest.mark.attack
def test_a_page_below_it_asks_for_the_same_as_alone(shop: Night, state: Path) -> None:
    """Cookie, form word and origin are asked for there, too."""
    at = f"p/{key_of(shop.project.root)}/"
    with AllVisits(state) as visits:
        cookie = visits.known()
        for end in ("", "events", "stories", "story?id=US-001", "iteration?n=1"):
            assert visits.get(f"{at}{end}").status == 401
        assert visits.send(f"{at}do", cookie, b"word=x&kind=stop").status == 403
        evil = [("origin", "https://evil.example")]
        assert visits.send(f"{at}do", cookie, b"kind=stop", evil).status == 403
    with AllVisits(state, read_only=True) as visits:
        assert visits.post(f"{at}do", visits.known(), kind="stop").status == 403
    assert shop.requests() == []


@pytest.mark.attack
def test_hostile_names_are_text(tmp_path: Path, state: Path) -> None:
    """A directory and a branch may be called anything."""
    for number, words in enumerate(HOSTILE):
        name = words.replace("/", "_").replace("\0", "")[:80]
        night = Night(tmp_path / f"{number}{name}")
        night.begin()
        night.start("US-001")
        known(night, state)
    with AllVisits(state) as visits:
        found = Elements(visits.get("", visits.known()).text)
    assert not found.tags & {"img", "iframe", "object", "embed", "style", "svg"}
    assert [attrs for tag, attrs in found.found if tag == "script"] == [
        {"src": "page.js", "defer": None}
    ]
    names = {name for _, attrs in found.found for name in attrs}
    assert not [name for name in names if name.startswith("on")]


def test_the_command_serves_all_from_anywhere(
    shop: Night, bank: Night, state: Path, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """A directory that is no project; the token is one for the user."""
    (tmp_path / "elsewhere").mkdir()
    env = {"XDG_STATE_HOME": str(state)}
    with served(tmp_path / "elsewhere", "--all", "--port", "0", env=env) as page:
        cookie = page.enter()
        assert page.ask("GET", cookie=cookie).text.count('class="project"') == 2
        more = run_ralph("serve", "--all", "--new-token", cwd=tmp_path, env=env)
        assert page.enter(more.stdout.strip())
        gone = run_ralph("serve", "--all", "--revoke", cwd=tmp_path, env=env)
        assert gone.stdout == "2 devices forgotten.\n"
        assert page.ask("GET", cookie=cookie).status == 401
