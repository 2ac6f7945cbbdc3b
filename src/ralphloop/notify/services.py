"""Messages through `apprise`, which knows a hundred services by their address (extra `notify`).

It is imported where the first message goes out, on the thread that sends it, and where somebody
asks whether an address is one.  Where it is not installed that is said, and the run goes on.  What
cannot be sent is tried three times; redirects are not followed.  Problems name the service and no
more, because the rest of an address is often a secret.

`webhook` is older than that: a plain address that gets each message as a JSON POST.  It goes to no
private network unless the settings allow it.
"""

import ipaddress
import socket
from importlib.util import find_spec
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from ralphloop import __version__
from ralphloop.config.addresses import address_secrets, shown_address
from ralphloop.notify.messages import Message
from ralphloop.redaction import redact
from ralphloop.text.plain import one_line

if TYPE_CHECKING:
    from apprise import Apprise, AppriseAsset

INSTALL = 'pip install "ralphloop[notify]"; with pipx: pipx inject ralphloop apprise'
NOT_INSTALLED = f"notifications: notify.urls and notify.webhook need apprise: {INSTALL}"
_RETRIES = 2
_PAUSE_S = 2.0
_DEADLINE_S = 30.0
_NAT64 = ipaddress.ip_network("64:ff9b::/96")
_NO_WEBHOOK = "notification: the webhook must be http(s)://host/…, without a user name"


def is_installed() -> bool:
    return find_spec("apprise") is not None


def send_to_address(
    message: Message, address: str, *, pause_s: float = _PAUSE_S, deadline_s: float = _DEADLINE_S
) -> str:
    """Send it to the service of this address; returns the problem in words, or nothing."""
    if not is_installed():
        return NOT_INSTALLED
    from apprise import Apprise

    services = Apprise(asset=_asset(pause_s))
    if not services.add(address):
        return wrong_address(address)
    return _deliver(services, message, shown_address(address), address, deadline_s)


def send_to_webhook(
    message: Message,
    url: str,
    *,
    private: bool = False,
    pause_s: float = _PAUSE_S,
    deadline_s: float = _DEADLINE_S,
) -> str:
    """Post it as JSON; returns the problem in words, or nothing."""
    if not is_installed():
        return NOT_INSTALLED
    if problem := wrong_webhook(url):
        return problem
    from apprise import Apprise

    name = f"webhook {urlsplit(url).hostname}"
    if not private and (problem := _why_not_public(url)):
        return f"notification: {name} {problem}"
    services = Apprise(asset=_asset(pause_s))
    services.add(_json_post(message, url))
    return _deliver(services, message, name, url, deadline_s)


def wrong_address(address: str) -> str:
    """Why nothing can be sent there, as far as it can be known beforehand; empty where it can."""
    from apprise import Apprise

    if Apprise.instantiate(address, asset=_asset(_PAUSE_S), suppress_exceptions=True) is not None:
        return ""
    step = "https://github.com/caronc/apprise lists them, `jsons://host/path` is a JSON POST"
    return f"notification: {shown_address(address)} is no address that apprise understands; {step}"


def wrong_webhook(url: str) -> str:
    """Why this cannot be a webhook; empty where it can."""
    try:
        parts = urlsplit(url)
        is_usable = parts.scheme in ("http", "https") and bool(parts.hostname)
        is_usable = is_usable and parts.port != 0 and "@" not in parts.netloc
    except ValueError:
        return _NO_WEBHOOK
    return "" if is_usable and url.isascii() and url.isprintable() else _NO_WEBHOOK


def _asset(pause_s: float) -> "AppriseAsset":
    """How apprise behaves here: it keeps nothing on the disk and is led nowhere else."""
    from apprise import AppriseAsset

    return AppriseAsset(
        app_id="ralph",
        app_desc="ralph",
        async_mode=False,
        storage_mode="memory",
        http_redirects=False,
        default_service_retry=_RETRIES,
        default_service_wait=pause_s,
    )


def _json_post(message: Message, url: str) -> dict[str, object]:
    """Apprise's JSON POST, with a body that is the message as `notify.command` gets it."""
    parts = urlsplit(url)
    query = f"?{parts.query}" if parts.query else ""
    ours = {"id": message.id, "kind": message.kind, "run": message.run, "ts": message.ts}
    ours |= {"story": message.story, "command": message.command, "page": message.page}
    fields: dict[str, object] = {name: value for name, value in ours.items() if value}
    if message.is_last:
        fields["is_last"] = True
    # A name of its own payload is given another one, or left out where that is empty.
    names = {"message": "text", "version": "", "attachments": "", "type": ""}
    host = parts.hostname or ""
    return {
        "schema": "jsons" if parts.scheme == "https" else "json",
        "secure": parts.scheme == "https",
        "host": f"[{host}]" if ":" in host else host,
        "port": parts.port,
        "fullpath": f"{parts.path or '/'}{query}",
        "headers": {"User-Agent": f"ralph/{__version__}", "Idempotency-Key": message.id},
        "payload": {**names, **fields},
    }


def _deliver(
    services: "Apprise", message: Message, name: str, address: str, deadline_s: float
) -> str:
    """Hand it over; the last thing that apprise has to say about it where that failed."""
    import logging

    result = services.notify(
        body=message.text,
        title=message.title,
        body_format="text",
        timeout=deadline_s,
        log_level=logging.WARNING,
    )
    if result:
        return ""
    said = [entry.message for entry in result.logs()]
    why = f": {one_line(said[-1], 200)}" if said else ""
    return redact(f"notification: {name} did not take it{why}", address_secrets(address))


def _why_not_public(url: str) -> str:
    """Why a webhook must not be sent there; empty where every address of the host is public."""
    parts = urlsplit(url)
    try:
        found = socket.getaddrinfo(parts.hostname, parts.port or 443, type=socket.SOCK_STREAM)
    except OSError as error:
        return f"cannot be reached: {error.strerror or error}"
    if all(is_public(str(address[0])) for *_, address in found):
        return ""
    return "is a private address; notify.webhook_private = true allows that"


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
