"""Machines behind a cable of their own: network namespaces that can be cut off and joined again.

A cut is silent, as a pulled cable is: nobody is told, connections stay open and packets are lost.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from tests.fleet.machines import eventually


@dataclass(frozen=True)
class Network:
    """One cable: this end of it, and what starts a program at the other."""

    name: str
    link: str
    here: str  # our address, as seen from the other end

    @property
    def inside(self) -> tuple[str, ...]:
        """What a command line begins with that runs there."""
        return ("nsenter", f"--net=/run/netns/{self.name}")

    def cut(self) -> None:
        """Pull the cable."""
        _ip("link", "set", self.link, "down")

    def join(self) -> None:
        """Plug it in again."""
        _ip("link", "set", self.link, "up")


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True, timeout=30)


def can_be_made() -> bool:
    """Whether this machine lets us make networks."""
    if os.getuid() != 0 or not shutil.which("ip") or not shutil.which("nsenter"):
        return False
    name = f"ralph-try-{os.getpid()}"
    tried = subprocess.run(["ip", "netns", "add", name], capture_output=True, check=False)
    subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
    return tried.returncode == 0


@contextmanager
def networks(count: int) -> Iterator[list[Network]]:
    """So many machines' cables, for the length of a test."""
    own = os.getpid() % 10_000
    found = list[Network]()
    try:
        for number in range(count):
            name = f"ralph-{own}-{number}"
            link = f"rf{own}n{number}"
            subnet = f"10.{64 + own // 256}.{own % 256}"
            first = 4 * number
            subprocess.run(["ip", "netns", "del", name], capture_output=True, check=False)
            _ip("netns", "add", name)
            found.append(Network(name, link, f"{subnet}.{first + 1}"))
            _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("addr", "add", f"{subnet}.{first + 1}/30", "dev", link)
            _ip("link", "set", link, "up")
            _ip("-n", name, "addr", "add", f"{subnet}.{first + 2}/30", "dev", "eth0")
            _ip("-n", name, "link", "set", "lo", "up")
            _ip("-n", name, "link", "set", "eth0", "up")
        yield found
    finally:
        for network in found:
            _ip("netns", "del", network.name)


@contextmanager
def git_served(place: Path) -> Iterator[int]:
    """The bare repositories below a place by git's own protocol; the port."""
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        port = one.getsockname()[1]
    argv = ["git", "daemon", "--reuseaddr", "--export-all", "--enable=receive-pack"]
    argv += [f"--base-path={place}", f"--port={port}", str(place)]
    with (place / "git-daemon.log").open("wb") as log:
        daemon = subprocess.Popen(argv, stdout=log, stderr=log, stdin=subprocess.DEVNULL)
    try:
        eventually(lambda: _answers(port))
        yield port
    finally:
        for child in psutil.Process(daemon.pid).children(recursive=True):  # it serves in those
            with suppress(psutil.NoSuchProcess):
                child.terminate()
        daemon.terminate()
        daemon.wait()


def _answers(port: int) -> bool:
    try:
        with socket.create_connection(("127.0.0.1", port), timeout=1.0):
            return True
    except OSError:
        return False
