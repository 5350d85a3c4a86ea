"""PEM texts in an `ssl.SSLContext`, and when a certificate ends."""

from __future__ import annotations

import os
import re
import ssl
from datetime import UTC, datetime

_CERTIFICATE = re.compile(r"-----BEGIN CERTIFICATE-----.+?-----END CERTIFICATE-----", re.DOTALL)
_EXPLICIT_VERSION = 0xA0
_UTC_TIME = 0x17


def load_client_certificate(context: ssl.SSLContext, certificate: str, key: str, password: str = "") -> None:
    """Have a context show this client certificate.

    Args:
        context: of the connections.
        certificate: the chain, PEM text.
        key: its key, PEM text.
        password: of the key; without one, OpenSSL would ask on the terminal.

    Raises:
        OSError: certificate and key can't be read or don't belong together.
    """
    # OpenSSL reads them from a file only; this one is in memory.
    with os.fdopen(os.memfd_create("client certificate"), "wb", buffering=0) as both:
        both.write(f"{key}\n{certificate}".encode())
        context.load_cert_chain(f"/proc/self/fd/{both.fileno()}", password=password)


def ends_of(pem: str) -> list[datetime]:
    """Return when each certificate of a PEM text ends.

    Raises:
        ValueError: a certificate can't be read.
    """
    return [end_of(ssl.PEM_cert_to_DER_cert(found)) for found in _CERTIFICATE.findall(pem)]


def end_of(der: bytes) -> datetime:
    """Return when a certificate ends, the field ``notAfter`` (RFC 5280, 4.1); Python reads it of trusted ones only.

    Raises:
        ValueError: these bytes aren't a certificate.
    """
    try:
        certificate = _first(der)[1]
        fields = _first(certificate)[1]
        if fields[0] == _EXPLICIT_VERSION:
            fields = _first(fields)[2]
        for _ in ("serial number", "signature", "issuer"):
            fields = _first(fields)[2]
        not_before = _first(_first(fields)[1])
        tag, text, _ = _first(not_before[2])
    except IndexError as error:
        raise ValueError(f"these {len(der)} bytes aren't a certificate") from error
    # Two digits of a year mean 1950 to 2049; Python's would mean 1969 to 2068.
    written = text.decode("ascii")
    if tag == _UTC_TIME:
        written = f"{'19' if written[:2] >= '50' else '20'}{written}"
    return datetime.strptime(written, "%Y%m%d%H%M%SZ").replace(tzinfo=UTC)


def _first(der: bytes) -> tuple[int, bytes, bytes]:
    """Return tag and content of the first DER element, and what follows the element."""
    length, at = der[1], 2
    if length >= 0x80:  # the number of bytes that the length takes
        at += length - 0x80
        length = int.from_bytes(der[2:at])
    return der[0], der[at : at + length], der[at + length :]
