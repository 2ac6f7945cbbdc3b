"""A message as JSON to an address on the web, without ever being led somewhere else.

The name is resolved once, every address it stands for must be public (unless the settings allow
private ones), and the connection goes to that very address: neither a redirect, which is never
followed, nor a name that changes its mind can reach into the network behind us.  Problems name the
host only, because the rest of such an address is often a secret.
"""

import http.client
import ipaddress
import socket
import ssl
import threading
import time
from collections.abc import Callable
from urllib.parse import urlsplit

import msgspec

from ralphloop import __version__
from ralphloop.notify.notifier import Message

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
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        try:
            self._parts = urlsplit(url)
            usable = self._parts.scheme in ("http", "https") and bool(self._parts.hostname)
            usable = usable and self._parts.port != 0 and "@" not in self._parts.netloc
        except ValueError:
            self._parts = urlsplit("")
            usable = False
        problem = "notification: the webhook must be http(s)://host/…, without a user name"
        self.problem = "" if usable and url.isascii() and url.isprintable() else problem
        self._private = private
        self._timeout_s = timeout_s
        self._sleep = sleep

    def send(self, message: Message) -> str:
        """Post it; returns the problem in words, or nothing."""
        body = msgspec.json.encode(message)
        problem = self.problem
        for attempt in range(_ATTEMPTS if not problem else 0):
            if attempt:
                self._sleep(_PAUSE_S * 2 ** (attempt - 1))
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
        found = socket.getaddrinfo(parts.hostname, port, type=socket.SOCK_STREAM)
        for *_, address in found:
            if not self._private and not is_public(str(address[0])):
                raise _Refused("is a private address; notify.webhook_private = true allows that")
        connection = http.client.HTTPConnection(parts.hostname or "", port)
        family, kind, protocol, _, address = found[0]
        connection.sock = plain = socket.socket(family, kind, protocol)
        plain.settimeout(self._timeout_s)
        # A peer that drips one byte at a time never runs into the socket's own timeout.
        cut = threading.Timer(self._timeout_s, _shut, (plain,))
        try:
            plain.connect(address)
            cut.start()
            if parts.scheme == "https":
                context = ssl.create_default_context()
                connection.sock = context.wrap_socket(plain, server_hostname=parts.hostname)
            connection.request("POST", target, body, headers)
            return connection.getresponse().status
        finally:
            cut.cancel()
            connection.close()
            plain.close()

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


def _shut(connected: socket.socket) -> None:
    try:
        connected.shutdown(socket.SHUT_RDWR)
    except OSError:
        pass  # it is closed already
