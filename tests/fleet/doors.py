"""A server behind TLS, as a team has it: a door in front of it that asks everybody for a certificate.

Temporal's development server knows no TLS.  The door takes it off and hands the rest on, unseen.
"""

from __future__ import annotations

import ipaddress
import select
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import BinaryIO

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID

_PIECE = 65_536
_DAY = timedelta(days=1)
_PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_HEADERS, _SETTINGS = 1, 4  # kinds of frames
_ACK = 1
_LAST = 5  # all headers are there, and nothing follows
_CODE = {
    " ": "010100", "B": "1011101", "a": "00011", "c": "00100", "e": "00101", "i": "00110",
    "o": "00111", "r": "101100", "s": "01000", "t": "01001",
}  # fmt: skip


class Authority:
    """Whoever signs certificates, in a directory of its own."""

    def __init__(self, place: Path, name: str = "authority") -> None:
        place.mkdir(parents=True, exist_ok=True)
        self._place = place
        self._name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        self._key = ec.generate_private_key(ec.SECP256R1())
        signed = (
            _begun(self._name, self._name, self._key, valid=True)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .sign(self._key, hashes.SHA256())
        )
        self.file = place / f"{name}.pem"
        self.file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))

    def certificate(self, name: str, *, valid: bool = True) -> Certificate:
        """One for this machine, or a person's; where it is not `valid`, it was until yesterday."""
        key = ec.generate_private_key(ec.SECP256R1())
        subject = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])
        here = [
            x509.DNSName("localhost"),
            x509.IPAddress(ipaddress.ip_address("127.0.0.1")),
        ]
        signed = (
            _begun(subject, self._name, key, valid=valid)
            .add_extension(x509.SubjectAlternativeName(here), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        found = Certificate(self._place / f"{name}.pem", self._place / f"{name}.key")
        found.file.write_bytes(signed.public_bytes(serialization.Encoding.PEM))
        found.key.write_bytes(
            key.private_bytes(
                serialization.Encoding.PEM,
                serialization.PrivateFormat.PKCS8,
                serialization.NoEncryption(),
            )
        )
        return found


@dataclass(frozen=True)
class Certificate:
    """The files of one."""

    file: Path
    key: Path


def _begun(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, *, valid: bool
) -> x509.CertificateBuilder:
    now = datetime.now(UTC)
    end = now + _DAY if valid else now - _DAY
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(end - 10 * _DAY)
        .not_valid_after(end)
    )


class Door:
    """TLS in front of a port of this machine.

    Whoever comes in has to show a certificate, where authorities of `clients` are named.
    """

    def __init__(self, behind: int, certificate: Certificate, clients: Path | None) -> None:
        self._behind = behind  # the port that all of it is handed on to
        self._context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self._context.load_cert_chain(certificate.file, certificate.key)
        if clients:
            self._context.load_verify_locations(clients)
            self._context.verify_mode = ssl.CERT_REQUIRED
        self._context.set_alpn_protocols(["h2"])
        self._listening = socket.create_server(("127.0.0.1", 0))
        self._closed = False
        self.names = set[str]()  # of those who came in, by their certificates
        self.heard = bytearray()  # what they have said

    @property
    def address(self) -> str:
        """Where it listens."""
        return f"127.0.0.1:{self._listening.getsockname()[1]}"

    def serve(self) -> None:
        """Until it is closed."""
        while True:
            comer, _ = self._listening.accept()
            if self._closed:
                comer.close()
                return
            threading.Thread(target=self._let_in, args=(comer,), daemon=True).start()

    def close(self) -> None:
        """Nobody comes in any more."""
        self._closed = True
        socket.create_connection(self._listening.getsockname()).close()  # or it waits for ever
        self._listening.close()

    def _let_in(self, comer: socket.socket) -> None:
        with suppress(OSError), self._context.wrap_socket(comer, server_side=True) as inside:
            if shown := inside.getpeercert(binary_form=True):
                found = x509.load_der_x509_certificate(shown).subject
                self.names |= {str(it.value) for it in found}
            with socket.create_connection(("127.0.0.1", self._behind)) as back:
                self._hand_on(inside, back)

    def _hand_on(self, inside: ssl.SSLSocket, back: socket.socket) -> None:
        """Whatever comes on one side to the other, until one of them has ended."""
        others: dict[socket.socket, socket.socket] = {inside: back, back: inside}
        while True:
            ready = [inside] if inside.pending() else select.select(list(others), [], [])[0]
            for one in ready:
                piece = one.recv(_PIECE)
                if not piece:
                    return
                if one is inside:
                    self.heard += piece
                others[one].sendall(piece)


@contextmanager
def tls_door(behind: int, certificate: Certificate, clients: Path | None = None) -> Iterator[Door]:
    """A door for the length of a test."""
    door = Door(behind, certificate, clients)
    thread = threading.Thread(target=door.serve, daemon=True)
    thread.start()
    try:
        yield door
    finally:
        door.close()
        thread.join(20)


def as_header(text: str) -> bytes:
    """How HTTP/2 writes these letters in a header: by Huffman's code of RFC 7541."""
    bits = "".join(_CODE[letter] for letter in text)
    bits += "1" * (-len(bits) % 8)
    return int(bits, 2).to_bytes(len(bits) // 8)


class Porter:
    """A server that knows HTTP/2 just well enough to send everybody away who asks for something."""

    def __init__(self, words: str) -> None:
        self._words = words
        self._listening = socket.create_server(("127.0.0.1", 0))

    @property
    def port(self) -> int:
        """Where it listens."""
        port: int = self._listening.getsockname()[1]
        return port

    def serve(self) -> None:
        """Until it is closed."""
        with suppress(OSError):
            while True:
                comer, _ = self._listening.accept()
                threading.Thread(target=self._send_away, args=(comer,), daemon=True).start()

    def close(self) -> None:
        """Nobody is answered any more."""
        self._listening.close()

    def _send_away(self, comer: socket.socket) -> None:
        with suppress(OSError, EOFError), comer, comer.makefile("rb") as said:
            _exactly(said, len(_PREFACE))
            comer.sendall(_frame(_SETTINGS, 0, 0, b""))
            while True:
                head = _exactly(said, 9)
                _exactly(said, int.from_bytes(head[:3]))
                stream = int.from_bytes(head[5:])
                if head[3] == _SETTINGS and not head[4] & _ACK:
                    comer.sendall(_frame(_SETTINGS, _ACK, 0, b""))
                if head[3] == _HEADERS:
                    comer.sendall(_frame(_HEADERS, _LAST, stream, self._refusal()))

    def _refusal(self) -> bytes:
        """Who asks is not known: code 16 of gRPC, and the words."""
        fields = {
            "content-type": "application/grpc",
            "grpc-status": "16",
            "grpc-message": self._words,
        }
        literals = [bytes([0, len(name)]) + name.encode() + bytes([len(value)]) + value.encode()
                    for name, value in fields.items()]  # fmt: skip
        return b"\x88" + b"".join(literals)  # 0x88: status 200


def _frame(kind: int, flags: int, stream: int, payload: bytes) -> bytes:
    return len(payload).to_bytes(3) + bytes([kind, flags]) + stream.to_bytes(4) + payload


def _exactly(said: BinaryIO, count: int) -> bytes:
    found = said.read(count)
    if len(found) < count:
        raise EOFError
    return found


@contextmanager
def porter(words: str) -> Iterator[Porter]:
    """Such a server for the length of a test."""
    found = Porter(words)
    threading.Thread(target=found.serve, daemon=True).start()
    try:
        yield found
    finally:
        found.close()
