"""Which failures to connect to Postgres no waiting mends: who we are, whom we trust, where we connect."""

from __future__ import annotations

import re

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
        r"certificate verify failed|server certificate for .* does not match|root certificate file .* does not exist"
        r"|could not read root certificate|requires a valid client certificate|certificate file .* does not exist",
        "Check sslmode, sslrootcert, sslcert and host in postgres.url: the certificate must hold for that host and be "
        "signed by who is trusted",
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


def refusal_of(said: str) -> str | None:
    """Return what to do about a failed connection that the same settings will never get.

    Args:
        said: what libpq said.

    Returns:
        One sentence without its full stop, or None for what may pass.
    """
    return next((mend for pattern, mend in _REFUSALS if re.search(pattern, said)), None)
