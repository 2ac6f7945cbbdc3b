"""A night on machines that are reached by ssh."""

from __future__ import annotations

import json
import shlex
from pathlib import Path

import pytest

from ralphloop.core import readable
from ralphloop.journal.queries import GIVEN_KEY, JournalReader
from ralphloop.journal.records import HeardOfStart, IterationRecord
from ralphloop.proc.run import ourselves
from ralphloop.project import Project
from tests.fleet.machines import (
    cut,
    ended_everywhere,
    environment,
    eventually,
    fleet_yard,
    machine,
    over_ssh,
)
from tests.lanes.yards import landed_once, starts
from tests.loop.fake_git import FakeGit
from tests.loop.projects import Sandbox, story
from tests.starting import run_to_end
from tests.tables import some_of


def test_stories_are_worked_on_elsewhere_and_landed_here(tmp_path: Path) -> None:
    """Every story is worked on by one of two machines and landed once; nothing is left anywhere."""
    box = fleet_yard(tmp_path)
    machine(tmp_path, "one")
    machine(tmp_path, "two")

    done = box.run("--fleet", "ssh:one,two", env=over_ssh(box, tmp_path))

    assert done.code == 0, done.text
    landed_once(box, "main", "A", "B", "C")
    where = [(box.state / f"where-{name}-1").read_text() for name in "ABC"]
    assert {words.split()[0] for words in where} == {"one", "two"}
    assert all(str(tmp_path / "machines") in words for words in where)
    assert box.git("ls-remote", "origin", "refs/ralph/*") == ""
    ended_everywhere(box)


def test_a_machine_that_says_its_checks_are_green_lands_nothing_by_that(tmp_path: Path) -> None:
    """Green over there and red where stories land: it is sent back with what was seen here."""
    check = ["sh", "-c", 'test -n "$MACHINE" || ! test -e A.txt']
    box = fleet_yard(tmp_path, names=("A", "B"), checks=[check], limits="max_attempts = 1")
    machine(tmp_path, "one")

    done = box.run("--fleet", "ssh:one", env=over_ssh(box, tmp_path))

    assert done.code != 0, done.text
    subjects = box.git("log", "--all", "--format=%s").split("\n")
    assert "A: Do A" not in subjects
    assert box.passes() == {"A": False, "B": True}


WAITING = """
if STORY == "A" and START == 1:
    write("A.txt", "half")
    (STATE / "works").write_text(os.environ["MACHINE"])
    until("go", 60)
write(f"{STORY}.txt", STORY)
done()
"""
LEASE = {"RALPH_FLEET_LEASE": "6s"}


def test_a_cut_connection_ends_the_agent_and_its_story_goes_on(tmp_path: Path) -> None:
    """What the agent had done by then is reported by git, and the next start goes on from there."""
    box = fleet_yard(tmp_path, WAITING, names=("A", "B"))
    machine(tmp_path, "one")
    run = box.start("--fleet", "ssh:one", env=over_ssh(box, tmp_path) | LEASE)
    eventually((box.state / "works").exists)
    cut(box, "one")
    out, err = run.communicate(timeout=150)

    assert run.returncode == 0, out + err
    assert starts(box, "A") == 2
    landed_once(box, "main", "A", "B")


def test_a_run_that_dies_takes_its_agents_with_it(tmp_path: Path) -> None:
    """After kill -9 where the person sits no agent is left elsewhere; `--continue` loses no work."""
    box = fleet_yard(tmp_path, WAITING, names=("A", "B"))
    machine(tmp_path, "one")
    env = over_ssh(box, tmp_path) | LEASE
    run = box.start("--fleet", "ssh:one", env=env)
    eventually((box.state / "works").exists)
    run.kill()
    run.communicate()
    ended_everywhere(box)
    done = box.run("--continue", env=env)

    assert done.code == 0, done.text
    assert "took up iteration" in done.text
    assert starts(box, "A") == 2
    landed_once(box, "main", "A", "B")


NONSENSE = """\
#!/bin/sh
# stand-in for ralph on a machine: its first report is none, then it is what it should be
test -e {state}/reported && exec {ralph} "$@"
touch {state}/reported
read ticket
id=$(echo "$ticket" | sed 's/.*"id":"\\([^"]*\\)".*/\\1/')
git clone -q {remote} {state}/theirs && cd {state}/theirs
for n in 1 2 3; do git -c user.name=x -c user.email=x commit -q --allow-empty -m $n; done
git push -q origin HEAD:refs/ralph/reports/$id
echo '{{"machine": "one", "phase": "sending", "report": "'$(git rev-parse HEAD)'"}}'
"""


def test_a_report_that_is_none_costs_its_start_alone(tmp_path: Path) -> None:
    """Nobody can read what a machine sent: its story starts anew, and the night goes on."""
    box = fleet_yard(tmp_path, names=("A",))
    machine(tmp_path, "one")
    hand = tmp_path / "hand"
    text = NONSENSE.format(
        state=box.state, remote=tmp_path / "app.git", ralph=shlex.join(ourselves())
    )
    hand.write_text(text)
    hand.chmod(0o755)
    env = over_ssh(box, tmp_path) | {"RALPH_FLEET_PROGRAM": str(hand), "RALPH_LIMITS_BACKOFF": "0s"}
    done = box.run("--fleet", "ssh:one", env=env)

    assert done.code == 0, done.text
    assert "the report of one cannot be read" in done.err
    assert [it.analysis.outcome for it in box.records()] == ["killed", "completed"]
    landed_once(box, "main", "A")


KILLED = {"as an order is packed": ("mktree", 1), "as a report is brought": ("fetch", 2)}


@pytest.mark.parametrize("nth", some_of(KILLED, ["as an order is packed"]))
def test_a_git_that_is_killed_does_not_end_the_night(tmp_path: Path, nth: tuple[str, int]) -> None:
    """Where the person sits: what it was asked is asked again."""
    box = fleet_yard(tmp_path, names=("A",))
    machine(tmp_path, "one")
    git = FakeGit(box, tmp_path / "fake")
    command, first = nth
    git.dies(command, first=first)
    done = box.run("--fleet", "ssh:one", env=over_ssh(box, tmp_path))

    assert git.deaths == 1
    assert done.code == 0, done.text
    assert starts(box, "A") == 1
    landed_once(box, "main", "A")


def test_a_machine_refuses_with_words(tmp_path: Path) -> None:
    """Not on its list, settings nobody there agreed to, a label it lacks: nothing is started.

    Once somebody on that machine has said yes, in the work tree that was named, it works.
    """
    box = fleet_yard(tmp_path, names=("A",), stories=[story("A", machine=["gpu"])])
    machine(tmp_path, "stranger", labels=["gpu"], repos={"other": "/nowhere"})
    machine(tmp_path, "plain")
    wary = machine(tmp_path, "wary", labels=["gpu"])
    env = over_ssh(box, tmp_path, trust=False)

    done = box.run("--fleet", "ssh:stranger,plain,wary", env=env)

    assert done.code == 69, done.text
    assert "the repository 'app' is not on the list of stranger (other)" in done.text
    assert "plain does not have gpu" in done.text
    assert "nobody on wary said yes to the settings of app (agent.command, checks.commands)" in (
        done.text
    )
    assert starts(box, "A") == 0
    tree = wary / "data/ralph-fleet/app/trees/1"
    assert f"cd {tree} && ralph trust" in done.text
    said = run_to_end(
        [*ourselves(), "trust", "--yes"],
        cwd=tree,
        env={**environment(box, wary), "RALPH_TRUST": ""},
        timeout=60,
    )
    assert said.returncode == 0, said.stderr
    again = box.run("--fleet", "ssh:wary", env=env)
    assert again.code == 0, again.text
    landed_once(box, "main", "A")


SPENDING = """
import json
def event(**fields):
    print(json.dumps(fields), flush=True)
words = {"id": f"m{START}", "role": "assistant", "model": "m",
         "content": [{"type": "text", "text": "I begin."}],
         "usage": {"input_tokens": 100, "output_tokens": 20}}
event(type="assistant", session_id="s-1", parent_tool_use_id=None, message=words)
write(f"{STORY}.txt", STORY)
if STORY == "A" and START == 1:
    (STATE / "works").write_text(os.environ["MACHINE"])
    until("go", 60)
block = "---RALPH_STATUS---\\nSTATUS: COMPLETE\\nEXIT_SIGNAL: false\\n---END_RALPH_STATUS---"
event(type="result", subtype="success", is_error=False, result=block, session_id="s-1",
      num_turns=1, total_cost_usd=0.25, permission_denials=[],
      usage={"input_tokens": 100, "output_tokens": 20})
"""


def test_money_of_a_start_that_is_taken_up_is_counted(tmp_path: Path) -> None:
    """It said its tokens and not its cost when the run was killed: `--continue` prices them, once."""
    toml = "[prices]\nmodels = { m = { input = 1.0, output = 5.0 } }\n"
    box = fleet_yard(tmp_path, SPENDING, names=("A", "B"), output="claude", toml=toml)
    machine(tmp_path, "one")
    env = over_ssh(box, tmp_path) | LEASE
    run = box.start("--fleet", "ssh:one", env=env)
    eventually((box.state / "works").exists)
    run.kill()
    run.communicate()
    ended_everywhere(box)
    done = box.run("--continue", env=env)

    assert done.code == 0, done.text
    assert "took up iteration" in done.text
    assert [starts(box, name) for name in "AB"] == [2, 1]
    assert box.status()["cost_usd"] == pytest.approx(0.0002 + 0.25 + 0.25)
    landed_once(box, "main", "A", "B")


def _first_start(box: Sandbox) -> tuple[HeardOfStart, IterationRecord]:
    """What was heard of the first start of the first run, and what is written down of it."""
    with JournalReader.open(Project(box.root).journal) as journal:
        run = journal.runs(10)[-1].id
        heard = readable(journal.meta(GIVEN_KEY.format(f"{run}/1")), HeardOfStart)
        return heard, next(iter(journal.every_iteration(run)))


def test_money_of_a_start_that_nobody_waits_for_is_counted(tmp_path: Path) -> None:
    """A new run without the fleet writes down what was heard of it, and says where it was."""
    toml = "[prices]\nmodels = { m = { input = 1.0, output = 5.0 } }\n"
    box = fleet_yard(tmp_path, SPENDING, names=("A",), output="claude", toml=toml)
    machine(tmp_path, "one")
    run = box.start("--fleet", "ssh:one", env=over_ssh(box, tmp_path) | LEASE)
    eventually((box.state / "works").exists)
    eventually(lambda: _first_start(box)[0].has_answered)
    run.kill()
    run.communicate()
    ended_everywhere(box)
    done = box.run("--max-iterations", "1")

    assert "nobody waits any more for iteration 1 on one" in done.err
    heard, written = _first_start(box)
    assert heard.tokens == 120
    assert written.cost_usd == pytest.approx(0.0002)
    assert written.record.machine == "one"


@pytest.mark.tool("bwrap")
def test_money_of_a_cut_start_is_counted_once_in_the_sandbox_as_well(tmp_path: Path) -> None:
    """A confined agent works elsewhere; what a start used whose connection was cut is in the sums."""
    toml = '[sandbox]\nmode = "on"\n[prices]\nmodels = { m = { input = 1.0, output = 5.0 } }\n'
    box = fleet_yard(tmp_path, SPENDING, names=("A", "B"), toml=toml)
    settings = box.root / "ralph.toml"
    text = settings.read_text().replace("[checks]", 'format = "claude"\n[checks]', 1)
    text = text.replace('mode = "on"\n', f'mode = "on"\nwrite = [{json.dumps(str(box.state))}]\n')
    settings.write_text(text)
    box.git("commit", "-qam", "settings")
    box.git("push", "-q", "origin", "main")
    machine(tmp_path, "one")
    run = box.start("--fleet", "ssh:one", env=over_ssh(box, tmp_path) | LEASE)
    eventually(lambda: (box.state / "works").exists() or run.poll() is not None)
    cut(box, "one")
    out, err = run.communicate(timeout=150)

    assert run.returncode == 0, out + err
    assert [starts(box, name) for name in "AB"] == [2, 1]
    assert box.status()["cost_usd"] == pytest.approx(0.0002 + 0.25 + 0.25)
    landed_once(box, "main", "A", "B", others=1)
