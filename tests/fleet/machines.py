"""A project with a shared remote, and machines that work for it: directories with settings of their own.

Over ssh a machine is reached by a stand-in that starts what is asked for with that machine's
settings, and can be cut like a connection.
"""

from __future__ import annotations

import json
import os
import shlex
import shutil
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import psutil

from ralphloop.proc.run import ourselves
from tests.lanes.yards import stories_of, yard
from tests.loop.projects import Sandbox

SSH = """\
#!/bin/sh
# stand-in for ssh: HOST WORDS
host=$1; shift
echo $$ >> {state}/ssh-$host
export XDG_CONFIG_HOME={places}/$host/config XDG_DATA_HOME={places}/$host/data
export XDG_STATE_HOME={places}/$host/state MACHINE=$host
cat | sh -c "$*" | cat
"""
AGENT = """
write(f"{STORY}.txt", STORY)
(STATE / f"where-{STORY}-{START}").write_text(os.environ.get("MACHINE", "") + " " + os.getcwd())
done()
"""


def fleet_yard(
    tmp_path: Path, agent: str = AGENT, *, names: tuple[str, ...] = ("A", "B", "C"), **more: Any
) -> Sandbox:
    """A repository with a bare remote that every machine can reach."""
    stories = more.pop("stories", None) or stories_of(*names)
    box = yard(tmp_path, agent, stories=stories, **more)
    shared(box, tmp_path)
    return box


def shared(box: Sandbox, tmp_path: Path) -> None:
    """Give a repository a bare remote."""
    bare = tmp_path / "app.git"
    box.git("init", "-q", "--bare", str(bare))
    box.git("remote", "add", "origin", str(bare))
    box.git("push", "-q", "origin", "main")


def machine(tmp_path: Path, name: str, **settings: object) -> Path:
    """The settings of a machine that may work for the project."""
    place = tmp_path / "machines" / name
    own = {"repos": {"app": str(tmp_path / "app.git")}, **settings}
    lines = ["[fleet]"]
    for key, value in own.items():
        if isinstance(value, dict):
            inside = ", ".join(f"{name} = {json.dumps(it)}" for name, it in value.items())
            lines.append(f"{key} = {{ {inside} }}")
        else:
            lines.append(f"{key} = {json.dumps(value)}")
    config = place / "config" / "ralph"
    config.mkdir(parents=True)
    (config / "config.toml").write_text("\n".join(lines) + "\n")
    return place


def over_ssh(box: Sandbox, tmp_path: Path, *, trust: bool = True) -> dict[str, str]:
    """The environment of a run whose machines are reached by the stand-in."""
    script = tmp_path / "ssh"
    places = tmp_path / "machines"
    text = SSH.format(state=box.state, places=places)
    said = "export RALPH_TRUST=1" if trust else "unset RALPH_TRUST"
    text = text.replace("cat | ", f"{said}\ncat | ", 1)
    script.write_text(text)
    script.chmod(0o755)
    return {"RALPH_FLEET_SSH": str(script), "RALPH_FLEET_PROGRAM": shlex.join(ourselves())}


def cut(box: Sandbox, name: str) -> None:
    """Cut every connection to a machine, as a router does: both ends live on."""
    for pid in (box.state / f"ssh-{name}").read_text().split():
        with suppress(psutil.NoSuchProcess):  # an order that is over
            for one in psutil.Process(int(pid)).children():
                if one.name() == "cat":
                    one.kill()


def eventually(holds: Callable[[], bool], seconds: float = 90.0) -> None:
    """Wait until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        assert time.monotonic() < end, "it never came to hold"
        time.sleep(0.05)


def ended_everywhere(box: Sandbox, seconds: float = 60.0) -> None:
    """Nothing of the run is at work any more, on any machine."""
    end = time.monotonic() + seconds
    while left := box.leftovers():
        assert time.monotonic() < end, left
        time.sleep(0.1)


def of_machine(box: Sandbox, name: str) -> list[int]:
    """Every process on a machine: worker, hands, agents and what they have started."""
    wanted = {f"TEST_STATE={box.state}".encode(), f"MACHINE={name}".encode()}
    found = []
    for place in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if wanted <= set((place / "environ").read_bytes().split(b"\0")):
                found.append(int(place.name))
    return found


def environment(box: Sandbox, place: Path, env: Mapping[str, str] | None = None) -> dict[str, str]:
    """What a process on a machine is started with; `env` is instead of ours."""
    return {
        **(os.environ if env is None else env),
        "TEST_STATE": str(box.state),
        "XDG_CONFIG_HOME": str(place / "config"),
        "XDG_DATA_HOME": str(place / "data"),
        "XDG_STATE_HOME": str(place / "state"),
        "MACHINE": place.name,
    }


@dataclass
class Server:
    """A real Temporal server of this test alone, which can be killed and started again."""

    place: Path
    port: int
    ip: str = "127.0.0.1"  # on which it listens
    more: tuple[str, ...] = ()  # words of its command line
    process: subprocess.Popen[bytes] | None = None

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self.port}"

    def start(self) -> None:
        """Start it with what it has kept, and wait until it answers."""
        program = shutil.which(
            "temporal", path=f"{Path(sys.executable).parent}:{os.environ['PATH']}"
        )
        assert program
        argv = [program, "server", "start-dev", "--headless", "--ip", self.ip]
        argv += ["--port", str(self.port), "--db-filename", str(self.place / "temporal.db")]
        with (self.place / "temporal.log").open("ab") as log:
            self.process = subprocess.Popen(
                [*argv, "--log-level", "error", *self.more],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
            )
        eventually(self._answers, 60)

    def _answers(self) -> bool:
        with suppress(OSError), socket.create_connection(("127.0.0.1", self.port), timeout=1.0):
            return True
        return False

    def kill(self) -> None:
        """As a power cut does."""
        if self.process is not None:
            self.process.kill()
            self.process.wait()
            self.process = None


@contextmanager
def temporal_server(
    tmp_path: Path, ip: str = "127.0.0.1", more: tuple[str, ...] = ()
) -> Iterator[Server]:
    """A server for the length of a test."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    server = Server(tmp_path, port, ip, more)
    try:
        server.start()
        yield server
    finally:
        server.kill()


@dataclass
class WorkerProcess:
    """`ralph fleet worker` as a machine of its own."""

    name: str
    process: subprocess.Popen[bytes]
    log: Path

    def hands(self) -> list[int]:
        """Its children that work on an order."""
        found = subprocess.run(
            ["pgrep", "-P", str(self.process.pid)], capture_output=True, check=False
        )
        return [int(it) for it in found.stdout.split()]

    def kill(self) -> None:
        """As somebody who is out of patience does; its hands are left alone."""
        self.process.kill()
        self.process.wait()


@contextmanager
def workers(
    box: Sandbox,
    server: Server,
    tmp_path: Path,
    *names: str,
    trust: bool = True,
    more: str = "",
    env: Mapping[str, str] | None = None,
    more_env: Mapping[str, str] | None = None,
) -> Iterator[dict[str, WorkerProcess]]:
    """Workers on machines of these names, for the length of a test; `env` is instead of ours."""
    found = dict[str, WorkerProcess]()
    try:
        for name in names:
            found[name] = start_worker(
                box, server, tmp_path, name, trust=trust, more=more, base=env, env=more_env
            )
        yield found
    finally:
        end_workers(found.values())


def end_workers(found: Collection[WorkerProcess]) -> None:
    """Have workers go, as somebody who shuts a machine down does."""
    for worker in found:
        worker.process.terminate()
    for worker in found:
        try:
            worker.process.wait(20)
        except subprocess.TimeoutExpired:
            worker.kill()


def start_worker(
    box: Sandbox,
    server: Server,
    tmp_path: Path,
    name: str,
    *,
    trust: bool = True,
    more: str = "",
    inside: Sequence[str] = (),
    env: Mapping[str, str] | None = None,
    base: Mapping[str, str] | None = None,
) -> WorkerProcess:
    """One worker; its machine is made where it is new.

    `inside` is what its command line begins with, `env` what its environment has besides, `base`
    is instead of ours.
    """
    place = tmp_path / "machines" / name
    if not place.exists():
        machine(tmp_path, name)
    words = ["fleet", "worker", "--server", server.address, "--name", name, *more.split()]
    log = tmp_path / f"worker-{name}.log"
    said = log.stat().st_size if log.exists() else 0
    with log.open("ab") as file:
        process = subprocess.Popen(
            [*inside, *ourselves(), *words, *(["--trust"] if trust else [])],
            cwd=place,
            env={**environment(box, place, base), **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=file,
            stderr=subprocess.STDOUT,
        )
    eventually(lambda: b"slot" in log.read_bytes()[said:])
    return WorkerProcess(name, process, log)


@contextmanager
def real_sshd(box: Sandbox, tmp_path: Path) -> Iterator[dict[str, str]]:
    """This machine as one that is reached by real ssh on loopback; the environment of such a run."""
    own = tmp_path / "sshd"
    own.mkdir(mode=0o700)
    for name in ("host", "key"):
        argv = ["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", str(own / name)]
        subprocess.run(argv, check=True)
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    there = environment(box, machine(tmp_path, "127.0.0.1"))
    names = ("TEST_STATE", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "MACHINE")
    variables = " ".join(f"{name}={there[name]}" for name in names)
    lines = [
        f"Port {port}",
        "ListenAddress 127.0.0.1",
        f"HostKey {own}/host",
        f"AuthorizedKeysFile {own}/key.pub",
        f"PidFile {own}/pid",
        "StrictModes no",
        "UsePAM no",
        f"SetEnv {variables} RALPH_TRUST=1",
    ]
    (own / "config").write_text("\n".join(lines) + "\n")
    if os.getuid() == 0:
        Path("/run/sshd").mkdir(exist_ok=True)
    program = shutil.which("sshd", path=f"/usr/sbin:{os.environ['PATH']}")
    assert program
    with (own / "log").open("wb") as log:
        daemon = subprocess.Popen([program, "-D", "-e", "-f", str(own / "config")], stderr=log)
    try:
        eventually(lambda: b"listening" in (own / "log").read_bytes())
        ssh = f"ssh -T -p {port} -i {own}/key -o BatchMode=yes -o StrictHostKeyChecking=no"
        ssh += f" -o UserKnownHostsFile={own}/known -o LogLevel=ERROR"
        yield {"RALPH_FLEET_SSH": ssh, "RALPH_FLEET_PROGRAM": shlex.join(ourselves())}
    finally:
        daemon.terminate()
        daemon.wait()
