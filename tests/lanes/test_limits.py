"""What lanes share: money, iterations, a usage limit, a person's words, the sandbox."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

import pytest

from tests.lanes.yards import starts, stories_of, yard
from tests.loop.projects import Sandbox
from tests.loop.test_older_claude import OLD, with_claude

HONEST = 'write(f"{STORY}.txt", STORY)\ndone()\n'
PAID = """
def answer(cost, **more):
    text = "Worked.\\n\\n---RALPH_STATUS---\\nSTATUS: COMPLETE\\n---END_RALPH_STATUS---"
    print(json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": text,
        "session_id": STORY, "num_turns": 1, "total_cost_usd": cost, "permission_denials": [],
        "usage": {"input_tokens": 9, "output_tokens": 9}, **more}), flush=True)
"""


def paid(tmp_path: Path, agent: str, *names: str, limits: str = "") -> Sandbox:
    """A project whose agent says what it cost."""
    stories = stories_of(*names)
    return yard(tmp_path, PAID + agent, stories=stories, limits=limits, output="claude")


def test_iterations_in_flight_count(tmp_path: Path) -> None:
    """With three allowed, four lanes start three agents and no more."""
    box = yard(tmp_path, HONEST, stories=stories_of(*"abcdef"), limits="max_iterations = 3")
    done = box.run("--lanes", "4")
    assert done.code == 3, done.text
    assert sum(starts(box, name) for name in "abcdef") == 3
    assert sum(box.passes().values()) == 3


STEP = """
used = 0
def step():
    global used
    used += 10_000
    print(json.dumps({"type": "assistant", "session_id": STORY, "parent_tool_use_id": None,
        "message": {"id": f"m{used}", "role": "assistant", "model": "made-up-9",
            "content": [{"type": "text", "text": "Working."}],
            "usage": {"input_tokens": 9_900, "output_tokens": 100}}}), flush=True)
"""
STEPS = f"""{STEP}
step()
time.sleep(0.4)
step()
time.sleep(0.4)
write(f"{{STORY}}.txt", STORY)
answer(used / 1e6, usage={{"input_tokens": used - 100, "output_tokens": 100}})
"""


@pytest.mark.parametrize("limit", ["max_cost_usd = 0.30", "max_tokens = 300_000"])
def test_a_start_leaves_their_part_to_lanes_that_wait_for_landing(
    tmp_path: Path, limit: str
) -> None:
    """Who has ended and waits to land starts again soon: nobody takes all that is left before."""
    stories = stories_of(*"abcdefghi")
    prices = '[prices."made-up-*"]\ninput = 1.0\noutput = 1.0\n'
    slow = [["sleep", "0.5"]]
    box = yard(
        tmp_path,
        PAID + STEPS,
        stories=stories,
        limits=limit,
        output="claude",
        toml=prices,
        checks=slow,
    )
    done = box.run("--lanes", "3")
    assert "another step would pass it" not in done.text, done.text
    assert done.code == 0, done.text
    assert [starts(box, name) for name in "abcdefghi"] == [1] * 9


def test_lanes_never_start_what_the_money_left_cannot_pay(tmp_path: Path) -> None:
    """Once it is known what a start costs, so many start that all together stay below the limit."""
    agent = 'write(f"{STORY}.txt", STORY)\nanswer(0.3)\n'
    box = paid(tmp_path, agent, *"abcdefgh", limits="max_cost_usd = 1.0")
    done = box.run("--lanes", "2", "--json")
    assert done.code == 3, done.text
    (ended,) = done.events("run_finished")
    assert ended["cost_usd"] == pytest.approx(1.2)  # as one after the other: 0.9 is below the limit


@pytest.mark.parametrize("limit", ["max_cost_usd = 1.0", "max_tokens = 100"])
def test_dear_starts_are_not_made_at_once(tmp_path: Path, limit: str) -> None:
    """Nobody knows what a start takes before the first: four lanes use no more than one would."""
    agent = """
write(f"{STORY}.txt", STORY)
answer(0.9, usage={"input_tokens": 45, "output_tokens": 45})
"""
    box = paid(tmp_path, agent, *"abcdefgh", limits=limit)
    done = box.run("--lanes", "4", "--json")
    assert done.code == 3, done.text
    assert "the first start is made alone" in done.err
    (ended,) = done.events("run_finished")
    assert sum(starts(box, name) for name in "abcdefgh") == 2
    assert ended["cost_usd"] == pytest.approx(1.8)  # as one after the other
    again = box.run("--lanes", "4", "--max-cost", "4", "--max-tokens", "400")
    assert "$4.00, some 4 starts" in again.err
    assert "400 tokens, some 4 starts" in again.err
    assert sum(starts(box, name) for name in "abcdefgh") <= 7


def test_tokens_that_another_lane_may_use_are_not_given_away_again(tmp_path: Path) -> None:
    """A start gets what is left beside the part of one that is still at work."""
    agent = """
def step(number):
    print(json.dumps({"type": "assistant", "session_id": STORY, "parent_tool_use_id": None, "message": {
        "id": f"m{number}", "role": "assistant", "model": "claude-sonnet-4-6", "content": [],
        "usage": {"input_tokens": 9_900, "output_tokens": 100}}}), flush=True)
    with (STATE / "bill").open("a") as bill:
        bill.write("10000\\n")
    time.sleep(0.4)

write(f"{STORY}.txt", str(START))
step(0)
if STORY == "b" and START == 1:
    for number in range(1, 6):
        step(number)
    status()
    sys.exit()
if STORY == "b":
    say("again")
if STORY == "c":
    until("again")
if STORY in "bc":
    for number in range(1, 40):
        step(number)
answer(0.01, usage={"input_tokens": 9_900, "output_tokens": 100})
"""
    limits = "max_tokens = 200_000\nmax_story_share = 1.0"
    box = paid(tmp_path, agent, "a", "b", "c", limits=limits)
    done = box.run("--lanes", "2")
    assert done.code == 3, done.text
    assert starts(box, "b") >= 2, done.text
    assert "another step would pass it (limits.max_tokens)" in done.text
    used = sum(int(line) for line in (box.state / "bill").read_text().split())
    assert 150_000 <= used <= 200_000, done.text


@pytest.mark.parametrize("lanes", ["1", "2"])
def test_what_a_start_used_when_the_run_was_killed_is_priced(tmp_path: Path, lanes: str) -> None:
    """It has said its tokens and not its cost: after kill -9 `--continue` counts them, once."""
    agent = """
if STORY == "a" and START == 1:
    print(json.dumps({"type": "assistant", "session_id": "s", "parent_tool_use_id": None, "message": {
        "id": "m", "role": "assistant", "model": "made-up-9", "content": [],
        "usage": {"input_tokens": 9_900, "output_tokens": 100}}}), flush=True)
    until("never")
write(f"{STORY}.txt", STORY)
answer(0.5)
"""
    prices = '[prices."made-up-*"]\ninput = 1.0\noutput = 1.0\n'
    stories = stories_of("a", "b")
    box = yard(tmp_path, PAID + agent, stories=stories, toml=prices, output="claude")
    run = box.start("--lanes", lanes)
    until = time.monotonic() + 60
    while not any(
        b"made-up-9" in log.read_bytes() for log in box.root.glob(".ralph/transcripts/*/*")
    ):
        assert time.monotonic() < until
        time.sleep(0.05)
    run.kill()
    run.communicate()
    done = box.run("--continue")
    assert done.code == 0, done.text
    assert starts(box, "a") == 2
    assert box.status()["cost_usd"] == pytest.approx(0.01 + 0.5 + 0.5)


# Who ends before the other begins leaves it more than a half, or less.
KEEPS_AND_WAITS = """
(STATE / f"argv-{STORY}").write_text(str(sys.argv))
end = time.monotonic() + 60
while len(list(STATE.glob("argv-*"))) < 2 and time.monotonic() < end:
    time.sleep(0.01)
"""


def test_an_agent_that_takes_a_budget_gets_its_share(tmp_path: Path) -> None:
    """Two at once are told a half each, and no more than is left by what the other may use."""
    box = with_claude(tmp_path, *OLD)
    program = tmp_path / "bin" / "claude"
    kept = 'write("argv-" + str(START), sys.argv)'
    program.write_text(program.read_text().replace(kept, KEEPS_AND_WAITS))
    done = box.run("--lanes", "2", "--max-cost", "1")
    assert done.code == 0, done.text
    assert "$1.00" in done.err
    told = [path.read_text() for path in box.state.glob("argv-*")]
    assert len(told) == 2
    assert all("'--max-budget-usd', '0.5000'" in argv for argv in told), told


def test_a_usage_limit_is_known_to_all(tmp_path: Path) -> None:
    """Nobody starts an agent until the reset that one of them met, and then all goes on."""
    agent = """
(STATE / f"at-{STORY}-{START}").write_text(str(time.time()))
if STORY == "a" and START == 1:
    resets = int(time.time()) + 4
    (STATE / "resets").write_text(str(resets))
    print(json.dumps({"type": "result", "subtype": "success", "is_error": True, "num_turns": 1,
        "result": f"Claude AI usage limit reached|{resets}", "session_id": "s", "usage": {},
        "total_cost_usd": 0}), flush=True)
    sys.exit(1)
if STORY == "b": until("resets"); time.sleep(1)
write(f"{STORY}.txt", STORY)
answer(0.0)
"""
    box = paid(tmp_path, agent, "a", "b", "c")
    done = box.run("--lanes", "2")
    assert done.code == 0, done.text
    resets = float((box.state / "resets").read_text())
    assert float((box.state / "at-c-1").read_text()) >= resets
    assert float((box.state / "at-a-2").read_text()) >= resets


def test_a_person_steers_all_lanes_at_once(tmp_path: Path) -> None:
    """A note is in the next prompts of every lane, and stop ends all of them, to be continued."""
    agent = (
        """
if START == 1: say(STORY); until("go", 60); status(); sys.exit()
if not (STATE / "on").exists(): time.sleep(60)
"""
        + HONEST
    )
    box = yard(tmp_path, agent, stories=stories_of("a", "b"))
    process = box.start("--lanes", "2")
    wait(box, "a", "b")
    assert box.ralph("note", "mind the gap").code == 0
    (box.state / "go").write_text("")
    wait(box, "prompt-a-2", "prompt-b-2")
    assert box.ralph("stop").code == 0
    process.communicate(timeout=60)
    assert process.returncode == 130
    assert all("mind the gap" in (box.state / f"prompt-{n}-2").read_text() for n in "ab")
    assert box.leftovers() == []
    (box.state / "on").write_text("")
    done = box.run("--continue")
    assert done.code == 0, done.text
    assert sorted(box.subjects()) == ["a: Do a", "b: Do b", "start"]


def test_a_lane_can_be_named_instead_of_its_story(tmp_path: Path) -> None:
    """A note is for its story alone, another is set aside; a lane without a story is refused."""
    agent = (
        """
if START == 1: say(STORY); until("go", 60); status(); sys.exit()
"""
        + HONEST
    )
    box = yard(tmp_path, agent, stories=stories_of("a", "b"), limits="max_iterations = 3")
    process = box.start("--lanes", "2")
    wait(box, "a", "b")
    assert box.ralph("note", "--lane", "1", "mind the gap").code == 0
    skipped = box.ralph("skip", "--lane", "2")
    assert "b is set aside" in skipped.out, skipped.text
    refused = box.ralph("skip", "--lane", "3")
    assert (refused.code, "lane 3 holds no story" in refused.err) == (64, True)
    assert box.ralph("skip", "a", "--lane", "1").code == 64
    assert box.ralph("skip").code == 64
    words = {"COMP_WORDS": "ralph skip --lane ", "COMP_CWORD": "3"}
    shown = box.ralph(env={"_RALPH_COMPLETE": "bash_complete", **words}).out
    assert shown.split() == ["plain,1", "plain,2"]
    (box.state / "go").write_text("")
    process.communicate(timeout=60)
    assert box.passes()["a"]
    assert "mind the gap" in (box.state / "prompt-a-2").read_text()
    later = box.state / "prompt-b-2"
    assert not later.exists() or "mind the gap" not in later.read_text()


def wait(box: Sandbox, *names: str) -> None:
    """Until agents have said so."""
    until = time.monotonic() + 60
    while not all((box.state / name).exists() for name in names):
        assert time.monotonic() < until, names
        time.sleep(0.02)


@pytest.mark.tool("bwrap")
def test_the_sandbox_holds_an_agent_in_its_lane(tmp_path: Path) -> None:
    """Neither the checkout nor another lane nor a branch can be written from inside."""
    root = tmp_path / "box" / "project"
    agent = f"""
for place in ({str(root)!r}, {str(root) + ".lanes/landing"!r}):
    try: pathlib.Path(place, "mine.txt").write_text("x")
    except OSError: pass
ended = subprocess.run(["git", "branch", "-f", "main", "HEAD~0"], capture_output=True)
write(f"{{STORY}}.txt", str(ended.returncode))
done()
"""
    box = yard(
        tmp_path, agent, stories=stories_of("a"), toml='[sandbox]\nmode = "on"\nwrite = ["STATE"]\n'
    )
    toml = box.root / "ralph.toml"
    toml.write_text(toml.read_text().replace("STATE", str(box.state)))
    box.git("commit", "-qam", "sandbox")
    done = box.run("--lanes", "1")
    assert done.code == 0, done.text
    assert (box.root / "a.txt").read_text() != "0"
    assert not (box.root / "mine.txt").exists()
    assert not Path(f"{root}.lanes/landing/mine.txt").exists()


def test_the_hour_counts_lanes_that_are_still_made_ready(tmp_path: Path) -> None:
    """Their starts are still to come: no other lane takes them from the hour meanwhile."""
    slow = "import os, time; time.sleep(2 if os.environ['RALPH_LANE'] == '2' else 0)"
    setup = json.dumps([[sys.executable, "-c", slow]])
    box = yard(
        tmp_path,
        "write(f'{STORY}.txt')\ndone()\n",
        stories=stories_of(*"abc"),
        limits='calls_per_hour = 2\nmax_time = "60s"',
        toml=f"[lanes]\nsetup = {setup}\n",
    )
    done = box.run("--lanes", "2")

    assert done.code == 3, done.text
    assert sum(starts(box, name) for name in "abc") == 2, done.text


def test_a_run_that_goes_on_in_its_lanes_knows_how_many_they_are(tmp_path: Path) -> None:
    """`--continue` alone: a start that meets its part of the tokens does not end the others' run."""
    agent = f"""{STEP}
if START == 1:
    say("begun")
    time.sleep(60)
for _ in range(6):
    step()
    time.sleep(0.4)
"""
    box = yard(
        tmp_path, agent, stories=stories_of("a"), limits="max_tokens = 50_000", output="claude"
    )
    run = box.start("--lanes", "2")
    while not (box.state / "begun").exists():
        time.sleep(0.02)
        assert run.poll() is None
    run.kill()
    run.communicate()
    done = box.run("--continue")

    met = [it.end.ceiling for it in box.records() if it.end.ceiling]
    assert met
    assert met[0] == "start", done.text


def test_what_a_person_adds_is_not_each_lanes_to_spend(tmp_path: Path) -> None:
    """Two starts under way keep to their parts, and all together to the budget as it is then."""
    agent = f"""{PAID}{STEP}
step()
if STORY != "a":
    say(f"at-work-{{STORY}}")
    for _ in range(15):
        time.sleep(0.3)
        step()
write(f"{{STORY}}.txt", STORY)
answer(used / 1e6, usage={{"input_tokens": used - 100, "output_tokens": 100}})
"""
    box = yard(
        tmp_path,
        agent,
        stories=stories_of(*"abc"),
        limits="max_cost_usd = 0.07",
        output="claude",
        toml='[prices."made-up-*"]\ninput = 1.0\noutput = 1.0\n',
    )
    run = box.start("--lanes", "2")
    while not all((box.state / f"at-work-{name}").exists() for name in "bc"):
        time.sleep(0.02)
        assert run.poll() is None
    assert box.ralph("budget", "--cost", "0.05").code == 0
    out, err = run.communicate(timeout=60)

    # Out of budget; where starts that end at their limit come too close, of what they achieve.
    assert run.returncode in (1, 3), out + err
    first_steps = 2 * 0.01  # of which nobody knows before what they cost
    assert box.status()["cost_usd"] <= 0.12 + first_steps + 1e-9, out
