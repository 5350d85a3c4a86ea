"""What an error of Postgres says, without the rows that it quotes: those are payloads, and errors go into logs."""

from __future__ import annotations

import psycopg


def said_by(error: BaseException) -> str:
    """Return the kind of an error and its message, fit for logs and health.

    Of Postgres' own errors it is the first line and the SQLSTATE: their details hold whole rows ("Failing row contains
    ..."), and stand in Postgres' log.
    """
    text = str(error)
    if isinstance(error, psycopg.Error) and error.diag.message_primary:
        text = f"{error.diag.message_primary} (SQLSTATE {error.sqlstate})"
    return f"{type(error).__name__}: {text}".strip()
