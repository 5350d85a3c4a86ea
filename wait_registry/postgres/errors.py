"""The text of Postgres' errors: what may be logged of it, and which failed connections an operator must fix.

Postgres' errors quote rows, which are payloads, and errors go into logs.
"""

from __future__ import annotations

import re
from dataclasses import dataclass

import psycopg

# libpq gives a failed connection no SQLSTATE, only text. If the server speaks another language, the service waits
# instead, with the server's message in the log.
_REFUSALS = (
    (
        # A pooler names the method and no user.
        r"authentication failed|no password supplied|role \".*\" (does not exist|is not permitted)|no such user",
        "Check user and password in postgres.url",
    ),
    (r"database \".*\" does not exist|no such database", "Correct the database's name in postgres.url, or create it"),
    (r"permission denied for database", "Grant this user CONNECT on the database"),
    (
        r"no pg_hba\.conf entry|pg_hba\.conf rejects|login rejected|SSL required",
        "The server's pg_hba.conf has no line for this client: check host, user and sslmode in postgres.url, or add a "
        "line to it",
    ),
    (
        # With TLS 1.3 the server refuses a client's certificate after the handshake, by an alert.
        r"requires a valid client certificate|alert (bad certificate|unsupported certificate|unknown ca|decrypt error"
        r"|certificate (revoked|expired|unknown|required))",
        "The server refuses our certificate: sslcert and sslkey in postgres.url must be set, be valid now and be "
        "signed by a CA that the server trusts",
    ),
    (
        r"private key file|could not read certificate file",
        "Correct sslcert and sslkey in postgres.url: a key must belong to its certificate, and be readable by its "
        "owner alone",
    ),
    (
        r"certificate verify failed|server certificate for .* does not match|root certificate file .* does not exist"
        r"|could not read root certificate",
        "Check sslmode, sslrootcert and host in postgres.url: the server's certificate must be valid now, be "
        "issued for that host and be signed by a trusted CA",
    ),
    (
        r"server does not support SSL",
        "The server has TLS switched off: switch it on, or lower sslmode in postgres.url",
    ),
    (
        r"unsupported startup parameter",
        "The pooler takes no options at the start of a connection: leave options= and the like out of postgres.url",
    ),
    (
        r"invalid connection option|invalid sslmode value|invalid port number|for connection option",
        "Correct postgres.url",
    ),
)


# What may pass, and yet has another remedy than a server that doesn't answer.
_PASSING = (
    (
        r"too many clients|remaining connection slots are reserved|too many connections for",
        "end connections that are no longer needed (pg_stat_activity lists them), or raise max_connections or the "
        "connection limit of this role or database",
    ),
    (
        r"the database system is (starting up|shutting down|in recovery mode|not yet accepting connections)",
        "wait until it accepts connections; its log says what it does",
    ),
    (
        r"query_wait_timeout",
        "resume the pool of the pooler at postgres.url if it is paused, raise its size, or start Postgres behind it",
    ),
    (r"no more connections allowed", "raise max_client_conn of the pooler at postgres.url"),
    (r"database \".*\" is disabled", "enable the database in the pooler at postgres.url"),
)


# How psycopg lists the failures where there was more than one: a name in the URL may have several addresses.
_ATTEMPT = re.compile(r"^- (?P<host>host: .*?, port: .*?), hostaddr: .*?(?=^- host: |\Z)", re.DOTALL | re.MULTILINE)


@dataclass(frozen=True, slots=True)
class Refusal:
    """The fix of a refused connection, one sentence without its full stop; ``everywhere``: every host refused."""

    fix: str
    everywhere: bool


def error_text(error: BaseException) -> str:
    """Return the class and the message of an error, fit for logs and health.

    Of Postgres' own errors the message is the first line and the SQLSTATE: their details quote whole rows ("Failing row
    contains ..."), and are in Postgres' log.
    """
    text = str(error)
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        text = f"{error.diag.message_primary} (SQLSTATE {error.sqlstate})"
    return f"{type(error).__name__}: {text}".strip()


_NO_TIME = re.compile(
    r'(?:invalid input syntax for type (?:timestamp[a-z ]*|interval)|date/time field value out of range): "(.*)"',
    re.DOTALL,
)


def server_message(error: psycopg.Error) -> str:
    """Return what the server said, for people, without the statement that it quotes."""
    message = error.diag.message_primary or str(error).strip()
    no_time = _NO_TIME.fullmatch(message)
    return f"{no_time[1]!r} isn't a time, such as 2026-11-21T08:00Z, now or '2 hours ago'" if no_time else message


def refusal_of(message: str) -> Refusal | None:
    """Return the refusal in the message of a failed connection; None for a failure that may pass.

    Args:
        message: psycopg's, of all attempts.
    """
    fix = _fix_of(message)
    if fix is None:
        return None
    refused: dict[str, bool] = {}
    for attempt in _ATTEMPT.finditer(message):
        host = attempt["host"]
        refused[host] = refused.get(host, False) or _fix_of(attempt[0]) is not None
    return Refusal(fix, everywhere=all(refused.values()))


def fix_of_passing(message: str) -> str:
    """Return what helps against a failure that may pass; "" if it is what helps a server that doesn't answer."""
    return next((fix for pattern, fix in _PASSING if re.search(pattern, message)), "")


def _fix_of(message: str) -> str | None:
    return next((fix for pattern, fix in _REFUSALS if re.search(pattern, message)), None)
