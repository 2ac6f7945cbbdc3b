"""A fleet on a real Temporal server, and everything that can break in one night.

After each: one commit for each story in a line, the marks right, money counted once, nothing left
at work on any machine, and the night is decided the same again (`held_to_the_end` looks at all of it).
"""

from __future__ import annotations

import asyncio
import os
import shutil
import signal
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from datetime import timedelta
from pathlib import Path

import msgspec
import psutil
import pytest
from temporalio.api.taskqueue.v1 import TaskQueue
from temporalio.api.workflowservice.v1 import PollActivityTaskQueueRequest

from ralphloop import __version__
from ralphloop.config.model import FleetSection
from ralphloop.fleet.temporal import Identity, connect, queue_of
from tests.e2e.conftest import World
from tests.e2e.model_server import ModelServer, say, shell, use
from tests.e2e.projects import Project, assert_done, claim, of_story, project
from tests.e2e.projects import story as story_of
from tests.e2e.trouble import claude_usage_limit
from tests.fleet.machines import (
    Server,
    eventually,
    of_machine,
    real_sshd,
    temporal_server,
    workers,
)
from tests.fleet.nights import (
    LEASE,
    begun,
    ended,
    held_to_the_end,
    iterations,
    paid_yard,
    works_on,
)
from tests.lanes.yards import starts
from tests.loop.projects import Sandbox, story

pytestmark = pytest.mark.e2e
# The first start of A works until it is told to end; on a machine that came back it would go on.
AGENT = """
step()
if STORY == "A" and START == 1:
    (STATE / "works").write_text(os.environ["MACHINE"])
    until("go", 60)
    write("A.txt", "of the first start")
step()
write(f"{STORY}.txt", STORY)
done()
"""
NAMES = ("A", "B", "C")
_LIMIT_S = 12
_SBIN = f"/usr/sbin:{os.environ.get('PATH', '')}"


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    """A server of the test's own."""
    with temporal_server(tmp_path) as found:
        yield found


def test_stories_are_worked_on_by_workers_and_landed_here(tmp_path: Path, server: Server) -> None:
    """Two workers take the orders of a run; every story lands once, and the machines are named."""
    box = paid_yard(tmp_path, AGENT.replace('== "A"', '== ""'), names=NAMES)
    with workers(box, server, tmp_path, "one", "two"):
        done = box.run("--fleet", server.address)
        said = box.ralph("fleet", "status", "--server", server.address)

    assert done.code == 0, done.text
    held_to_the_end(box, *NAMES)
    where = [(box.state / f"where-{name}-1").read_text().split()[0] for name in NAMES]
    assert set(where) <= {"one", "two"}
    assert "is on one" in done.text or "is on two" in done.text
    assert [line.split()[0] for line in said.out.splitlines()] == ["one", "two"]
    assert box.git("ls-remote", "origin", "refs/ralph/*") == ""


def test_a_worker_that_is_killed_loses_only_its_start(tmp_path: Path, server: Server) -> None:
    """After kill -9 of a worker its agent ends, and its story is started once more elsewhere."""
    box = paid_yard(tmp_path, AGENT, names=NAMES)
    with workers(box, server, tmp_path, "one", "two") as machines:
        run = begun(box, server)
        lost = works_on(box)
        machines[lost].kill()
        eventually(lambda: of_machine(box, lost) == [])
        said = ended(run)

    assert run.returncode == 0, said
    assert starts(box, "A") == 2
    held_to_the_end(box, *NAMES)


def test_a_machine_that_is_gone_loses_only_its_start(tmp_path: Path, server: Server) -> None:
    """Where worker, hand and agent vanish at once, the story is started once more elsewhere."""
    box = paid_yard(tmp_path, AGENT, names=NAMES)
    with workers(box, server, tmp_path, "one", "two"):
        run = begun(box, server)
        for pid in of_machine(box, works_on(box)):
            os.kill(pid, signal.SIGKILL)
        said = ended(run)

    assert run.returncode == 0, said
    assert "was not heard of any more" in said
    assert starts(box, "A") == 2
    held_to_the_end(box, *NAMES)


@pytest.mark.parametrize("what", ["machine", "worker"])
def test_what_sleeps_longer_than_its_lease_lands_nothing(
    tmp_path: Path, server: Server, what: str
) -> None:
    """A whole machine stops its agent when it wakes up, a hand as soon as its worker sleeps."""
    box = paid_yard(tmp_path, AGENT, names=NAMES)
    with workers(box, server, tmp_path, "one", "two") as machines:
        run = begun(box, server)
        lost = works_on(box)
        asleep = of_machine(box, lost) if what == "machine" else [machines[lost].process.pid]
        for pid in asleep:
            os.kill(pid, signal.SIGSTOP)
        eventually(lambda: starts(box, "A") == 2, 60)
        if what == "worker":
            eventually(lambda: of_machine(box, lost) == asleep, 20)
        for pid in asleep:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGCONT)
        eventually(lambda: len(of_machine(box, lost)) == 1, 20)  # its worker; A would take longer
        said = ended(run)

    assert run.returncode == 0, said
    # A hand that is awake has reported by git what it had done by then.
    assert (f"{lost} was not heard of any more" in said) == (what == "machine")
    held_to_the_end(box, *NAMES)


def test_a_server_that_dies_is_waited_for(tmp_path: Path, server: Server) -> None:
    """Killed and started again within the lease, it costs no start."""
    box = paid_yard(tmp_path, AGENT, names=NAMES)
    with workers(box, server, tmp_path, "one", "two"):
        run = box.start("--fleet", server.address)
        eventually((box.state / "works").exists)
        server.kill()
        server.start()
        (box.state / "go").touch()
        said = ended(run)

    assert run.returncode == 0, said
    assert starts(box, "A") == 1
    held_to_the_end(box, *NAMES)


def _taken_and_lost(server: Server) -> str:
    """Have the server give an order to a machine whose connection loses it; the order's id."""
    request = PollActivityTaskQueueRequest(
        namespace="default",
        task_queue=TaskQueue(name=queue_of("app")),
        identity=msgspec.json.encode(Identity(name="lost", version=__version__)).decode(),
    )

    async def take() -> str:
        client = await connect(server.address, FleetSection(), {})
        answer = await client.workflow_service.poll_activity_task_queue(
            request, timeout=timedelta(seconds=60)
        )
        return answer.activity_id

    return asyncio.run(take())


def test_an_order_that_no_machine_has_is_given_away_again(tmp_path: Path, server: Server) -> None:
    """A busy server says that it has begun, and lost it: that costs no start, and not the lease."""
    box = paid_yard(tmp_path, AGENT.replace('== "A"', '== ""'), names=("A",))
    with ThreadPoolExecutor(1) as aside:
        taking = aside.submit(_taken_and_lost, server)
        run = box.start("--fleet", server.address, "--lanes", "1", env={"RALPH_FLEET_LEASE": "30s"})
        taken = taking.result(60)
        with workers(box, server, tmp_path, "one"):
            said = ended(run, 100)

    assert run.returncode == 0, said
    assert taken.endswith("/1")
    assert "was not heard of" not in said
    assert starts(box, "A") == 1
    assert [one.n for one in iterations(box)] == [1]
    held_to_the_end(box, "A")


def test_what_was_given_away_outlives_the_run(tmp_path: Path, server: Server) -> None:
    """After kill -9 where the person sits, an agent elsewhere goes on, and `--continue` takes it up."""
    box = paid_yard(tmp_path, AGENT, names=NAMES)
    with workers(box, server, tmp_path, "one", "two"):
        run = begun(box, server)
        run.kill()
        run.communicate()
        (box.state / "go").touch()
        done = box.run("--continue", env=LEASE)

    assert done.code == 0, done.text
    assert "was given away" in done.text
    assert starts(box, "A") == 1
    held_to_the_end(box, *NAMES)


def test_a_remote_that_is_away_is_waited_for(tmp_path: Path, server: Server) -> None:
    """While the shared remote does not answer nothing is lost and nothing is started twice."""
    box = paid_yard(tmp_path, AGENT, names=NAMES)
    bare = tmp_path / "app.git"
    with workers(box, server, tmp_path, "one", "two"):
        run = begun(box, server)
        bare.rename(tmp_path / "away.git")
        (box.state / "go").touch()
        eventually(
            lambda: "sending" in box.ralph("fleet", "status", "--server", server.address).out
        )
        (tmp_path / "away.git").rename(bare)
        said = ended(run)

    assert run.returncode == 0, said
    assert starts(box, "A") == 1
    held_to_the_end(box, *NAMES)


def test_an_interrupt_reaches_every_machine(tmp_path: Path, server: Server) -> None:
    """Ctrl+C ends the run with 130, and no agent is at work on any machine."""
    box = paid_yard(tmp_path, AGENT, names=("A",))
    with workers(box, server, tmp_path, "one"):
        run = begun(box, server)
        run.send_signal(signal.SIGINT)
        said = ended(run, 60)
        left = [line for line in box.leftovers() if "agent.py" in line]
        done = box.run("--continue", env=LEASE)

    assert run.returncode == 130, said
    assert left == []
    assert done.code == 0, done.text
    held_to_the_end(box, "A")


def test_a_drained_worker_ends_with_what_it_works_on(tmp_path: Path, server: Server) -> None:
    """A story goes to the machine that has what it asks for; drained, that takes no more orders."""
    stories = [story("A", machine=["gpu"]), story("B", priority=2)]
    box = paid_yard(tmp_path, AGENT, stories=stories)
    with (
        workers(box, server, tmp_path, "plain"),
        workers(box, server, tmp_path, "big", more="--labels gpu") as labelled,
    ):
        run = begun(box, server)
        at_work = works_on(box)
        asked = box.ralph("fleet", "drain", "big", "--server", server.address)
        (box.state / "go").touch()
        said = ended(run)
        labelled["big"].process.wait(60)

    assert at_work == "big"
    assert asked.code == 0, asked.text
    assert "is drained" in labelled["big"].log.read_text()
    assert run.returncode == 0, said
    assert starts(box, "A") == 1
    held_to_the_end(box, "A", "B")


@pytest.mark.skipif(not shutil.which("sshd", path=_SBIN), reason="no sshd")
def test_a_real_sshd_that_loses_a_connection(tmp_path: Path) -> None:
    """Through real ssh on this machine: a connection that is cut costs one start, and no work."""
    box = paid_yard(tmp_path, AGENT, names=("A", "B"))
    with real_sshd(box, tmp_path) as env:
        run = box.start("--fleet", "ssh:127.0.0.1", env={**LEASE, **env})
        works = box.state / "works"
        eventually(lambda: works.exists() or run.poll() is not None)
        assert works.exists(), ended(run)
        for child in psutil.Process(run.pid).children(recursive=True):
            if child.name() == "ssh":
                child.kill()
        said = ended(run)

    assert run.returncode == 0, said
    assert starts(box, "A") == 2
    held_to_the_end(box, "A", "B")


def _limited_everywhere(model: ModelServer, world: World) -> Project:
    """Two stories whose agents meet one usage limit, each at its first start."""
    made = project(
        world,
        model,
        stories=[story_of(1, "One"), story_of(2, "Two")],
        agent_env={"CLAUDE_CODE_OAUTH_TOKEN": "sk-ant-oat01-scripted", "ANTHROPIC_API_KEY": ""},
    )
    bare = world.work.parent / "app.git"
    made.git("init", "-q", "--bare", str(bare))
    made.git("remote", "add", "origin", str(bare))
    made.git("push", "-q", "origin", "main")
    limit = claude_usage_limit(resets_in_s=_LIMIT_S)
    for number, name in enumerate(("one", "two"), 1):
        code = f"def {name}() -> int:\n    return {number}\n"
        command = f"cat > {name}.py <<'END'\n{code}END\n"
        model.play(limit, use(shell(command)), say(claim()), when=of_story(number))
    return made


def test_one_usage_limit_is_waited_for_by_both_workers(
    tmp_path: Path, server: Server, world: World
) -> None:
    """Real agents on two machines meet the limit of their account; nobody is started before it ends."""
    with ModelServer(root=world.work) as model:
        made = _limited_everywhere(model, world)
        box = Sandbox(made.root, tmp_path / "state")
        box.state.mkdir()
        with workers(box, server, tmp_path, "one", "two", env=made.env):
            run = made.ralph("run", "--fleet", server.address, "--json", timeout_s=150)
        assert model.unexpected == []

    assert_done(made, run)
    limited = [
        it for it in made.events(run, "iteration_finished") if it["outcome"] == "usage_limit"
    ]
    assert {it["machine"] for it in limited} == {"one", "two"}
    assert {it["kind"] for it in made.events(run, "waiting") if it["seconds"]} == {"quota"}
    refused = [it.at for it in model.requests[:2]]
    assert min(it.at for it in model.requests[2:]) - max(refused) >= _LIMIT_S - 0.5
    assert made.status()["session"]["iterations"] == 2
    assert sorted(made.subjects) == ["Begin", "US-001: One", "US-002: Two"]
