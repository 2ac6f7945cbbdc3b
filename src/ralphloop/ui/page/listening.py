"""Listening: the port, and a server with bounds on what may be sent to it."""

import logging
import socket

import uvicorn

from ralphloop.errors import LockedError
from ralphloop.ui.page.guard import Guard


def open_door(host: str, port: int) -> socket.socket:
    """Listen there; raises with the reason where that cannot be."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family)
    except OSError as error:
        raise LockedError(
            f"cannot listen on {host}, port {port}: {error.strerror or error}",
            "Is the page served already? `ralph serve --new-token` prints an address for it;"
            " `ralph serve --port 0` takes any free port.",
        ) from None


def serve(page: Guard, door: socket.socket) -> None:
    """Until somebody ends it; connections and what they may send are bounded."""
    logging.getLogger("uvicorn").addHandler(logging.NullHandler())  # words of others may be in it
    settings = uvicorn.Config(
        page,
        http="h11",
        ws="none",
        log_config=None,
        access_log=False,
        proxy_headers=False,
        server_header=False,
        limit_concurrency=100,
        timeout_graceful_shutdown=1,
        h11_max_incomplete_event_size=16 * 1024,
    )
    uvicorn.Server(settings).run(sockets=[door])
