"""The address of the page for a message: it names no secret.

A message goes through services of others, to commands of the work tree and to places an agent may
read.  So it carries neither a token nor the unguessable path: only where the page is served, and
behind `#`, which no browser sends, what to open.  A device that was let in before remembers the
path for this very origin and goes on from there (`door.js`); any other one is told how it is let
in.
"""

from collections.abc import Mapping
from pathlib import Path
from urllib.parse import quote, urlsplit

from ralphloop.night.every_project import key_of
from ralphloop.ui.page.devices import Devices

_ANY = {"0.0.0.0": "127.0.0.1", "[::]": "[::1]"}  # noqa: S104 - read, not listened on
_HERE = ("127.0.0.1", "localhost", "::1")


def page_address(root: Path, env: Mapping[str, str], story: str = "") -> str:
    """Where the page of a project can be opened now, at one story; empty where nobody serves it."""
    its_own = Devices(root, env)
    if its_own.is_served:
        return _link(its_own, [story])
    every = Devices(None, env)
    if every.is_served:
        return _link(every, ["p", key_of(root), story])
    return ""


def _link(devices: Devices, parts: list[str]) -> str:
    named = [quote(part, safe="") for part in parts if part]
    end = f"#{'/'.join(named)}" if named else ""
    return f"{_best(devices.kept.addresses)}/{end}" if devices.kept.addresses else ""


def _best(addresses: tuple[str, ...]) -> str:
    """The one that most devices reach: a name, else an address, this machine last."""
    told = [_reachable(address) for address in addresses]
    return min(told, key=_distance)


def _reachable(address: str) -> str:
    for any_of_them, this_machine in _ANY.items():
        address = address.replace(f"//{any_of_them}:", f"//{this_machine}:")
    return address


def _distance(address: str) -> int:
    parts = urlsplit(address)
    if parts.scheme == "https":
        return 0
    return 2 if parts.hostname in _HERE else 1
