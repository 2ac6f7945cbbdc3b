"""Addresses of services: what of them may be shown, and what of them is a secret."""

import hashlib
import re
from urllib.parse import urlsplit

HIDDEN = "***"
_HAS_HOST = frozenset("http https json jsons xml xmls form forms".split())
_SHORTEST_SECRET = 8
_PARTS = re.compile(r"[/:@?&=#,]+")


def shown_address(address: str) -> str:
    """The service, and the host where the address is plainly one; the rest is often a secret."""
    scheme, separator, _ = address.partition("://")
    if not separator:
        return HIDDEN
    if scheme.lower() not in _HAS_HOST:
        return f"{scheme}://{HIDDEN}"
    try:
        host = urlsplit(address).hostname or ""
    except ValueError:
        host = ""
    return f"{scheme}://{host}/{HIDDEN}" if host else f"{scheme}://{HIDDEN}"


def fingerprinted(address: str) -> str:
    """The same with a fingerprint of all of it, by which a change of what is hidden is seen."""
    return f"{shown_address(address)} ({hashlib.sha256(address.encode()).hexdigest()[:32]})"


def address_secrets(address: str) -> tuple[str, ...]:
    """Everything in an address that must not be seen: the whole, and each of its long parts."""
    _, separator, rest = address.partition("://")
    if not separator:
        return (address,)
    host = _host(address)
    parts = (part for part in _PARTS.split(rest) if part != host)
    return (address, *(part for part in parts if len(part) >= _SHORTEST_SECRET))


def _host(address: str) -> str:
    shown = shown_address(address).partition("://")[2]
    return shown.removesuffix(f"/{HIDDEN}")
