"""Money and tokens have a ceiling inside a start, whoever tells what was used."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.loop.projects import Sandbox, sandbox, story

GREEN = [["test", "-d", "."]]
# Agents that would use two million tokens, 20,000 with each step.  The later ones take long enough
# for a busy machine to end them in time.
CLAUDE = """
for step in range(100):
    event(type="assistant", session_id="s-1", parent_tool_use_id=None, message={
        "id": f"m{step}", "role": "assistant", "model": "claude-sonnet-4-6", "content": [
            {"type": "text", "text": "Working."}],
        "usage": {"input_tokens": 19_900, "output_tokens": 100}})
    write("work.txt", step)
    time.sleep(0.3 if step < 3 else 3)
"""
OPENCODE = """
for step in range(100):
    event(type="step_start", sessionID="s-1", part={})
    event(type="text", sessionID="s-1", part={"text": "Working."})
    event(type="step_finish", sessionID="s-1", part={"reason": "tool-calls", "cost": 0.06,
          "tokens": {"input": 19_900, "output": 100, "cache": {"read": 0, "write": 0}}})
    write("work.txt", step)
    time.sleep(0.3 if step < 3 else 3)
"""
CODEX = """
event(type="thread.started", thread_id="thread-0001")
event(type="turn.started")
day = pathlib.Path(os.environ["CODEX_HOME"], "sessions/2026/11/16")
day.mkdir(parents=True, exist_ok=True)
with open(day / "rollout-2026-11-16T01-02-03-thread-0001.jsonl", "w") as rollout:
    def told(kind, payload):
        line = json.dumps({"type": kind, "payload": payload}, separators=(",", ":"))
        rollout.write(line + "\\n")
        rollout.flush()
    told("turn_context", {"model": "gpt-5"})
    for step in range(1, 101):
        told("token_usage_record", {"thread_token_usage": {
            "input_tokens": 19_900 * step, "output_tokens": 100 * step}})
        event(type="item.completed", item={"id": f"i{step}", "type": "reasoning", "text": "hm"})
        write("work.txt", step)
        time.sleep(0.3 if step < 3 else 3)
"""
GEMINI = """
event(type="init", session_id="0123456789ab", model="gemini-2.5-pro")
chats = pathlib.Path(os.environ["HOME"], ".gemini/tmp/work/chats")
chats.mkdir(parents=True, exist_ok=True)
with open(chats / "session-2026-11-16T01-02-01234567.jsonl", "w") as session:
    for step in range(100):
        message = {"id": f"m{step}", "type": "gemini", "model": "gemini-2.5-pro", "tokens": {
            "input": 19_900, "output": 100, "cached": 0, "thoughts": 0, "tool": 0}}
        session.write(json.dumps(message) + "\\n")
        session.flush()
        event(type="message", role="assistant", content="Working.", delta=True)
        write("work.txt", step)
        time.sleep(0.3 if step < 3 else 3)
"""
BURNING = {"claude": CLAUDE, "opencode": OPENCODE, "codex": CODEX, "gemini": GEMINI}


def burning(tmp_path: Path, name: str, limits: str, agent: str = "") -> Sandbox:
    """A project whose agent would never end."""
    box = sandbox(tmp_path, agent or BURNING[name], checks=GREEN, limits=limits, output=name)
    box.env["CODEX_HOME"] = str(tmp_path / "codex")
    box.env["HOME"] = str(tmp_path / "home")
    return box


@pytest.mark.parametrize("name", BURNING)
def test_a_start_is_ended_below_its_ceiling_of_tokens(tmp_path: Path, name: str) -> None:
    """Of two million tokens it uses less than it may; that is its limit, and no failed attempt."""
    limits = "max_start_tokens = 100_000\nmax_iterations = 1"
    box = burning(tmp_path, name, limits)
    done = box.run()
    assert "another step would pass it (limits.max_start_tokens)" in done.text, done.text
    tokens = box.status()["tokens"]
    assert 40_000 <= tokens["input"] + tokens["output"] <= 100_000
    (story,) = json.loads(box.ralph("stories", "--json").out)["stories"]
    assert story["attempts"] == 0


@pytest.mark.parametrize("name", BURNING)
def test_a_start_may_use_what_is_left_to_the_run(tmp_path: Path, name: str) -> None:
    """Without a limit of its own it ends with the run's money, as the run does: used up."""
    box = burning(tmp_path, name, "max_cost_usd = 0.3")
    done = box.run()
    assert done.code == 3, done.text
    assert "another step would pass it (limits.max_cost_usd)" in done.text
    assert box.starts == 1
    assert 0.05 <= box.status()["cost_usd"] <= 0.3


def test_one_start_does_not_take_the_night_of_the_others(tmp_path: Path) -> None:
    """One that runs away ends at its story's share of the money, and the rest is done with the rest."""
    runs_away = CLAUDE.replace("\n", "\n    ")
    block = "STATUS: COMPLETE\\nTASKS_COMPLETED_THIS_LOOP: 1\\nEXIT_SIGNAL: false"
    agent = (
        f'if START == 1:\n    {runs_away}\nwrite(STORY + ".txt", "done")\n'
        f'result("---RALPH_STATUS---\\n{block}\\n---END_RALPH_STATUS---", cost=0.01)\n'
    )
    stories = [story("US-1"), story("US-2")]
    limits = "max_cost_usd = 0.6"
    box = sandbox(tmp_path, agent, stories=stories, checks=GREEN, limits=limits, output="claude")
    done = box.run()
    assert done.code == 0, done.text
    assert "another step would pass it (limits.max_story_share)" in done.text
    assert box.starts == 3
    assert 0.1 <= box.status()["cost_usd"] <= 0.35


def test_a_story_has_its_share_once_while_another_can_run(tmp_path: Path) -> None:
    """One that runs away in every start is set aside at its share, and comes back after the others."""
    runs_away = CLAUDE.replace("\n", "\n    ")
    block = "STATUS: COMPLETE\\nTASKS_COMPLETED_THIS_LOOP: 1\\nEXIT_SIGNAL: false"
    agent = (
        f'if STORY == "US-1":\n    {runs_away}\nwrite(STORY + ".txt", "done")\n'
        f'result("---RALPH_STATUS---\\n{block}\\n---END_RALPH_STATUS---", cost=0.01)\n'
    )
    stories = [story("US-1"), story("US-2")]
    limits = "max_cost_usd = 0.6"
    box = sandbox(tmp_path, agent, stories=stories, checks=GREEN, limits=limits, output="claude")
    done = box.run("--json")
    assert done.code == 3, done.text
    assert box.worked_on()[:3] == ["US-1", "US-2", "US-1"]
    assert box.passes() == {"US-1": False, "US-2": True}
    (aside,) = done.events("story_set_aside")
    assert "of $0.60, its share" in aside["reason"]
    assert box.status()["cost_usd"] <= 0.6
    assert "identical" in box.ralph("replay").out


def test_a_start_is_metered_by_the_prices_of_its_project(tmp_path: Path) -> None:
    """Its second step of two cents is below the ceiling; assumed prices would end it at its first."""
    agent = BURNING["codex"].replace('"gpt-5"', '"made-up-9"')
    box = burning(tmp_path, "codex", "max_start_cost_usd = 0.1\nmax_iterations = 1", agent)
    config = box.root / "ralph.toml"
    config.write_text(config.read_text() + '[prices."made-up-*"]\ninput = 1.0\noutput = 1.0\n')
    box.git("commit", "-qam", "prices")
    done = box.run()
    assert "another step would pass it (limits.max_start_cost_usd)" in done.text, done.text
    assert 0.04 <= box.status()["cost_usd"] <= 0.1


@pytest.mark.parametrize("name", ["codex", "gemini"])
def test_what_a_killed_start_cost_was_written_down(tmp_path: Path, name: str) -> None:
    """The stream tells nothing before its end; the CLI's own record does."""
    end = "if step == 2: os.kill(os.getpid(), signal.SIGKILL)\n        time.sleep(0.3 if step < 3 else 3)"
    agent = BURNING[name].replace("time.sleep(0.3 if step < 3 else 3)", end)
    box = burning(tmp_path, name, "max_iterations = 1", agent)
    box.run()
    tokens = box.status()["tokens"]
    assert tokens["input"] >= 39_800
    assert box.status()["cost_usd"] > 0


def test_tokens_left_to_the_run_end_a_start(tmp_path: Path) -> None:
    """`max_tokens` holds inside a start, too."""
    box = burning(tmp_path, "codex", "max_tokens = 100_000")
    done = box.run()
    assert done.code == 3, done.text
    assert "another step would pass it (limits.max_tokens)" in done.text
    assert box.status()["tokens"]["input"] <= 100_000


def test_a_table_of_ones_own_is_taken_from_a_file(tmp_path: Path) -> None:
    """`ralph prices --update` adds its rows to the person's; a broken one changes nothing."""
    box = sandbox(tmp_path, "done()", checks=GREEN)
    box.env["XDG_CONFIG_HOME"] = str(tmp_path / "xdg")
    table = tmp_path / "team.toml"
    table.write_text('[models]\n"local-*" = { input = 0, output = 0 }\n')
    assert box.ralph("prices", "--update", str(table)).code == 0
    table.write_text('[models]\n"mine" = { input = 1, output = 2, cache_read = 0.5 }\n')
    assert "1 row" in box.ralph("prices", "--update", str(table)).text
    models = json.loads(box.ralph("prices", "--json").out)["models"]
    assert models["local-*"]["own"]
    assert models["mine"]["cache_read"] == 0.5
    table.write_text('[models]\n"mine" = 3\n')
    broken = box.ralph("prices", "--update", str(table))
    assert broken.code == 65
    assert str(table) in broken.text
    assert json.loads(box.ralph("prices", "--json").out)["models"]["mine"]["input"] == 1
