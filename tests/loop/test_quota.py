"""The budgets of people with a subscription: usage windows, the reserve, the end of the night."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.guarantees import Measured
from tests.loop.projects import Sandbox, sandbox

GREEN = [["test", "-d", "."]]
TOLD = """
def told(used, seconds=7200):
    resets_at = int(time.time()) + seconds
    event(type="rate_limit_event", rate_limit_info={"status": "allowed", "resetsAt": resets_at,
          "rateLimitType": "five_hour", "unifiedWindows": {
              "five_hour": {"utilization": used, "resetsAt": resets_at},
              "seven_day": {"utilization": 0.4, "resetsAt": resets_at + 86400}}})

def work():
    write(f"{STORY}.txt", START)
    says("Working.")
    result("Done.\\n\\n---RALPH_STATUS---\\nSTATUS: COMPLETE\\nEXIT_SIGNAL: false\\n---END_RALPH_STATUS---")
"""
HANGS = """
write("half.txt", START)
print("Working on it.", flush=True)
time.sleep(90)
"""
LIMITED = "print(f'Claude AI usage limit reached|{int(time.time()) + 7200}'); sys.exit(1)"


def subscriber(tmp_path: Path, agent: str, limits: str = "", stories: int = 2) -> Sandbox:
    """A project whose agent tells how much of its subscription is used."""
    return sandbox(
        tmp_path, f"{TOLD}\n{agent}", stories=stories, checks=GREEN, limits=limits, output="claude"
    )


def soon(lead: float) -> tuple[dict[str, str], str]:
    """A time zone in which a minute is over so many seconds from now, and what its clock says then.

    POSIX zones may be seconds apart, so no test has to wait for a real minute to end.
    """
    now = time.time()
    offset = (int(now) + round(lead)) % 60
    then = time.gmtime(now - offset + 60)
    return {"TZ": f"AAA0:00:{offset:02d}"}, f"{then.tm_hour:02d}:{then.tm_min:02d}"


def test_what_is_used_of_a_subscription_is_shown_with_the_money(tmp_path: Path) -> None:
    """Console, end of the run, JSON, status, monitor and report tell it from the journal."""
    box = subscriber(tmp_path, "told(0.3); work()", stories=1)
    done = box.run()
    assert done.code == 0, done.text
    words = "5-hour window 30% used"
    assert f"1 file changed, {words}, weekly window 40% used" in done.out
    assert f"quota: {words} (resets " in done.out
    assert box.records()[0].response.windows[0].used == 0.3
    quota = {one["kind"]: one["used"] for one in box.status()["quota"]}
    assert quota == {"five_hour": 0.3, "seven_day": 0.4}
    for command in (("status",), ("monitor", "--once"), ("report",)):
        told = box.ralph(*command)
        assert words in told.out, (command, told.text)


@pytest.mark.parametrize("used, code, starts", [(0.79, 0, 2), (0.8, 3, 1)])
def test_a_reserve_of_the_window_is_left(
    tmp_path: Path, measured: Measured, used: float, code: int, starts: int
) -> None:
    """The start that would leave less is not made; what is done by then is kept."""
    limits = 'reserve = "20%"\non_usage_limit = "stop"'
    box = subscriber(tmp_path, f"told({used}); work()", limits)
    done = box.run()
    assert (done.code, box.starts) == (code, starts), done.text
    assert box.passes()["US-1"]
    assert ("20% is to be left (limits.reserve)" in done.out) == bool(code)
    measured(box.starts)


def test_a_reserve_is_waited_for(tmp_path: Path) -> None:
    """With `wait` the run goes on when the window has reset, and says when that is."""
    agent = "told(0.95, 4) if START == 1 else told(0.02); work()"
    box = subscriber(tmp_path, agent, 'reserve = "20%"')
    done = box.run()
    assert (done.code, box.starts) == (0, 2), done.text
    assert "  waiting " in done.out
    assert "5-hour window 95% used (resets " in done.out


@pytest.mark.parametrize("mode", ["wait", "stop"])
def test_a_reserve_reached_with_the_last_story_is_no_limit(tmp_path: Path, mode: str) -> None:
    """Nothing is left to do, so nothing is waited for."""
    limits = f'reserve = "20%"\non_usage_limit = "{mode}"'
    box = subscriber(tmp_path, "told(0.95); work()", limits, stories=1)
    done = box.run()
    assert done.code == 0, done.text
    assert "  waiting " not in done.out


def test_a_reserve_that_outlasts_the_time_ends_the_run_now(tmp_path: Path) -> None:
    """Two hours of waiting do not fit into one: exit 3 with the reset and what helps."""
    box = subscriber(tmp_path, "told(0.95); work()", 'reserve = "20%"')
    done = box.run("--max-time", "1h")
    assert (done.code, box.starts) == (3, 1), done.text
    assert "would outlast the 59m" in done.out
    assert "next: Once the usage limit is lifted: `ralph run --continue --max-time D`" in done.err


def test_a_wait_tells_when_it_goes_on(tmp_path: Path) -> None:
    """The time is one of this place, on the console and in the message."""
    message = tmp_path / "message"
    box = sandbox(
        tmp_path,
        "if START == 1: print(f'Claude AI usage limit reached|{int(time.time()) + 2}'); sys.exit(1)\n"
        "write('a.txt'); done()",
        checks=GREEN,
        toml=f'[notify]\ncommand = ["sh", "-c", "cat >> {message}"]\n',
    )
    env, _ = soon(30)
    done = box.run(env=env)
    assert done.code == 0, done.text
    here = time.strftime("%H:", time.gmtime(time.time() - int(env["TZ"][-2:])))
    assert f" until {here}" in done.out
    assert "It goes on at " in message.read_text()


# --- the end of the night --------------------------------------------------------------------


def stopped_in_time(box: Sandbox, *arguments: str, env: dict[str, str] | None = None) -> str:
    """What a run said whose agent was at work when the time was over."""
    began = time.monotonic()
    done = box.run(*arguments, env=env)
    assert (done.code, box.starts) == (3, 1), done.text
    assert time.monotonic() - began < 60, "the agent would have hung for longer"
    assert (box.root / "half.txt").read_text() == "1"
    record = box.records()[0]
    assert (record.analysis.outcome, record.decision.word) == ("interrupted", "budget_exhausted")
    assert box.status()["run"]["can_continue"]
    assert "--max-cost" not in done.err
    return done.text


def test_the_time_also_ends_a_start_that_is_running(tmp_path: Path, measured: Measured) -> None:
    """The agent is interrupted, its work kept, no attempt counted, the right flag named."""
    box = sandbox(tmp_path, HANGS, checks=GREEN)
    told = stopped_in_time(box, "--max-time", "2s")
    assert "as long as it may (limits.max_time)" in told
    assert "next: To go on with more of it: `ralph run --continue --max-time D`" in told
    assert "limits.max_time" in box.ralph("status").out
    assert "--max-time D" in box.ralph("status").out
    measured(box.starts)


def test_until_ends_the_night_and_nothing_resumes_after_it(
    tmp_path: Path, measured: Measured
) -> None:
    """Also across --continue, until a person says another time."""
    box = sandbox(
        tmp_path, HANGS.replace("time.sleep(90)", "time.sleep(90 * (START == 1)); done()")
    )
    env, until = soon(5)
    told = stopped_in_time(box, "--until", until, env=env)
    assert f"the run was to end at {until} (limits.until)" in told
    assert "ralph run --continue --until HH:MM" in told
    again = box.run("--continue", env=env)
    assert (again.code, box.starts) == (3, 1), again.text
    assert "(limits.until)" in again.out
    measured(box.starts)
    later = box.run("--continue", "--until", until, env=env)  # tomorrow
    assert (later.code, box.starts) == (0, 2), later.text


def test_a_wait_that_would_outlast_until_ends_the_run_now(tmp_path: Path) -> None:
    """A limit of two hours and a night that ends within a minute do not go together."""
    env, until = soon(40)
    done = sandbox(tmp_path, LIMITED).run("--until", until, env=env)
    assert done.code == 3, done.text
    assert f"would outlast {until} (limits.until)" in done.out
    assert "usage limit reached, resets " in done.out
    assert "ralph run --continue --until HH:MM" in done.err


def test_work_that_ends_in_time_is_not_met_by_until(tmp_path: Path) -> None:
    """A night with hours to go ends as it would have."""
    box = sandbox(tmp_path, "write('a.txt'); done()", checks=GREEN)
    now = time.gmtime(time.time() + 7200)
    done = box.run("--until", f"{now.tm_hour}:{now.tm_min:02d}", env={"TZ": "UTC"})
    assert done.code == 0, done.text


@pytest.mark.parametrize("flag, value", [("--until", "25:00"), ("--until", "tomorrow")])
def test_nonsense_is_refused_with_an_example(tmp_path: Path, flag: str, value: str) -> None:
    """Before anything is started."""
    box = sandbox(tmp_path, "done()")
    done = box.run(flag, value)
    assert done.code in (64, 65), done.text
    assert '"07:00"' in done.err
    assert box.starts == 0


def test_a_commit_is_not_cut_in_half(tmp_path: Path) -> None:
    """While git holds its lock the agent has a moment longer."""
    agent = """
    write("half.txt", START)
    write(".git/index.lock", "")
    print("Committing.", flush=True)
    time.sleep(4)
    os.unlink(".git/index.lock"); write("committed.txt")
    time.sleep(90)
    """
    box = sandbox(tmp_path, agent, checks=GREEN)
    stopped_in_time(box, "--max-time", "2s")
    assert (box.root / "committed.txt").exists()


# --- silence ---------------------------------------------------------------------------------


def test_a_silent_agent_is_put_aside_while_others_can_run(
    tmp_path: Path, measured: Measured
) -> None:
    """Three silences on one story, then the next one; what they cost is not called nothing."""
    agent = "time.sleep(60 * (STORY == 'US-1')); write('b.txt'); done()"
    box = sandbox(tmp_path, agent, stories=2, checks=GREEN, limits='stall_timeout = "900ms"')
    done = box.run()
    assert box.worked_on()[:4] == ["US-1", "US-1", "US-1", "US-2"], done.text
    assert box.passes() == {"US-1": False, "US-2": True}
    assert "US-1 is set aside: the agent said nothing 3 times in a row" in done.out
    assert done.code == 69, done.text  # its second chance is silent too, and it is the last
    assert box.status()["unpriced_starts"] == 7
    measured(box.worked_on().count("US-1"))


def test_a_long_thought_or_two_are_no_silence(tmp_path: Path, measured: Measured) -> None:
    """An agent that answers the third time is not met by it."""
    agent = "time.sleep(60 * (START < 3)); write('b.txt'); done()"
    box = sandbox(tmp_path, agent, checks=GREEN, limits='stall_timeout = "900ms"')
    done = box.run()
    assert (done.code, box.starts) == (0, 3), done.text
    measured(box.starts)
