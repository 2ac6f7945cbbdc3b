"""Requests that nobody took: no attempt, and the reason is the sentence that came back."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.guarantees import Measured
from tests.loop.guards import TRUE, told, two
from tests.loop.projects import Sandbox, sandbox, story

CLAUDE = """
def refused(text, *, is_error=True, output_tokens=0, **more):
    error = dict(is_api_error_message=True, error="invalid_request") if is_error else {}
    event(type="assistant", session_id="s-1", parent_tool_use_id=None, **error, message={
        "id": "m", "role": "assistant", "model": "<synthetic>", "content": [
            {"type": "text", "text": text}], "usage": {}})
    event(type="result", subtype="success", is_error=is_error, result=text, session_id="s-1",
          num_turns=1, total_cost_usd=0, usage={"output_tokens": output_tokens}, **more)
    sys.exit(is_error)
"""
CODEX = """
event(type="thread.started", thread_id="t-1"); event(type="turn.started")
event(type="error", message=SAID); event(type="turn.failed", error={"message": SAID})
sys.exit(1)
"""
REFUSALS = {
    "too long": (
        "claude",
        "refused(SAID, terminal_reason='prompt_too_long', api_error_status=400)",
        "Prompt is too long · the request is ~1250000 tokens (limit 1000000)",
    ),
    "too large": (
        "claude",
        "refused(SAID, terminal_reason='api_error', api_error_status=413)",
        "API Error: 413 Request too large",
    ),
    "safeguard": (
        "claude",
        "refused(SAID, stop_reason='refusal', terminal_reason='api_error', output_tokens=3)",
        "API Error: Claude Code is unable to respond to this request (Usage Policy)",
    ),
    "hook": (
        "claude",
        "refused(SAID + '\\n\\nOriginal prompt: ' + PROMPT, is_error=False)",
        "UserPromptSubmit operation blocked by hook: [./guard.sh]: not after ten",
    ),
    "codex": ("codex", CODEX, "Your input exceeds the context window of this model."),
}


def refusing(tmp_path: Path, kind: str, *, work: str = "", **setting: object) -> Sandbox:
    """A repository whose agent's requests are refused, after `work` has had its turn."""
    output, ending, said = REFUSALS[kind]
    agent = f"SAID = {said!r}\n{CLAUDE}\n{work}\n{ending}\n"
    return sandbox(tmp_path, agent, output=output, checks=TRUE, **setting)  # type: ignore[arg-type]


@pytest.mark.parametrize("kind", REFUSALS)
def test_a_refused_request_ends_with_its_own_sentence(
    tmp_path: Path, kind: str, measured: Measured
) -> None:
    """Tried twice, counted as nothing; console, report and next prompt say what came back."""
    box, said = refusing(tmp_path, kind), REFUSALS[kind][2]
    done = box.run()
    assert (done.code, box.starts) == (69, 2), done.text
    measured(box.starts)
    assert f"requests are refused before the model sees them: {said}" in done.text
    assert f"US-1 waits for you: {said}" in done.text
    assert said in " ".join(box.prompt(2).split())
    assert "status block" not in done.text
    assert "0 iterations" in done.text
    report = " ".join(box.ralph("report").out.replace("\\", "").split())
    assert said.split(" · ")[0] in report
    assert "does not claim" not in done.text + report
    assert "circuit CLOSED →" not in done.text


def test_a_prompt_that_was_too_long_is_tried_once_more_and_shorter(tmp_path: Path) -> None:
    """What was left out is said, and the story passes; the refusal was no attempt."""
    work = """
if len(PROMPT) < 60_000:
    write("a.txt"); says("The story is complete."); result("The story is complete."); sys.exit()
"""
    long = story("US-1", description="A long story.\n" * 5_000)
    box = refusing(tmp_path, "too long", work=work, stories=[long])
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert [len(box.prompt(n)) > 60_000 for n in (1, 2)] == [True, False]
    assert "left out here to keep the prompt short" in box.prompt(2)
    assert [event["attempts"] for event in done.events("iteration_finished")] == [0, 0]


def test_the_same_refusal_on_two_stories_ends_the_run(tmp_path: Path, measured: Measured) -> None:
    """Nothing is set aside and the breaker does not move: it is not about the stories."""
    stories = [story(f"US-{n}") for n in range(1, 6)]
    box = refusing(tmp_path, "too long", stories=stories)
    done = box.run("--json")
    assert (done.code, box.worked_on()) == (69, ["US-1"] * 2 + ["US-2"] * 2), told(done)
    measured(box.starts)
    assert done.events("story_set_aside") == done.events("circuit_changed") == []


def test_a_story_that_is_refused_waits_for_a_person_while_others_work(tmp_path: Path) -> None:
    """One story's words are one story's trouble; `--continue` asks again."""
    work = """
if STORY == "US-2" or START > 3:
    write(f"{STORY}.txt"); says("The story is complete."); result("The story is complete.")
    sys.exit()
"""
    box = refusing(tmp_path, "safeguard", work=work, stories=two()["stories"])
    done = box.run()
    assert (done.code, box.worked_on()) == (2, ["US-1", "US-1", "US-2"]), done.text
    assert "US-1 waits for a person: API Error: Claude Code is unable to respond" in done.text
    assert box.run("--continue").code == 0
    assert all(box.passes().values())


def test_an_error_after_the_model_answered_is_an_attempt(tmp_path: Path) -> None:
    """What the model did counts, however the start ended."""
    box = refusing(tmp_path, "too large", work="says(f'Looked at part {START}.')")
    done = box.run("--json")
    assert (done.code, box.starts) == (1, 4), told(done)
