"""Failures have owners, through the whole command: whose they are decides what the night does."""

from __future__ import annotations

from pathlib import Path

from tests.loop.projects import sandbox

GREEN = [["test", "-d", "."]]
LIMITED_ONCE = """
if START == 1:
    print("429 You have reached your weekly usage limit. It will reset in 2s", file=sys.stderr)
    sys.exit(1)
write(f"{STORY}.txt", START)
done()
"""
REFUSED_KEY = """
print("Error: 401 Incorrect API key provided", file=sys.stderr)
sys.exit(1)
"""
STRANGE_STREAM = """
event(type="system", subtype="init", session_id="s-1")
write(f"{STORY}.txt", START)
sys.exit(1)
"""
COMPACTS_FOR_EVER = """
for _ in range(2000):
    event(type="step_start", sessionID="ses_1", part={})
    event(type="error", sessionID="ses_1", error={
        "name": "ContextOverflowError", "data": {"message": "prompt is too long"}})
    time.sleep(0.02)
"""


def test_a_usage_limit_on_stderr_is_waited_for(tmp_path: Path) -> None:
    """A text agent's limit with a relative time is no failed start: the run goes on after it."""
    box = sandbox(tmp_path, LIMITED_ONCE, stories=1, checks=GREEN)
    done = box.run()
    assert (done.code, box.starts) == (0, 2), done.text
    assert "waiting" in done.text.lower()
    assert "did not start" not in done.text


def test_a_refused_key_on_stderr_ends_the_run_at_once(tmp_path: Path) -> None:
    """One start, and the reason is what the program said."""
    box = sandbox(tmp_path, REFUSED_KEY, stories=1, checks=GREEN)
    done = box.run()
    assert (done.code, box.starts) == (69, 1), done.text
    assert "Incorrect API key" in done.text


def test_a_start_that_changed_files_did_start(tmp_path: Path) -> None:
    """Whatever its output is taken for, it is an attempt of the story, and no broken program."""
    limits = "max_iterations = 3"
    box = sandbox(tmp_path, STRANGE_STREAM, checks=GREEN, limits=limits, output="claude")
    done = box.run()
    assert done.code != 69, done.text
    assert "did not start" not in done.text


def test_the_same_error_for_ever_ends_a_start(tmp_path: Path) -> None:
    """It is stopped while it runs, as its own limit, with the error's sentence."""
    limits = "max_iterations = 1"
    box = sandbox(tmp_path, COMPACTS_FOR_EVER, checks=GREEN, limits=limits, output="opencode")
    done = box.run()
    assert "its own limit" in done.text, done.text
    assert "the same error came 6 times: prompt is too long" in done.text


def test_no_answer_is_offered_where_a_request_is_too_long(tmp_path: Path) -> None:
    """An answer would make it longer: the story has to become shorter, or the model larger."""
    agent = 'print("Prompt is too long", file=sys.stderr); sys.exit(1)'
    done = sandbox(tmp_path, agent, checks=GREEN).run()
    assert done.code == 69, done.text
    assert "ralph answer" not in done.text
    assert "ralph retry US-1" in done.text
