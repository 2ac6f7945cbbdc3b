"""The real gh against a scripted GitHub: what `ralph pr` and the reading of issues really send.

gh speaks plain HTTP to a unix socket where its configuration names one, whatever the host is
called; so nothing leaves this machine, and what is asked is exactly what github.com would be.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from ralphloop.repo.git import Git
from ralphloop.repo.github import issues_as_text
from tests.github.hub import REPO, GitHub, Shop, pull

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.tool("gh"),
]


@pytest.fixture
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHub]:
    """A GitHub of our own."""
    with GitHub(tmp_path_factory.mktemp("h")) as server:
        yield server
        server.shutdown()


@pytest.fixture
def shop(tmp_path: Path, hub: GitHub) -> Shop:
    """A night whose remote is there, with the real gh."""
    made = Shop(tmp_path).night()
    (made.gh.place / "gh").unlink()
    made.box.env |= hub.env
    return made


def test_a_pull_request_is_opened_and_brought_up_to_date(shop: Shop, hub: GitHub) -> None:
    """Opened once, updated afterwards, turned into a draft when asked; the token is seen nowhere."""
    done = shop.box.ralph("pr")
    assert done.code == 0, done.text
    assert done.out == "https://github.com/owner/shop/pull/7\n"
    assert hub.pulls[0]["draft"] is False
    assert "proved by its verify command (red before, green after)" in hub.pulls[0]["body"]
    hub.pulls[0]["body"] += "\nThanks!"
    again = shop.box.ralph("pr", "--draft", "--title", "Mine")
    assert again.code == 0, again.text
    assert "updated: draft #7" in again.err
    (only,) = hub.pulls
    assert (only["draft"], only["title"]) == (True, "Mine")
    assert only["body"].endswith("<!-- ralph: end of report -->\nThanks!")
    assert hub.token not in done.text + again.text
    assert hub.asked[:3] == [
        f"GET /{REPO}",
        f"GET /{REPO}/pulls?direction=desc&head=owner%3Awork&sort=created&state=all",
        f"POST /{REPO}/pulls",
    ]


def test_somebody_closed_it(shop: Shop, hub: GitHub) -> None:
    """It stays closed, nothing is pushed."""
    hub.pulls.append(pull(state="closed"))
    done = shop.box.ralph("pr")
    assert (done.code, "#7 of this branch was closed by somebody" in done.err) == (66, True), (
        done.text
    )
    assert "work" not in shop.heads()


def test_no_permission_a_wrong_login_and_no_network(shop: Shop, hub: GitHub) -> None:
    """What the real gh prints on such days is understood."""
    hub.refusal = 403, {"message": "Resource not accessible by personal access token"}
    done = shop.box.ralph("pr")
    assert (done.code, "may not do that in owner/shop: Resource not" in done.err) == (69, True)
    assert "work is pushed" in done.err
    hub.refusal = (
        422,
        {"message": "Validation Failed", "errors": [{"message": "No commits between"}]},
    )
    assert "GitHub refused: Validation Failed; No commits between" in shop.box.ralph("pr").err
    assert "gh is not logged in" in shop.box.ralph("pr", env={"GH_TOKEN": "ghp_wrong"}).err
    assert "gh is not logged in" in shop.box.ralph("pr", env={"GH_TOKEN": ""}).err
    assert "may not see it" in shop.box.ralph("pr", "--repo", "owner/none").err
    hub.shutdown()
    hub.server_close()
    done = shop.box.ralph("pr")
    assert (done.code, "github.com cannot be reached" in done.err) == (69, True), done.text


def test_another_host_is_asked_for_its_login(shop: Shop, hub: GitHub) -> None:
    """A host that gh does not know is said to be none."""
    done = shop.box.ralph("pr", "--repo", "git.example.com/owner/shop")
    assert (done.code, "not a GitHub that gh is logged in to" in done.err) == (66, True), done.text


def test_issues_are_read(shop: Shop, hub: GitHub, monkeypatch: pytest.MonkeyPatch) -> None:
    """By number with comments, and by label."""
    one = {
        "title": "Tabs",
        "user": {"login": "bob"},
        "author_association": "MEMBER",
        "label": "ralph",
    }
    hub.issues = {
        12: {"number": 12, "body": "Accept tabs.", "comments": 1, **one},
        15: {"number": 15, "body": "And vertical ones.", "comments": 0, **one},
    }
    hub.comments = {12: [{"body": "In strings, too.", "user": {"login": "eve"}}]}
    for name, value in hub.env.items():
        monkeypatch.setenv(name, value)
    text = issues_as_text(Git(shop.box.root), [12], ["ralph"])
    assert text.count("# Issue") == 2
    assert "> Accept tabs." in text
    assert "Comment by eve (unknown):\n\n> In strings, too." in text
