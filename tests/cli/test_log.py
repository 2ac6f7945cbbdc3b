"""`ralph log`: transcripts as a person reads them, byte for byte, or while they grow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any

import psutil
import pytest

from tests.cli.nights import RUN, Night
from tests.conftest import RunRalph

FINAL = "It works now.\n\n---RALPH_STATUS---\nSTATUS: COMPLETE\n---END_RALPH_STATUS---"


def event(**fields: Any) -> bytes:
    """One line of an agent's event stream."""
    return json.dumps(fields).encode() + b"\n"


def said(text: str) -> bytes:
    """The agent says something."""
    return event(type="assistant", message={"content": [{"type": "text", "text": text}]})


def called(number: int, name: str, **arguments: str) -> bytes:
    """The agent uses a tool."""
    use = {"type": "tool_use", "id": f"t{number}", "name": name, "input": arguments}
    return event(type="assistant", message={"content": [use]})


def answered(number: int, *, failed: bool = False) -> bytes:
    """The tool answers."""
    result = {
        "type": "tool_result",
        "tool_use_id": f"t{number}",
        "is_error": failed,
        "content": "x",
    }
    return event(type="user", message={"content": [result]})


CLAUDE = (
    event(type="system", subtype="init", session_id="s-1", model="m")
    + said("I will look first.")
    + called(1, "Read", file_path="shop.py")
    + answered(1)
    + called(2, "Bash", command="pytest -q")
    + answered(2, failed=True)
    + said(FINAL)
    + event(type="result", subtype="success", is_error=False, result=FINAL, session_id="s-1")
)
RECORD = {
    "response": {"reader": "claude", "final_text": FINAL},
    "evidence": {"checks": [{"name": "pytest -q", "status": "passed", "flaky": True}]},
    "verdict": {"passed": True, "reasons": ["tests were added and all is green"]},
    "decision": {"word": "continue", "reasons": ["2 stories are open"]},
}


@pytest.fixture
def night(tmp_path: Path) -> Night:
    """A run of three iterations on two stories."""
    night = Night(tmp_path).begin()
    night.iterate("S-1", transcript=CLAUDE, record=RECORD)
    night.iterate(
        "S-2", transcript=b"first words\nof S-2\n", record={"response": {"reader": "text"}}
    )
    night.iterate("S-1", transcript=CLAUDE, record=RECORD, attempt=2)
    return night


def shown(run_ralph: RunRalph, night: Night, *arguments: str) -> str:
    """What `ralph log` prints."""
    done = run_ralph("log", *arguments, cwd=night.root)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_an_event_stream_is_shown_as_steps(night: Night, run_ralph: RunRalph) -> None:
    """Words, tools, failures and the last message, then what came of it."""
    out = shown(run_ralph, night)
    assert out.startswith("iteration 3: S-1, attempt 2, ")
    for line in (
        "    I will look first.\n",
        "  > Read shop.py\n",
        "  > Bash pytest -q\n",
        "  ! failed: Bash\n",
        "    | It works now.\n",
        "    | STATUS: COMPLETE\n",
        "= completed in 30s, $0.50, 2 files changed\n",
        "  check pytest -q: passed, at the second try\n",
        "  story passed: tests were added and all is green\n",
    ):
        assert line in out
    assert out.count("It works now.") == 1, "the last words stand there once"
    assert '{"type"' not in out


def test_plain_text_is_shown_line_by_line(night: Night, run_ralph: RunRalph) -> None:
    """An agent that prints text is shown as it spoke."""
    assert "\n    first words\n    of S-2\n=" in shown(run_ralph, night, "--iteration", "2")


def test_a_story_is_shown_with_all_its_iterations(night: Night, run_ralph: RunRalph) -> None:
    """--story goes through them from the oldest to the newest and leaves the others out."""
    out = shown(run_ralph, night, "--story", "S-1")
    assert out.index("iteration 1: S-1") < out.index("iteration 3: S-1")
    assert "iteration 2" not in out


def test_raw_is_byte_for_byte(night: Night) -> None:
    """--raw adds and changes nothing."""
    odd = b"\xff\x00\x1b[31m\r\nno end"
    night.iterate("S-3", transcript=odd)
    command = [sys.executable, "-m", "ralphloop", "log", "--raw"]
    done = subprocess.run(command, cwd=night.root, capture_output=True, check=True, timeout=60)
    assert done.stdout == odd


def test_prompt_and_stderr_are_kept_too(night: Night, run_ralph: RunRalph) -> None:
    """What the agent was told and what it complained about can be asked for."""
    assert shown(run_ralph, night, "--prompt") == "# Do it\n"
    assert shown(run_ralph, night, "--stderr") == "a complaint\n"
    assert run_ralph("log", "--stderr", "--prompt", cwd=night.root).returncode == 64


def test_an_agent_that_complained_of_nothing_has_no_error_output(
    night: Night, run_ralph: RunRalph
) -> None:
    """No file of error output beside a transcript is an empty one, not a lost one."""
    night.iterate("S-3", transcript=b"fine\n")
    for kept in (night.root / ".ralph" / "transcripts").rglob("*.stderr"):
        kept.unlink()
    assert shown(run_ralph, night, "--stderr") == ""


@pytest.mark.parametrize(
    "arguments, message",
    [
        (["--iteration", "9"], "has no iteration 9\n  next: There are 1 to 3."),
        (["--iteration", "0"], "0 is not in the range"),
        (["--story", "S-9"], "worked on S-9"),
        (["--run", "nope"], f"there is no run 'nope'\n  next: name one of: {RUN}"),
    ],
)
def test_what_is_not_there_is_64_with_what_is(
    arguments: list[str], message: str, night: Night, run_ralph: RunRalph
) -> None:
    """A wrong number, story or run names the right ones."""
    done = run_ralph("log", *arguments, cwd=night.root)
    assert (done.returncode, done.stdout) == (64, "")
    assert message in done.stderr


def test_a_transcript_that_was_cleaned_away_is_named(night: Night, run_ralph: RunRalph) -> None:
    """The journal outlives the transcripts, and the message says where to look."""
    (night.root / ".ralph" / "transcripts" / RUN / "3.log").unlink()
    done = run_ralph("log", cwd=night.root)
    assert done.returncode == 65
    assert "transcript of iteration 3" in done.stderr


def test_a_run_inside_a_session_has_no_transcripts(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Nothing is gone: the words are in the session that carried the loop."""
    Night(tmp_path).begin(mode="hook").iterate(transcript=None)
    done = run_ralph("log", cwd=tmp_path)
    assert done.returncode == 65
    assert "inside an agent session" in done.stderr
    assert "ralph report" in done.stderr


def test_an_older_run_can_be_asked_for(night: Night, run_ralph: RunRalph) -> None:
    """--run goes back to earlier nights."""
    night.end().begin("20260118-220000-def456").iterate("S-4", transcript=b"newer\n")
    assert "newer" in shown(run_ralph, night)
    assert "iteration 2: S-2" in shown(run_ralph, night, "--run", RUN, "--iteration", "2")


@pytest.mark.parametrize("with_journal", [True, False])
def test_before_the_first_run_there_is_nothing(
    with_journal: bool, tmp_path: Path, run_ralph: RunRalph
) -> None:
    """Said like by every other command, with its code."""
    if with_journal:
        Night(tmp_path)
    done = run_ralph("log", cwd=tmp_path)
    assert (done.returncode, done.stdout) == (64, "")
    assert "nothing has run here yet" in done.stderr


def test_an_error_in_words_is_shown_although_events_were_expected(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """A CLI that fails before its first event still says why."""
    night = Night(tmp_path).begin()
    record = {"response": {"reader": "claude", "final_text": ""}}
    night.iterate(transcript=b"Invalid API key\n", outcome="fatal", record=record)
    assert "| Invalid API key" in shown(run_ralph, night)


def test_an_iteration_that_was_cut_off_is_shown_as_far_as_it_came(
    tmp_path: Path, run_ralph: RunRalph
) -> None:
    """After a crash the transcript is there, and the reader is found by what it looks like."""
    night = Night(tmp_path, config='[agent]\nname = "scripted"\ncommand = ["x"]\n').begin()
    night.iterate(finished=False, transcript=said("Half a") + called(1, "Read", file_path="a.py"))
    out = shown(run_ralph, night)
    assert "    Half a\n  > Read a.py\n" in out
    assert "it was cut off" in out


def test_hostile_output_cannot_reach_the_terminal(tmp_path: Path, run_ralph: RunRalph) -> None:
    """Escape sequences are taken out of text and of events."""
    evil = "\x1b]0;owned\x07\x1b[2J\x9b1mwords"
    night = Night(tmp_path).begin()
    night.iterate(transcript=evil.encode(), record={"response": {"reader": "text"}})
    night.iterate(
        transcript=said(evil), record={"response": {"reader": "claude", "final_text": evil}}
    )
    for number in ("1", "2"):
        out = shown(run_ralph, night, "--iteration", number)
        assert "words" in out
        assert not any(bad in out for bad in "\x1b\x07\x9b")


def test_a_huge_transcript_needs_little_memory(tmp_path: Path) -> None:
    """A line of 60 MB and many small ones pass through without being held."""
    night = Night(tmp_path).begin().iterate(record={"response": {"reader": "text"}})
    transcript = tmp_path / ".ralph" / "transcripts" / RUN / "1.log"
    with transcript.open("wb") as file:
        file.write(b"x" * 60_000_000 + b"\n")
    command = [sys.executable, "-m", "ralphloop", "log"]
    with subprocess.Popen(command, cwd=night.root, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        watched, most, total = psutil.Process(process.pid), 0, 0
        while chunk := process.stdout.read(1 << 20):
            total += len(chunk)
            most = max(most, watched.memory_info().rss)
    assert process.returncode == 0
    assert total > 60_000_000
    assert most < 80_000_000


class Following:
    """`ralph log -f` in a process of its own, its lines read as they come."""

    def __init__(self, night: Night, *arguments: str) -> None:
        command = [sys.executable, "-m", "ralphloop", "log", "-f", *arguments]
        self.process = subprocess.Popen(
            command, cwd=night.root, stdout=subprocess.PIPE, encoding="utf-8"
        )
        self.lines: list[str] = []
        self._thread = threading.Thread(target=self._read)
        self._thread.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        with self.process.stdout as stream:
            for line in stream:
                self.lines.append(line.rstrip("\n"))

    def wait_for(self, words: str) -> None:
        """Wait until a line with these words has been shown."""
        deadline = time.monotonic() + 30
        while not any(words in line for line in self.lines):
            assert time.monotonic() < deadline, self.lines
            time.sleep(0.02)

    def ended(self) -> list[str]:
        """Everything that was shown, once it has ended by itself."""
        assert self.process.wait(timeout=30) == 0
        self._thread.join(timeout=10)
        return self.lines


def test_following_goes_on_until_the_run_ends(tmp_path: Path) -> None:
    """New output appears as it is written, the next iteration follows, the end is told."""
    night = Night(tmp_path, config='[agent]\nname = "claude"\n').begin()
    night.iterate("S-1", finished=False, transcript=said("First words."))
    folder = tmp_path / ".ralph" / "transcripts" / RUN
    with night.held():
        following = Following(night)
        following.wait_for("First words.")
        with (folder / "1.log").open("ab") as file:
            file.write(called(1, "Bash", command="make"))
        following.wait_for("> Bash make")
        now = time.time()
        night.finish(1, now, record=RECORD)
        following.wait_for("= completed")
        night.journal.begin_wait(RUN, kind="quota", reason="usage limit", now=now, until=now + 600)
        following.wait_for("waiting")
        night.journal.end_wait(RUN, now=now)
        night.iterate("S-2", finished=False, transcript=said("Second story."))
        following.wait_for("Second story.")
        night.finish(2, time.time(), record=RECORD)
        night.end("project_complete", "all done", complete=True, ago=0)
    lines = following.ended()
    assert lines[-1] == f"run          {RUN} ended: all done"
    assert sum(line.startswith("iteration ") for line in lines) == 2


def test_following_a_story_leaves_the_others_out(tmp_path: Path) -> None:
    """-f --story waits for that story's turns."""
    night = Night(tmp_path, config='[agent]\nname = "claude"\n').begin()
    night.iterate("S-1", transcript=said("Not this."), record=RECORD)
    with night.held():
        following = Following(night, "--story", "S-2")
        time.sleep(1)
        night.iterate("S-1", transcript=said("Nor this."), record=RECORD)
        night.iterate("S-2", transcript=said("But this."), record=RECORD)
        following.wait_for("= completed")
        night.end(ago=0)
    lines = following.ended()
    first = next(line for line in lines if line.startswith("iteration "))
    assert first.startswith("iteration 3: S-2")
    assert not any("this." in line and "But" not in line for line in lines)


def test_following_a_run_that_is_over_ends(night: Night, run_ralph: RunRalph) -> None:
    """-f shows the newest iteration and does not wait for what cannot come."""
    night.end("interrupted", "interrupted (Ctrl+C)")
    out = shown(run_ralph, night, "-f")
    assert "iteration 3: S-1" in out
    assert out.endswith("ended: interrupted (Ctrl+C)\n")


def test_following_notices_that_the_run_died(night: Night) -> None:
    """A run whose process is gone is followed no further."""
    night.iterate("S-2", finished=False, transcript=said("going"))
    with night.held():
        following = Following(night)
        following.wait_for("going")
    lines = following.ended()
    assert lines[-1].endswith("does not go on.")


def test_following_is_quiet_work(night: Night) -> None:
    """Waiting for output costs next to nothing."""
    night.iterate("S-2", finished=False, transcript=said("going"))
    with night.held():
        following = Following(night)
        following.wait_for("going")
        before = psutil.Process(following.process.pid).cpu_times()
        time.sleep(2)
        after = psutil.Process(following.process.pid).cpu_times()
        night.end(ago=0)
    following.ended()
    assert (after.user + after.system) - (before.user + before.system) < 0.4


def test_a_reader_that_leaves_ends_it(night: Night) -> None:
    """`ralph log -f | head -1` does not go on for ever."""
    with night.held():
        night.iterate("S-2", finished=False, transcript=said("going"))
        read_end, write_end = os.pipe()
        os.close(read_end)
        command = [sys.executable, "-m", "ralphloop", "log", "-f"]
        done = subprocess.run(command, cwd=night.root, stdout=write_end, timeout=30, check=False)
        os.close(write_end)
    assert done.returncode == 141
