"""Whoever wants to look at or steer a run through its page without being let in."""

from __future__ import annotations

import hmac
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ralphloop.ui.page import devices, guard, live
from tests.ui.monitor_nights import RUN, Night, running
from tests.ui.page_visits import HOST, ORIGIN, Elements, Visits
from tests.ui.report_nights import HOSTILE

pytestmark = pytest.mark.attack

SECRET = "sk-ant-api03-" + "Zq7Xw2Lk9Pv4Rt6Yb8Nm1" * 4
ADDRESSES = ["", "events", "stories", "story?id=US-001", "iterations", "iteration?n=1"]


@pytest.fixture
def night(tmp_path: Path) -> Iterator[Night]:
    """An agent works on the fourth story; nobody answers what is asked of the run."""
    night = running(tmp_path / "shop")
    with night.held():
        yield night


@pytest.fixture
def visits(night: Night, tmp_path: Path) -> Iterator[Visits]:
    """Its page."""
    with Visits(night.project, tmp_path / "state") as visits:
        yield visits


def read_only(night: Night, tmp_path: Path) -> Visits:
    """The same page, started to show only."""
    return Visits(night.project, tmp_path / "state", read_only=True)


def told_nothing(text: str) -> bool:
    """Nothing of the project is in an answer."""
    return not any(word in text for word in ("US-0", "Checkout", "shop", RUN, "Volap"))


@pytest.mark.parametrize(
    "hosts",
    [
        ["evil.example"],
        ["evil.example:8400"],
        ["127.0.0.1.evil.example:8400"],
        ["localhost.evil.example"],
        ["evil.example@127.0.0.1:8400"],
        ["127.0.0.1:8400", "evil.example"],
        ["127.0.0.1:8400/../"],
        [""],
        [],
    ],
)
def test_a_foreign_name_that_leads_here_gets_nothing(visits: Visits, hosts: list[str]) -> None:
    """DNS rebinding: the browser brings the cookie, the name is somebody else's."""
    found = visits.get("", visits.known(), hosts=hosts)
    assert (found.status, told_nothing(found.text)) == (421, True)


@pytest.mark.parametrize("host", [HOST, "localhost:9000", "[::1]:8400", "192.168.1.7:8400"])
def test_addresses_and_tunnels_are_no_foreign_names(visits: Visits, host: str) -> None:
    """Another port at the near end of a tunnel is fine, and so is any plain address."""
    assert visits.get("", visits.known(), hosts=[host]).status == 200


def test_a_name_is_allowed_by_name(night: Night, tmp_path: Path) -> None:
    """Behind a proxy of one's own, and with its scheme as origin."""
    named = "here.tailnet.ts.net"
    with Visits(night.project, tmp_path / "state", names=[named]) as visits:
        cookie = visits.known()
        assert visits.get("", cookie, hosts=[named]).status == 200
        assert visits.get("", cookie, hosts=["other.ts.net"]).status == 421


@pytest.mark.parametrize(
    "origin",
    ["https://evil.example", "null", "", "http://127.0.0.1:3000", "http://localhost:8400"],
)
def test_a_form_of_another_page_is_refused(visits: Visits, night: Night, origin: str) -> None:
    """Also of another port of this machine, for which cookies and SameSite are blind."""
    cookie = visits.known()
    body = f"word={devices.form_word(cookie)}&kind=pause".encode()
    found = visits.send("do", cookie, body, [("origin", origin)])
    assert (found.status, night.requests()) == (403, [])


@pytest.mark.parametrize("site", ["cross-site", "same-site", "none"])
def test_the_browsers_own_word_about_the_sender_counts(
    visits: Visits, night: Night, site: str
) -> None:
    """Where it says so, it has to be the page itself."""
    cookie = visits.known()
    body = f"word={devices.form_word(cookie)}&kind=pause".encode()
    found = visits.send("do", cookie, body, [("sec-fetch-site", site)])
    assert (found.status, night.requests()) == (403, [])


def test_a_form_without_its_word_is_refused(visits: Visits, night: Night) -> None:
    """CSRF: none, an empty one, that of another device."""
    cookie, other = visits.known(), visits.known()
    for word in ("", "word=", "word=x", f"word={devices.form_word(other)}"):
        found = visits.send("do", cookie, f"{word}&kind=stop".encode())
        assert (found.status, night.requests()) == (403, [])


@pytest.mark.parametrize("address", ADDRESSES)
def test_without_a_cookie_nothing_is_told(visits: Visits, address: str) -> None:
    """None, an invented one, one with odd bytes, the digest that is kept instead of it."""
    visits.known()
    for cookie in ("", "x" * 43, "\xff\x00;=", visits.devices.kept.devices[0].digest):
        found = visits.get(address, cookie)
        assert (found.status, told_nothing(found.text)) == (401, True), cookie


def test_nothing_is_asked_without_a_cookie(visits: Visits, night: Night) -> None:
    """Not even with a word made from nothing."""
    for cookie in ("", "forged"):
        assert visits.post("do", cookie, kind="stop").status == 401
    assert night.requests() == []


def test_a_cookie_set_by_another_server_of_this_machine_locks_nobody_out(visits: Visits) -> None:
    """Cookies know no ports: ours is found among others of its name."""
    tossed = [("cookie", "ralph=tossed; other=1")]
    assert visits.get("", visits.known(), headers=tossed).status == 200


def test_the_cookie_is_for_this_page_alone(visits: Visits) -> None:
    """HttpOnly, SameSite=Strict, and below a path that nobody can guess."""
    found = visits.post("enter", token=visits.devices.issue_ticket())
    parts = [part.strip().lower() for part in found.header("set-cookie").split(";")]
    assert {"httponly", "samesite=strict", f"path=/{visits.path.lower()}/"} <= set(parts)
    assert len(visits.path) >= 16


@pytest.mark.parametrize("path", ["/door.js", "/page.css", "/icon.svg", "/"])
def test_what_stands_before_the_path_tells_nothing(visits: Visits, path: str) -> None:
    """The same for everybody, no way in, and not under a foreign name."""
    stranger = visits.get("", path=path)
    assert (stranger.status, told_nothing(stranger.text)) == (200, True)
    assert visits.path not in stranger.text
    assert visits.get("", visits.known(), path=path).body == stranger.body
    assert visits.get("", path=path, hosts=["evil.example"]).status == 421
    assert visits.ask("POST", "", path=path).status == 404


@pytest.mark.parametrize("path", ["/wrong/", "//", "/favicon.ico", "/.well-known/x"])
def test_nobody_finds_the_page_without_its_path(visits: Visits, path: str) -> None:
    """Not with a known cookie either."""
    assert visits.get("", visits.known(), path=path).status == 404


def test_an_address_lets_one_device_in_once(visits: Visits) -> None:
    """A second use is refused; so is one that is too old, or invented."""
    ticket = visits.devices.issue_ticket()
    assert visits.post("enter", token=ticket).status == 303
    assert visits.post("enter", token=ticket).status == 401
    old = visits.devices.issue_ticket()
    visits.hours.now += devices.TICKET_S + 1
    for token in (old, "", "x", "\udcff" * 3):
        assert visits.post("enter", token=token.encode("utf-8", "replace").decode()).status == 401


def test_looking_at_the_address_uses_nothing_up(visits: Visits) -> None:
    """A messenger that fetches a preview neither comes in nor locks the person out."""
    ticket = visits.devices.issue_ticket()
    for _ in range(3):
        found = visits.get(f"?token={ticket}")
        assert (found.status, found.header("set-cookie")) == (200, "")
        assert "US-0" not in found.text
    assert visits.post("enter", token=ticket).status == 303


def test_a_foreign_page_lets_nobody_in(visits: Visits) -> None:
    """A form that brings a token from elsewhere is refused before it is looked at."""
    ticket = visits.devices.issue_ticket()
    body = f"token={ticket}".encode()
    assert visits.send("enter", "", body, [("origin", "https://evil.example")]).status == 403
    assert visits.post("enter", token=ticket).status == 303


def test_a_device_is_forgotten_by_wish_and_by_time(visits: Visits) -> None:
    """From another process, too; open windows end."""
    cookie = visits.known()
    with visits.stream(cookie) as stream:
        stream.parts()
        elsewhere = devices.Devices(visits.project.root, {}, visits.hours)
        elsewhere._file = visits.devices._file
        assert elsewhere.forget() == 1
        assert visits.get("", cookie).status == 401
    cookie = visits.known()
    visits.hours.now += devices.DEVICE_S + 1
    assert visits.get("", cookie).status == 401


def test_what_is_kept_opens_nothing(visits: Visits, tmp_path: Path) -> None:
    """The file holds digests, for its owner alone; a broken one lets nobody in."""
    cookie, ticket = visits.known(), visits.devices.issue_ticket()
    (file,) = (tmp_path / "state" / "ralph" / "page").glob("*.json")
    text = file.read_text()
    assert cookie not in text
    assert ticket not in text
    assert (tmp_path / "state" / "ralph").stat().st_mode & 0o077 == 0
    file.write_text("{")
    assert visits.get("", cookie).status == 404


def test_words_are_compared_in_constant_time(
    visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each with all that are known, also behind the one that fits."""
    cookies = [visits.known() for _ in range(5)]
    compared: list[object] = []
    real = hmac.compare_digest

    def counting(one: Any, other: Any) -> bool:
        compared.append(one)
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", counting)
    for cookie in (cookies[0], cookies[-1], "wrong"):
        compared.clear()
        visits.devices.known([cookie])
        assert len(compared) == 5
    compared.clear()
    visits.post("do", cookies[0], kind="nothing")
    assert len(compared) == 1 + 5 + 1  # the path, the cookie, the form's word


def test_nothing_of_a_story_or_an_agent_is_more_than_text(night: Night, visits: Visits) -> None:
    """Titles, questions, log lines and final words: no element, no attribute, no address of theirs."""
    cookie = visits.known()
    addresses = ("", "stories", "story?id=US-006", "iteration?n=5", "iterations")
    allowed = set().union(*(Elements(visits.get(at, cookie).text).tags for at in addresses))
    night.titles |= dict(zip(night.titles, HOSTILE, strict=False))
    night.write_stories()
    asks = {"standing": "blocked", "reason": "\n".join(HOSTILE)}
    night.journal.put_stories(RUN, {"US-006": asks, "US-<b>": asks})
    for words in HOSTILE:
        night.tell("agent_event", night.n, kind="text", summary=words)
    for address in addresses:
        found = visits.get(address, cookie)
        seen = Elements(found.text)
        assert found.status == 200
        assert seen.tags <= allowed - {"img", "iframe", "object", "embed", "style"}
        scripts = [attrs for tag, attrs in seen.found if tag == "script"]
        assert scripts == [{"src": "page.js", "defer": None}]
        names = {name for _, attrs in seen.found for name in attrs}
        assert not [name for name in names if name.startswith("on")]
        links = [attrs["href"] or "" for _, attrs in seen.found if "href" in attrs]
        assert not [link for link in links if ":" in link or link.startswith("//")]
        assert not set("\x1b\x00\u202e") & set(found.text)
    assert "<script>alert(1)</script>" in Elements(visits.get("", cookie).text).words


def test_secrets_are_not_shown(night: Night, tmp_path: Path) -> None:
    """Neither those of a known kind nor the values of this machine's variables."""
    words = f"use {SECRET} and hunter2-of-the-environment"
    state = {"standing": "blocked", "reason": words}
    night.journal.put_stories(RUN, {"US-006": state})
    night.tell("agent_event", night.n, kind="text", summary=words)
    known = ["hunter2-of-the-environment"]
    with Visits(night.project, tmp_path / "state", secrets=known) as visits:
        cookie = visits.known()
        texts = [visits.get(at, cookie).text for at in ("", "stories", "story?id=US-006")]
        with visits.stream(cookie) as stream:
            texts += stream.parts().values()
    assert not [text for text in texts if SECRET in text or known[0] in text]
    assert "use " in texts[0]


def test_a_page_that_only_shows_steers_nothing(night: Night, tmp_path: Path) -> None:
    """It has no form, and takes none that is made by hand."""
    with read_only(night, tmp_path) as visits:
        cookie = visits.known()
        page = Elements(visits.get("", cookie).text)
        assert not page.tags & {"form", "button", "textarea"}
        for kind in ("stop", "pause", "answer", "note", "retry", "skip"):
            assert visits.post("do", cookie, kind=kind, story="US-006", text="x").status == 403
        assert visits.post("enter", token=visits.devices.issue_ticket()).status == 303
    assert night.requests() == []


def test_a_form_has_a_size(visits: Visits, night: Night, monkeypatch: pytest.MonkeyPatch) -> None:
    """What is announced, what comes in pieces, what has many fields, what never ends."""
    cookie = visits.known()
    word = devices.form_word(cookie)
    much = b"x" * (guard.LARGEST_BODY + 1)
    whole = f"word={word}&kind=note&text=".encode() + much
    headers = [("origin", ORIGIN), ("content-type", "application/x-www-form-urlencoded")]
    fields = f"word={word}&kind=note" + "&a=1" * 50
    monkeypatch.setattr(guard, "_BODY_S", 0.2)
    slow = visits.ask("POST", "do", cookie, headers=headers, chunks=[])
    statuses = [
        visits.send("do", cookie, whole).status,
        visits.send("do", cookie, b"", [("content-length", "999999999")]).status,
        visits.send("do", cookie, b"", [("content-length", "many")]).status,
        visits.ask("POST", "do", cookie, headers=headers, chunks=[whole[:9], much]).status,
        visits.send("do", cookie, fields.encode()).status,
        slow.status,
    ]
    assert (statuses, night.requests()) == ([413] * 6, [])
    other = [("content-type", "application/json")]
    assert visits.send("do", cookie, b"{}", other).status == 415


@pytest.mark.parametrize(
    "address",
    [
        "../../../etc/passwd",
        "page.css/../../../../pyproject.toml",
        "..%2f..%2f.ralph/journal.db",
        "page.js/",
        "%2e%2e/",
        ".ralph/journal.db",
        "story?id=../../prd.json",
        "static/page.css",
    ],
)
def test_no_address_leads_to_a_file(visits: Visits, address: str) -> None:
    """Only the few that the page has are known."""
    assert visits.get(address, visits.known()).status == 404


def test_windows_are_bounded_and_the_newest_is_live(
    visits: Visits, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of one device the oldest ends, which may be that of a phone long gone; of all, the next."""
    monkeypatch.setattr(live, "MOST_STREAMS", live.MOST_OF_ONE + 1)
    cookie, other = visits.known(), visits.known()
    windows = [visits.stream(cookie) for _ in range(live.MOST_OF_ONE + 1)]
    streams = [window.__enter__() for window in windows[:-1]]
    assert [stream.next()[0] for stream in streams] == ["parts"] * live.MOST_OF_ONE
    assert windows[-1].__enter__().next()[0] == "parts"
    assert streams[0].next() == ("full", [])
    with visits.stream(other) as last, visits.stream(visits.known()) as too_many:
        assert last.next()[0] == "parts"
        assert too_many.next() == ("full", [])
    for window in windows:
        window.__exit__(None, None, None)
    with visits.stream(visits.known()) as again:
        assert again.next()[0] == "parts"


def test_strangers_are_slowed_down_and_nobody_else(visits: Visits) -> None:
    """Guessing is bounded, and does not keep a known device out."""
    cookie = visits.known()
    statuses = [visits.get("", "guess").status for _ in range(40)]
    assert statuses[0] == 401
    assert statuses[-1] == 429
    assert visits.get("", "", path="/wrong/").status == 429
    assert visits.get("", cookie).status == 200
    mine = [visits.get("", cookie).status for _ in range(120)]
    assert 429 in mine


@pytest.mark.parametrize("kind", ["budget", "reset_circuit", "set_aside", "", "__class__"])
def test_only_what_the_page_offers_can_be_asked(visits: Visits, night: Night, kind: str) -> None:
    """A form made by hand asks for nothing else."""
    found = visits.post("do", visits.known(), kind=kind, story="US-006", text="5")
    assert (found.status, night.requests()) == (400, [])


@pytest.mark.parametrize("method", ["PUT", "DELETE", "OPTIONS", "TRACE", "PATCH"])
def test_other_methods_do_nothing(visits: Visits, method: str) -> None:
    """Also no answer to a question about what others may ask."""
    found = visits.ask(method, "", visits.known())
    assert found.status == 405
    assert not found.header("access-control-allow-origin")


def test_every_answer_forbids_what_the_page_does_not_need(visits: Visits) -> None:
    """Also a refusal: no foreign script, no frame, no copy, no address told to others."""
    cookie = visits.known()
    answers = [
        visits.get("", cookie),
        visits.get("page.js"),
        visits.get("", "forged"),
        visits.get("nowhere", cookie),
        visits.get("", cookie, hosts=["evil.example"]),
        visits.post("do", "", kind="stop"),
    ]
    for found in answers:
        policy = found.header("content-security-policy")
        assert "default-src 'none'" in policy
        assert "frame-ancestors 'none'" in policy
        assert "unsafe" not in policy
        assert found.header("x-frame-options") == "DENY"
        assert found.header("cache-control") == "no-store"
        assert found.header("referrer-policy") == "same-origin"
        assert found.header("x-content-type-options") == "nosniff"
        assert not found.header("access-control-allow-origin")
