"""Messages on their way: programs with deadlines, a thread of its own, problems as words."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from pathlib import Path

import pytest

from ralphloop.config.model import NotifySection
from ralphloop.journal.queries import JournalReader
from ralphloop.notify.messages import Decider, Message
from ralphloop.notify.notifier import (
    Notifier,
    channels_for,
    to_command,
    to_desktop,
    unsendable,
)
from ralphloop.notify.services import send_to_address, send_to_webhook
from tests.loop.projects import sandbox, story
from tests.notify.events import ended, quota, started, tool
from tests.timing import FOR_EVER_S

MESSAGE = Message(id="r1/1", kind="blocked", title="-shop: <waits>", text="a < b & c", run="r1")


class Recorder:
    """A channel that keeps what it is given."""

    def __init__(self, error: Exception | None = None, *, waits: bool = False) -> None:
        self.messages: list[Message] = []
        self._error = error
        self.may_go_on = threading.Event()
        if not waits:
            self.may_go_on.set()

    def send(self, message: Message) -> str:
        """Keep it, slowly or badly if so asked."""
        self.may_go_on.wait(FOR_EVER_S)
        if self._error is not None:
            raise self._error
        self.messages.append(message)
        return ""


def script(place: Path, name: str, body: str) -> Path:
    """An executable Python script."""
    path = place / name
    path.write_text(f"#!{sys.executable}\nimport json, os, sys, time, subprocess\n{body}")
    path.chmod(0o755)
    return path


def test_a_command_reads_the_message_as_json(tmp_path: Path) -> None:
    """It gets everything on its standard input, in the project's directory."""
    seen = tmp_path / "seen"
    program = script(tmp_path, "tell", "open('seen', 'w').write(sys.stdin.read())")
    assert to_command(MESSAGE, [str(program)], tmp_path) == ""
    assert json.loads(seen.read_text()) == {
        "id": "r1/1",
        "kind": "blocked",
        "title": "-shop: <waits>",
        "text": "a < b & c",
        "run": "r1",
    }


def test_a_command_stays_in_our_session_in_a_group_of_its_own(tmp_path: Path) -> None:
    """In a foreign session it would be taken for a process of the agent and stopped."""
    body = "open(sys.argv[1], 'w').write(f'{os.getsid(0)} {os.getpgid(0) == os.getpid()}')"
    program = script(tmp_path, "tell", body)
    assert to_command(MESSAGE, [str(program), str(tmp_path / "seen")], tmp_path) == ""
    assert (tmp_path / "seen").read_text() == f"{os.getsid(0)} True"


def test_a_command_that_hangs_is_stopped_with_all_it_started(tmp_path: Path) -> None:
    """The deadline holds for its children too."""
    body = (
        f"child = subprocess.Popen(['sleep', '{FOR_EVER_S}'])\n"
        f"open('pid', 'w').write(str(child.pid))\ntime.sleep({FOR_EVER_S})"
    )
    program = script(tmp_path, "hang", body)
    problem = to_command(MESSAGE, [str(program)], tmp_path, timeout_s=1.0)
    assert problem.endswith("did not end within 1 s")
    child = int((tmp_path / "pid").read_text())
    deadline = time.monotonic() + 30
    while _is_running(child):
        assert time.monotonic() < deadline
        time.sleep(0.02)


def _is_running(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.parametrize(
    "argv, words",
    [
        (["/nonexistent/tell"], "could not be started"),
        (["false"], "ended with 1"),
        (["true"], ""),
    ],
)
def test_a_command_that_fails_is_a_problem_in_words(argv: list[str], words: str) -> None:
    """Missing, failing, or not reading its input at all."""
    problem = to_command(MESSAGE, argv, None)
    assert words in problem
    assert bool(problem) == bool(words)


@pytest.mark.skipif(sys.platform == "darwin", reason="another program there")
def test_the_desktop_gets_title_and_text_as_arguments(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A title cannot be an option, and the text cannot be markup."""
    seen = tmp_path / "seen"
    script(tmp_path, "notify-send", f"open({str(seen)!r}, 'w').write(json.dumps(sys.argv[1:]))")
    monkeypatch.setenv("PATH", f"{tmp_path}{os.pathsep}{os.environ['PATH']}")
    assert to_desktop(MESSAGE) == ""
    assert json.loads(seen.read_text()) == [
        "--app-name=ralph",
        "--",
        "-shop: <waits>",
        "a &lt; b &amp; c",
    ]


def test_a_run_becomes_messages_in_every_channel() -> None:
    """The same messages, in order, to each of them."""
    first, second = Recorder(), Recorder()
    notifier = Notifier(NotifySection(), channels=[first.send, second.send])
    for event in (started(), quota(), tool(), ended("project_complete")):
        notifier.on_event(event)
    assert notifier.close() == ()
    kinds = [message.kind for message in first.messages]
    assert kinds == ["usage_limit", "usage_limit_lifted", "run_finished"]
    assert first.messages == second.messages


def test_a_failing_channel_disturbs_neither_the_run_nor_the_others() -> None:
    """What it raises becomes words, once."""
    broken, well = Recorder(error=RuntimeError("no network")), Recorder()
    notifier = Notifier(NotifySection(), channels=[broken.send, well.send])
    for event in (started(), quota(), tool(), ended("error")):
        notifier.on_event(event)
    assert notifier.close() == ("notification: RuntimeError: no network",)
    assert len(well.messages) == 3


def test_a_slow_channel_never_holds_up_the_run() -> None:
    """Events and closing return although the channel has not sent anything yet."""
    slow = Recorder(waits=True)
    notifier = Notifier(NotifySection(), channels=[slow.send])
    for event in (started(), ended("error")):
        notifier.on_event(event)
    assert notifier.close(0.1) == ("notification: the last one was not sent in time",)
    assert slow.messages == []
    slow.may_go_on.set()


def test_secrets_are_taken_out_before_anything_is_sent() -> None:
    """Words of an agent may hold a key."""
    channel = Recorder()
    notifier = Notifier(NotifySection(), secrets=["hunter2-hunter2"], channels=[channel.send])
    notifier.on_event(ended("error", "the password is hunter2-hunter2"))
    notifier.close()
    assert "hunter2-hunter2" not in channel.messages[0].text


def test_a_message_names_the_page_that_is_served_at_that_moment() -> None:
    """Asked for anew each time, with the story; its words end with it and the command."""
    channel, asked = Recorder(), list[str]()

    def page_of(story: str) -> str:
        asked.append(story)
        return "" if len(asked) == 1 else "https://here.example/"

    notifier = Notifier(NotifySection(), channels=[channel.send], page_of=page_of)
    for event in (started(), quota(), tool(), ended("project_complete")):
        notifier.on_event(event)
    notifier.close()
    first, *_, last = channel.messages
    assert (first.page, last.page) == ("", "https://here.example/")
    assert first.text.endswith(" Look: `ralph status`")
    assert last.text.endswith(" Look: https://here.example/ or `ralph review`")


def test_nothing_configured_means_nothing_done() -> None:
    """The default tells nobody and starts no thread."""
    notifier = Notifier(NotifySection())
    notifier.on_event(started())
    notifier.on_event(ended("error"))
    assert notifier._thread is None
    assert notifier.close() == ()


def test_settings_choose_the_channels(tmp_path: Path) -> None:
    """Desktop, command, addresses and webhook, in any combination."""
    config = NotifySection(
        desktop=True, command=("tell",), urls=("ntfys://x",), webhook="https://example.com/x"
    )
    desktop, command, address, webhook = channels_for(config, tmp_path)
    assert desktop is to_desktop
    assert getattr(command, "func", None) is to_command
    assert getattr(address, "func", None) is send_to_address
    assert getattr(webhook, "func", None) is send_to_webhook
    assert channels_for(NotifySection(), tmp_path) == []


def test_what_is_missing_is_known_before_the_night() -> None:
    """A program that is not there and an address that is none are said beforehand."""
    config = NotifySection(
        command=("no-such-program",), urls=("nothing://s3cret-part",), webhook="nonsense"
    )
    found = unsendable(config)
    assert found[0] == "notifications: no-such-program was not found"
    assert "nothing://*** is no address that apprise understands" in found[1]
    assert "http(s)://" in found[2]
    assert unsendable(NotifySection(command=("true",), webhook="https://example.com/")) == []


def test_a_real_run_is_worth_one_message(tmp_path: Path) -> None:
    """The events of a whole run, as the loop tells them: the question, once."""
    agent = """
    if STORY == "US-2":
        status("BLOCKED", recommendation="Which database?")
    else:
        write("a.txt")
        done()
    """
    box = sandbox(tmp_path, agent, stories=[story("US-1"), story("US-2")])
    box.run()
    with JournalReader.open(box.root / ".ralph" / "journal.db") as journal:
        run = journal.latest_run()
        assert run is not None
        events = journal.events_since(run.id, 0)
    decider = Decider()
    messages = [message for event in events if (message := decider.on_event(event))]
    assert [message.kind for message in messages] == ["blocked"]
    assert "US-2 waits for a person: Which database?" in messages[0].text
    assert messages[0].title == "repo: waits for you"
