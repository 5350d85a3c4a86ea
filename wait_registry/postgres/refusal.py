"""Which failures to connect to Postgres no waiting mends: who we are, whom we trust, where we connect."""

from __future__ import annotations

import re
from dataclasses import dataclass

# libpq gives a failed connection no SQLSTATE, only text. A server that speaks another language is waited for instead,
# with its words in the log.
_REFUSALS = (
    (
        r"password authentication failed|no password supplied|role \".*\" (does not exist|is not permitted)"
        r"|authentication failed for user",
        "Check user and password in postgres.url",
    ),
    (r"database \".*\" does not exist", "Correct the database's name in postgres.url, or create it"),
    (r"permission denied for database", "Grant this user CONNECT on the database"),
    (
        r"no pg_hba\.conf entry|pg_hba\.conf rejects",
        "The server's pg_hba.conf lets nobody in like this: check host, user and sslmode in postgres.url, or add a "
        "line to it",
    ),
    (
        # With TLS 1.3 the server refuses a client's certificate after the handshake, by an alert.
        r"requires a valid client certificate|alert (bad certificate|unsupported certificate|unknown ca|decrypt error"
        r"|certificate (revoked|expired|unknown|required))",
        "The server refuses our certificate: sslcert and sslkey in postgres.url must be set, be valid now and be "
        "signed by who the server trusts",
    ),
    (
        r"private key file|could not read certificate file",
        "Correct sslcert and sslkey in postgres.url: a key must be that of its certificate, and readable by its owner "
        "alone",
    ),
    (
        r"certificate verify failed|server certificate for .* does not match|root certificate file .* does not exist"
        r"|could not read root certificate",
        "Check sslmode, sslrootcert and host in postgres.url: the server's certificate must be valid now, hold for "
        "that host and be signed by who is trusted",
    ),
    (
        r"server does not support SSL",
        "The server has TLS switched off: switch it on, or lower sslmode in postgres.url",
    ),
    (
        r"invalid connection option|invalid sslmode value|invalid port number|for connection option",
        "Correct postgres.url",
    ),
)


# How psycopg lists the failures where there was more than one: a name in the URL may stand for several addresses.
_ATTEMPT = re.compile(r"^- (?P<host>host: .*?, port: .*?), hostaddr: .*?(?=^- host: |\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Refusal:
    """What a person can do about it, one sentence without its full stop; ``everywhere``: every host refused us."""

    mend: str
    everywhere: bool


def refusal_of(said: str) -> Refusal | None:
    """Return what a failed connection says that no waiting mends, unless a host changes its mind or another answers.

    Args:
        said: what psycopg said, of all attempts.

    Returns:
        None for what may pass.
    """
    mend = _mend_of(said)
    if mend is None:
        return None
    refused: dict[str, bool] = {}
    for attempt in _ATTEMPT.finditer(said):
        host = attempt["host"]
        refused[host] = refused.get(host, False) or _mend_of(attempt[0]) is not None
    return Refusal(mend, everywhere=all(refused.values()))


def _mend_of(said: str) -> str | None:
    return next((mend for pattern, mend in _REFUSALS if re.search(pattern, said)), None)
