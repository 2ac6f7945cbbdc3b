"""`ralph pr --per-story` with the real gh against a scripted GitHub: a pull request for each story."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.github.hub import GitHub, Shop

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.tool("gh"),
]

# The third changes what the first wrote; the fourth depends on the second by its list alone.
AGENT = """
if STORY == "US-3":
    write("US-1.txt", "US-1 and more")
write(f"{STORY}.txt", STORY)
done()
"""


def story(number: int, **more: Any) -> dict[str, Any]:
    """One that its own file proves."""
    return {
        "id": f"US-{number}",
        "title": f"Number {number}",
        "acceptanceCriteria": [f"there is a file US-{number}.txt", "@alice is told | fixes #3"],
        "verify": ["test", "-f", f"US-{number}.txt"],
        "passes": False,
        **more,
    }


@pytest.fixture
def hub(tmp_path_factory: pytest.TempPathFactory) -> Iterator[GitHub]:
    """A GitHub of our own."""
    with GitHub(tmp_path_factory.mktemp("h")) as server:
        yield server
        server.shutdown()


@pytest.fixture
def shop(tmp_path: Path, hub: GitHub) -> Shop:
    """A night of four stories."""
    listed = [story(1), story(2), story(3), story(4, dependsOn=["US-2"])]
    made = Shop(tmp_path, AGENT, stories=listed).night()
    (made.gh.place / "gh").unlink()
    made.box.env |= hub.env
    hub.bare = made.bare
    return made


def files(shop: Shop, branch: str) -> set[str]:
    """What a branch of the remote changes against main."""
    args = ["git", "diff", "--name-only", f"main...{branch}"]
    done = subprocess.run(args, cwd=shop.bare, capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_each_story_has_its_own(shop: Shop, hub: GitHub) -> None:
    """On the base where it goes there alone, else on the story it needs; each with its evidence."""
    done = shop.box.ralph("pr", "--per-story", "--json")
    assert done.code == 0, done.text
    told = {one["story"]: one for one in json.loads(done.out)["pulls"]}
    names = {name: one["branch"] for name, one in told.items()}
    assert {name: one["base"] for name, one in told.items()} == {
        "US-1": "main",
        "US-2": "main",
        "US-3": names["US-1"],
        "US-4": names["US-2"],
    }
    assert files(shop, names["US-1"]) == {"US-1.txt"}
    assert files(shop, names["US-2"]) == {"US-2.txt"}
    assert files(shop, names["US-3"]) == {"US-1.txt", "US-3.txt"}
    assert [one["base"] for one in hub.pulls] == [told[name]["base"] for name in sorted(told)]
    body = hub.pulls[0]["body"]
    assert "| criterion | shown by | in | result |" in body
    assert "its verify command" in body
    assert "@alice" not in body
    assert "fixes #3" not in body
    assert hub.pulls[0]["title"] == "ralph: US-1: Number 1"
    assert "It stands on US-1" in hub.pulls[2]["body"]
    assert shop.box.git("branch", "--format=%(refname:short)").split() == ["main", "work"]


def test_again_it_is_brought_up_to_date(shop: Shop, hub: GitHub) -> None:
    """No second one, no second push; what somebody pushed to a branch stays."""
    first = json.loads(shop.box.ralph("pr", "--per-story", "--json").out)["pulls"]
    before = shop.heads()
    args = ["git", "update-ref", f"refs/heads/{first[1]['branch']}", before["main"]]
    subprocess.run(args, cwd=shop.bare, check=True)
    done = shop.box.ralph("pr", "--per-story")
    assert done.code == 0, done.text
    assert "is there already and stays as it is" in done.err
    assert len(hub.pulls) == 4
    assert shop.heads() == {**before, first[1]["branch"]: before["main"]}


def test_the_setting_asks_for_it(shop: Shop, hub: GitHub) -> None:
    """`git.pr = "story"`; a look without doing changes nothing, and one for the run can be had."""
    env = {"RALPH_GIT_PR": "story"}
    done = shop.box.ralph("pr", "--dry-run", env=env)
    assert (done.code, done.err.count("would be opened")) == (0, 4), done.text
    assert hub.pulls == []
    assert "work" not in shop.heads()
    assert shop.box.ralph("pr", "--per-run", env=env).code == 0
    (only,) = hub.pulls
    assert "## Criteria, and what shows them" in only["body"]
    assert only["body"].count("| there is a file") == 4
    assert "criterion:" not in only["body"]
    refused = shop.box.ralph("pr", "--per-story", "--follow")
    assert (refused.code, "--follow is about one pull request" in refused.err) == (64, True)
