"""Every way a loop burns money ends after so many starts, with its code and its words."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from tests.guarantees import Measured
from tests.loop.guards import DEAD_CONVERSATION, GUARDS, Guard, claude_sandbox, told
from tests.loop.projects import sandbox


@pytest.mark.parametrize("guard", GUARDS, ids=lambda guard: guard.name)
def test_a_misbehaving_agent_is_bounded(tmp_path: Path, guard: Guard, measured: Measured) -> None:
    """The agent is started exactly as often as the rules allow, and the command says why."""
    box = guard.sandbox(tmp_path)
    done = guard.run(box)
    assert guard.faults(box, done) == [], told(done)
    measured(box.starts)


def test_a_dead_conversation_is_resumed_once(tmp_path: Path, measured: Measured) -> None:
    """A conversation that is gone costs one start; the next one is fresh and works."""
    box = claude_sandbox(
        tmp_path, DEAD_CONVERSATION, toml='context = "resume"\nask_for_status = false\n'
    )
    done = box.run("--json")
    assert done.code == 0, told(done)
    assert (box.state / "resumed").read_text().split() == ["False", "True", "False"]
    measured((box.state / "resumed").read_text().split().count("True"))


def test_the_cost_of_a_resumed_conversation_is_counted_once(tmp_path: Path) -> None:
    """A result that names the whole conversation and what is new in it costs what is new."""
    claude = """
    write(f"src/{START}.py", START)
    new = {"m": {"inputTokens": 10, "outputTokens": 5, "costUSD": 0.25}}
    says("Working.")
    result(f"Part {START} is there.", cost=0.25 * START, model_usage_since_last_result=new)
    """
    box = claude_sandbox(tmp_path, claude, toml='context = "resume"\nask_for_status = false\n')
    done = box.run("--json", "--max-cost", "1")
    assert done.code == 3, told(done)
    assert box.starts == 4
    assert done.events("run_finished")[0]["cost_usd"] == pytest.approx(1.0)


LIMITS = {
    "--max-iterations": ("2", 2, "2 iterations were allowed"),
    "--max-cost": ("0.2", 2, "$0.20 of $0.20 is spent"),
    "--max-time": ("1s", 1, "as long as it may"),
}


@pytest.mark.parametrize("flag", LIMITS)
def test_a_limit_that_is_used_up_starts_nothing_after_a_restart(
    tmp_path: Path, flag: str, measured: Measured
) -> None:
    """Limits are totals of the session: `--continue` under the same limit ends at once."""
    value, starts, words = LIMITS[flag]
    agent = "write(f'src/{START}.py', START); says('Working.'); result('Did a part.')"
    if flag == "--max-time":
        agent = "time.sleep(1.1); " + agent
    box = sandbox(tmp_path, agent, output="claude")
    for arguments in ([], ["--continue"], ["--continue"]):
        done = box.run(*arguments, flag, value)
        assert done.code == 3
        assert words in done.text
    assert box.starts == starts
    measured(box.starts - starts)


def test_raised_limits_let_the_session_go_on(tmp_path: Path) -> None:
    """`--continue --max-iterations 5` after 3 of 3 allows exactly two more starts."""
    box = sandbox(tmp_path, "write(f'src/{START}.py', START); status(words=f'Part {START}.')")
    assert box.run("--max-iterations", "3").code == 3
    assert box.run("--continue", "--max-iterations", "5").code == 3
    assert box.starts == 5


def test_a_limit_reached_with_the_last_story_is_no_limit(tmp_path: Path) -> None:
    """Two stories in two allowed iterations: the project is complete, not cut short."""
    box = sandbox(tmp_path, "write(f'src/{START}.py', START); done()", stories=2)
    done = box.run("--max-iterations", "2")
    assert done.code == 0, done.text
    assert box.run("--continue", "--max-iterations", "2").code == 64
    assert box.starts == 2


def test_waiting_for_a_limit_is_no_iteration_and_survives_a_restart(
    tmp_path: Path, measured: Measured
) -> None:
    """A run killed while it waits goes on waiting, and nothing of it counts as an iteration."""
    agent = """
    if START == 1:
        write(STATE / "lifted", int(time.time()) + 5)
        print("Claude AI usage limit reached|" + (STATE / "lifted").read_text()); sys.exit(1)
    (STATE / "went-on").write_text(str(time.time()))
    write("a.txt"); done()
    """
    box = sandbox(tmp_path, agent)
    process = box.start()
    box.wait_for_start()
    time.sleep(1)
    process.kill()
    process.communicate()
    done = box.run("--continue", "--json")
    assert done.code == 0, told(done)
    lifted, went_on = (float((box.state / name).read_text()) for name in ("lifted", "went-on"))
    assert went_on >= lifted
    assert done.events("waiting")[0]["kind"] == "quota"
    assert done.events("run_finished")[0]["iterations"] == 1
    assert box.starts == 2
    measured(box.starts)


def test_what_was_left_running_is_named_in_the_next_prompt(tmp_path: Path) -> None:
    """A process that outlives its agent is stopped, and the next start is told so."""
    agent = """
    if START == 1:
        subprocess.Popen(["sleep", "61"], start_new_session=True, stdout=subprocess.DEVNULL)
        write("a.txt"); status()
    else:
        write("b.txt"); done()
    """
    box = sandbox(tmp_path, agent)
    assert box.run().code == 0
    assert "Stopped after the last run" in box.prompt(2)
    assert "sleep" in box.prompt(2)
    assert box.leftovers() == []


def test_starts_an_hour_count_over_sessions(tmp_path: Path, measured: Measured) -> None:
    """A new session does not get a new hour."""
    box = sandbox(tmp_path, "write(f'src/{START}.py', START); status(words=f'Part {START}.')")
    assert box.run("--max-iterations", "2").code == 3
    done = box.run("--calls", "3", "--no-wait")
    assert done.code == 3
    assert "3 starts in the last hour" in done.text
    assert box.starts == 3
    measured(box.starts)
