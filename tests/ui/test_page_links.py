"""Links of messages: where the page is served and what to open, and no secret."""

from __future__ import annotations

import json
import os
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from ralphloop.journal.known_projects import remember_project
from ralphloop.night.every_project import key_of
from ralphloop.proc.process_table import started_at
from ralphloop.ui.page.devices import Devices
from ralphloop.ui.page.links import page_address
from tests.cli.test_serve import served
from tests.loop.projects import sandbox
from tests.ui.monitor_nights import finished

ASKS = """
if STORY == "US-1":
    status("BLOCKED", recommendation="Which colour should the button have?")
else:
    write(f"{STORY}.txt")
    done()
"""


def us() -> tuple[int, float]:
    """A process that is there: ours."""
    return os.getpid(), started_at(os.getpid()) or 0.0


@pytest.mark.parametrize(
    ("addresses", "best"),
    [
        (("http://127.0.0.1:8650",), "http://127.0.0.1:8650/#US-1"),
        (("http://127.0.0.1:8650", "https://a.ts.net"), "https://a.ts.net/#US-1"),
        (("http://192.168.1.20:8650",), "http://192.168.1.20:8650/#US-1"),
        (("http://0.0.0.0:8650",), "http://127.0.0.1:8650/#US-1"),
        (("http://[::]:8650",), "http://[::1]:8650/#US-1"),
    ],
)
def test_the_address_that_most_devices_reach_is_named(
    tmp_path: Path, addresses: tuple[str, ...], best: str
) -> None:
    """A name first, this machine last."""
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    devices = Devices(tmp_path, env)
    devices.open_at(addresses, us())
    devices.issue_ticket()
    assert page_address(tmp_path, env, "US-1") == best


def test_a_link_holds_neither_path_nor_token(tmp_path: Path) -> None:
    """Whatever a story is called."""
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    devices = Devices(tmp_path, env)
    devices.open_at(("http://127.0.0.1:8650",), us())
    ticket = devices.issue_ticket()
    for story in ("", "US-1", "a/b#c?d e", "/../", '"><script>', "ü"):
        link = page_address(tmp_path, env, story)
        assert devices.kept.path not in link
        assert ticket not in link
        parts = urlsplit(link)
        assert (parts.path, parts.query) == ("/", "")
        assert not set(parts.fragment) & set('/?#"<> ')


def test_a_page_that_has_ended_is_not_named(tmp_path: Path) -> None:
    """Its process is gone, or its number belongs to another one by now."""
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    assert page_address(tmp_path, env) == ""
    pid, began = us()
    for server in ((2**22 - 1, 1.0), (pid, began - 100)):
        Devices(tmp_path, env).open_at(("http://127.0.0.1:8650",), server)
        assert page_address(tmp_path, env) == ""


def test_the_page_of_all_is_named_where_a_project_has_none(tmp_path: Path) -> None:
    """With the project's place in it."""
    night = finished(tmp_path / "shop")
    root = night.project.root
    env = {"XDG_STATE_HOME": str(tmp_path / "state")}
    remember_project(root, env, 1.0)
    with served(tmp_path, "--all", "--port", "0", env=env) as page:
        origin = page.address.partition("?")[0].rpartition("/")[0].rpartition("/")[0]
        assert page_address(root, env, "US-1") == f"{origin}/#p/{key_of(root)}/US-1"
        with served(root, "--port", "0", env=env):
            assert key_of(root) not in page_address(root, env, "US-1")


def test_a_run_tells_where_to_answer(tmp_path: Path) -> None:
    """A real run, a real page, a real command that is told: the link opens for who was let in."""
    box = sandbox(tmp_path, ASKS, stories=2)
    heard = tmp_path / "heard"
    tell = tmp_path / "tell.sh"
    tell.write_text(f"#!/bin/sh\ncat >> '{heard}'; echo >> '{heard}'\n")
    tell.chmod(0o755)
    with (box.root / "ralph.toml").open("a") as file:
        file.write(f'\n[notify]\ncommand = ["{tell}"]\n')
    box.git("commit", "-qam", "tell somebody")
    with served(box.root, "--port", "0", env=box.environment(None)) as page:
        box.run()
        cookie = page.enter()
        origin = f"http://{urlsplit(page.address).netloc}"
        messages = [json.loads(line) for line in heard.read_text().splitlines() if line]
        asked = next(one for one in messages if one.get("story"))
        assert asked["page"] == f"{origin}/#US-1"
        assert asked["command"] == 'ralph answer US-1 "…"'
        assert asked["text"].endswith(f'Answer: {origin}/#US-1 or `ralph answer US-1 "…"`')
        path = urlsplit(page.address).path.strip("/")
        assert path not in heard.read_text()
        assert messages[-1]["page"] == f"{origin}/"
        assert page.ask("GET", cookie=cookie).status == 200
