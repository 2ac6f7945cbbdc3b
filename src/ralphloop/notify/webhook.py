"""A message as JSON to an address on the web, without ever being led somewhere else.

The name is resolved once, every address it stands for must be public (unless the settings allow
private ones), and the connection goes to that very address: neither a redirect, which is never
followed, nor a name that changes its mind can reach into the network behind us.  What may pass
(no answer, 5xx, 429) is tried again with growing pauses; problems name the host only, because the
rest of such an address is often a secret.
"""

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable
from urllib.parse import SplitResult, urlsplit

import msgspec

from ralphloop import __version__
from ralphloop.notify.messages import Message

_ATTEMPTS = 3
_TIMEOUT_S = 10.0
_PAUSE_S = 2.0
_TRY_AGAIN = (408, 425, 429)
_NAT64 = ipaddress.ip_network("64:ff9b::/96")


class _Refused(Exception):
    """It must not be sent there, now or later."""


class Webhook:
    def __init__(
        self,
        url: str,
        *,
        private: bool = False,
        timeout_s: float = _TIMEOUT_S,
        pause_s: float = _PAUSE_S,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._parts, self.problem = _split(url)
        self._private = private
        self._timeout_s = timeout_s
        self._pause_s = pause_s
        self._sleep = sleep

    def send(self, message: Message) -> str:
        """Post it; returns the problem in words, or nothing."""
        body, problem = msgspec.json.encode(message), self.problem
        for attempt in range(_ATTEMPTS if not problem else 0):
            if attempt:
                self._sleep(self._pause_s * 2 ** (attempt - 1))
            status = 0
            try:
                status = self._post(body, message.id)
                what = f"answered {status}"
            except _Refused as error:
                return self._words(str(error))
            except OSError as error:
                what = f"cannot be reached: {error.strerror or error}"
            except (http.client.HTTPException, ValueError) as error:
                what = f"does not speak HTTP: {type(error).__name__}"
            if 200 <= status < 300:
                return ""
            if 300 <= status < 400:
                what += ": it redirects, which is not followed; name the new address"
            problem = self._words(what)
            if 0 < status < 500 and status not in _TRY_AGAIN:
                break
        return problem

    def _post(self, body: bytes, key: str) -> int:
        parts = self._parts
        target = f"{parts.path or '/'}{'?' + parts.query if parts.query else ''}"
        headers = {
            "Content-Type": "application/json",
            "User-Agent": f"ralph/{__version__}",
            "Idempotency-Key": key,
        }
        port = parts.port or (443 if parts.scheme == "https" else 80)
        connection = http.client.HTTPConnection(parts.hostname or "", port)
        connection.sock = plain = self._connected(port)
        # A peer that drips one byte at a time never runs into the socket's own timeout.
        cut = threading.Timer(self._timeout_s, _shut, (plain,))
        cut.start()
        try:
            if parts.scheme == "https":
                context = ssl.create_default_context()
                connection.sock = context.wrap_socket(plain, server_hostname=parts.hostname)
            connection.request("POST", target, body, headers)
            return connection.getresponse().status
        finally:
            cut.cancel()
            connection.close()
            plain.close()

    def _connected(self, port: int) -> socket.socket:
        found = socket.getaddrinfo(self._parts.hostname, port, type=socket.SOCK_STREAM)
        for *_, address in found:
            if not self._private and not is_public(str(address[0])):
                raise _Refused("is a private address; notify.webhook_private = true allows that")
        family, kind, protocol, _, address = found[0]
        connected = socket.socket(family, kind, protocol)
        connected.settimeout(self._timeout_s)
        try:
            connected.connect(address)
        except OSError:
            connected.close()
            raise
        return connected

    def _words(self, what: str) -> str:
        return f"notification: webhook {self._parts.hostname} {what}"


def is_public(address: str) -> bool:
    """True for addresses of the open internet, whatever they are wrapped in."""
    ip = ipaddress.ip_address(address.partition("%")[0])
    inner: ipaddress.IPv4Address | None = None
    if isinstance(ip, ipaddress.IPv6Address):
        inner = ip.ipv4_mapped or ip.sixtofour
        if ip in _NAT64:
            inner = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    seen = inner or ip
    return seen.is_global and not seen.is_multicast


def _split(url: str) -> tuple[SplitResult, str]:
    try:
        parts = urlsplit(url)
        usable = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
        usable = usable and url.isascii() and url.isprintable() and "@" not in parts.netloc
    except ValueError:
        parts, usable = urlsplit(""), False
    problem = "notification: the webhook must be http(s)://host/…, without a user name"
    return parts, "" if usable else problem


def _shut(connected: socket.socket) -> None:
    try:
        connected.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it is closed already
