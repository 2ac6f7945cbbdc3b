"""Why a Temporal server cannot be reached, in words that a person can act on.

Temporal's library says that something broke and not what it was: a server that asks for a
certificate only closes the connection.  So where a connection fails the same door is tried once
more by hand, with the same files, and what is met there is what is said.
"""

import re
import socket
import ssl
from pathlib import Path
from typing import NamedTuple

from ralphloop.config.model import FleetSection
from ralphloop.errors import InputError

_TRY_S = 5.0
_ALERT_S = 2.0
_OTHER_NAME = (62, 64)  # OpenSSL's codes: of a host, of an address
_EXPIRED = 10
_UNKNOWN_AUTHORITY = (18, 19, 20, 21)
_NO_TLS = ("WRONG_VERSION_NUMBER", "RECORD_LAYER_FAILURE", "UNEXPECTED_EOF_WHILE_READING")
_STATUS = re.compile(r'code: (Unauthenticated|PermissionDenied), message: "([^"]{0,300})')
_SILENT = "it does not answer"
_SEE = "See docs/guides/fleet.md"


class Reason(NamedTuple):
    """What is wrong, and what to do."""

    words: str
    next_step: str = _SEE


def wants_tls(section: FleetSection) -> bool:
    """Whether the server is spoken with by TLS: as is set, and wherever something needs it.

    A key is never sent in plain text.
    """
    return bool(section.tls or section.tls_ca or section.tls_cert or section.api_key)


def context_of(section: FleetSection) -> ssl.SSLContext | None:
    """TLS with the files of the settings; none where it is off.  What cannot work raises here."""
    if bool(section.tls_cert) != bool(section.tls_key):
        raise InputError(
            "a certificate needs its key, and a key its certificate",
            "Set tls_cert and tls_key, both of them.",
            place="fleet.tls_cert",
        )
    if not wants_tls(section):
        return None
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.set_alpn_protocols(["h2"])
    if section.tls_ca:
        path = _known(section.tls_ca, "fleet.tls_ca")
        try:
            context.load_verify_locations(path)
        except ssl.SSLError:
            raise InputError(f"{path} holds no certificate", place="fleet.tls_ca") from None
    else:
        context.load_default_certs()
    if section.tls_cert:
        certificate = _known(section.tls_cert, "fleet.tls_cert")
        key = _known(section.tls_key, "fleet.tls_key")
        try:
            context.load_cert_chain(certificate, key, password=lambda: b"")
        except ssl.SSLError as error:
            raise InputError(_unusable(error, certificate, key), place="fleet.tls_key") from None
    return context


def _known(given: str, place: str) -> Path:
    """A file that can be read."""
    path = Path(given).expanduser()
    try:
        path.open("rb").close()
    except OSError as error:
        raise InputError(f"{path}: {error.strerror}", place=place) from None
    return path


def _unusable(error: ssl.SSLError, certificate: Path, key: Path) -> str:
    if error.reason == "KEY_VALUES_MISMATCH":
        return f"{key} is not the key of {certificate}"
    return f"{certificate} and {key} are no certificate and its key in PEM, without a password"


def why_not(server: str, section: FleetSection, said: str) -> Reason:
    """Why there is no connection to that server, of which Temporal's library says this."""
    if (refused := _STATUS.search(said)) is not None:
        return Reason(
            f"it refuses this side: {refused[2]}",
            "Are api_key, tls_cert and namespace under [fleet] those of this server?",
        )
    host, port = address_of(server)
    try:
        with socket.create_connection((host, port), timeout=_TRY_S) as connection:
            context = context_of(section)
            if context is None:
                found = _without_tls(connection)
            else:
                found = _with_tls(connection, host, context, section)
    except socket.gaierror:
        return Reason(f"no host is called {host}")
    except ConnectionRefusedError:
        return Reason("nobody listens there", f"Start one: ralph fleet up; or {_SEE.lower()}")
    except TimeoutError:
        return Reason(_SILENT)
    except OSError as error:
        return Reason(error.strerror or str(error))
    return found or Reason(said[:300] or _SILENT)


class ServerAddress(NamedTuple):
    """Where a server listens."""

    host: str
    port: int


def address_of(server: str) -> ServerAddress:
    """Host and port of an address."""
    host, _, port = server.rpartition(":")
    if not host or not port.isdecimal():
        raise InputError(f"{server!r} is not HOST:PORT", "Such as temporal.lan:7233")
    return ServerAddress(host.strip("[]"), int(port))


def _without_tls(connection: socket.socket) -> Reason | None:
    """What is wrong with a server that is spoken with in plain text: it may want TLS."""
    anybody = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    anybody.check_hostname = False
    anybody.verify_mode = ssl.CERT_NONE  # nothing is sent: it is only asked whether this is TLS
    try:
        anybody.wrap_socket(connection).close()
    except TimeoutError:
        raise
    except OSError:  # of which an error of TLS is one
        return None
    return Reason("it speaks TLS, and TLS is off here", "Set tls = true under [fleet].")


def _with_tls(
    connection: socket.socket, host: str, context: ssl.SSLContext, section: FleetSection
) -> Reason | None:
    """What is wrong with a server that is spoken with by TLS, as far as that can be told."""
    try:
        with context.wrap_socket(connection, server_hostname=host) as door:
            door.settimeout(_ALERT_S)
            try:
                # Who asks for a certificate says no only once we are in.
                if door.recv(1):
                    return None
            except TimeoutError:
                return None
    except ssl.SSLCertVerificationError as error:
        return _distrusted(error, host)
    except ssl.SSLError as error:
        return _sent_away(error.reason or "", section)
    except ConnectionResetError:
        pass
    return _shut_out(section, "and says nothing")


def _distrusted(error: ssl.SSLCertVerificationError, host: str) -> Reason:
    if error.verify_code == _EXPIRED:
        return Reason("its certificate has expired", "Have it renewed where the server is.")
    if error.verify_code in _OTHER_NAME:
        return Reason(
            f"its certificate is of another name than {host}",
            "Use a name that is in the certificate.",
        )
    if error.verify_code in _UNKNOWN_AUTHORITY:
        return Reason(
            "its certificate is signed by an authority that is not known here",
            "Name the certificate of that authority: tls_ca under [fleet].",
        )
    return Reason(f"its certificate is not believed: {error.verify_message}")


def _sent_away(reason: str, section: FleetSection) -> Reason | None:
    """What the server's last word of the connection means."""
    if reason in _NO_TLS:
        return Reason("it speaks no TLS, and TLS is on here", "Leave tls and its files out.")
    own = f"the certificate of this side, {section.tls_cert},"
    if section.tls_cert and "EXPIRED" in reason:
        return Reason(f"{own} has expired", "Have it renewed.")
    if section.tls_cert and "UNKNOWN_CA" in reason:
        return Reason(
            f"{own} is signed by an authority that is not known there",
            "Have one signed by an authority that the server knows.",
        )
    return _shut_out(section, reason.lower().replace("_", " ")) if "ALERT" in reason else None


def _shut_out(section: FleetSection, how: str) -> Reason:
    """A server that closes the connection as soon as it has seen who came."""
    if section.tls_cert:
        return Reason(
            f"it takes the certificate of this side, {section.tls_cert}, and closes ({how})",
            "Is it one that the server knows?",
        )
    return Reason(
        "it asks this side for a certificate, and none is set",
        "Set tls_cert and tls_key under [fleet] in your own settings.",
    )
