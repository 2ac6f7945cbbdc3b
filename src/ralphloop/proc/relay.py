"""The few addresses that a program without a network can reach, and nothing else.

In a sandbox a listener stands for each allowed address (`inside`: this file as a script, which then
becomes the program) and hands every connection over a unix socket to us (`outside`).  Names are
known by the sandbox's own `/etc/hosts`, so programs need not know of a proxy.

As a script it must not import anything of ours: its interpreter is started without our packages.
"""

import contextlib
import os
import signal
import socket
import sys
import threading
from collections.abc import Callable, Sequence
from functools import partial

_CHUNK = 64 * 1024
_PATIENCE_S = 30.0
Connect = Callable[[], socket.socket]


def outside(directory: str, addresses: Sequence[tuple[str, int]]) -> None:
    """Answer for these addresses on sockets in a directory of ours, as long as we live."""
    for number, address in enumerate(addresses):
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(f"{directory}/{number}")
        listener.listen(64)
        _serve(listener, partial(socket.create_connection, address, _PATIENCE_S))


def inside(directory: str, places: Sequence[str]) -> None:
    """Listen where the allowed addresses seem to be."""
    for number, place in enumerate(places):
        host, _, port = place.rpartition(":")
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listener = socket.create_server((host, int(port)), family=family, backlog=64)

        def connect(path: str = f"{directory}/{number}") -> socket.socket:
            to = socket.socket(socket.AF_UNIX)
            to.connect(path)
            return to

        _serve(listener, connect)


def _serve(listener: socket.socket, connect: Connect) -> None:
    def accept() -> None:
        while True:
            try:
                near, _ = listener.accept()
            except OSError:
                return
            _start(partial(_join, near, connect))

    _start(accept)


def _join(near: socket.socket, connect: Connect) -> None:
    """Connect, and hand over what each side says until both have ended."""
    try:
        far = connect()
        far.settimeout(None)
    except OSError:
        near.close()  # nobody there: the program sees a connection that ends
        return
    back = _start(lambda: _pump(far, near))
    _pump(near, far)
    back.join()
    near.close()
    far.close()


def _pump(source: socket.socket, target: socket.socket) -> None:
    with contextlib.suppress(OSError):
        while chunk := source.recv(_CHUNK):
            target.sendall(chunk)
    with contextlib.suppress(OSError):
        target.shutdown(socket.SHUT_WR)


def _start(work: Callable[[], None]) -> threading.Thread:
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    return thread


def _main(directory: str, *words: str) -> None:
    """Become the program behind `--`, with a child that relays for it."""
    split = words.index("--")
    ready, tell = os.pipe()
    if os.fork() == 0:
        signal.signal(signal.SIGINT, signal.SIG_IGN)  # it is asked of the program
        for name in (0, 1, 2):  # whoever reads the program's output must see its end
            os.dup2(os.open(os.devnull, os.O_RDWR), name)
        inside(directory, words[:split])
        os.write(tell, b".")
        os.close(tell)
        threading.Event().wait()
    os.close(tell)
    if not os.read(ready, 1):
        sys.exit("ralph: the addresses of the sandbox cannot be relayed")
    program = words[split + 1 :]
    os.execvp(program[0], program)  # noqa: S606 - argv as it is


if __name__ == "__main__":
    _main(*sys.argv[1:])
