"""A handler that applies changes to accounts in their order, each once although it may be called more often.

With ``processor.ordering = "key"`` the changes of an account arrive one after the other, in the order of their offsets.
So one number per account is enough to recognize a repetition: the offset of the last change that was applied. It is
written in the same transaction as the balance.
"""

from __future__ import annotations

import json
import os
import sqlite3
from contextlib import closing
from typing import Any

from wait_registry.handler import Discard, HandlerResult, PermanentError, Record, TransientError

DATABASE = os.environ.get("ACCOUNTS_DB", "accounts.db")
CREATE = "create table if not exists account (name text primary key, cents integer, last_offset integer) strict"
OPEN = "insert into account values (?, 0, -1) on conflict do nothing"
READ = "select cents, last_offset from account where name = ?"
WRITE = "update account set cents = ?, last_offset = ? where name = ?"


def apply(record: Record) -> HandlerResult:
    """Apply one change: deposit or withdraw some cents; a plain function, so it runs in a thread."""
    if record.key is None or record.value is None:
        return Discard("no account or no change")
    name, change = record.key.decode(), _change(record.value)
    try:
        return _change_balance(name, change, record.offset)
    except sqlite3.OperationalError as error:  # such as a lock that another process holds for too long
        raise TransientError(f"the database can't be written now: {error}") from error


def _change_balance(name: str, change: int, offset: int) -> HandlerResult:
    # sqlite3 begins a transaction with "begin immediate", so two processes don't change one account at once.
    with closing(sqlite3.connect(DATABASE, timeout=20, isolation_level="IMMEDIATE")) as database, database:
        database.execute(CREATE)
        database.execute(OPEN, (name,))
        cents, last_offset = database.execute(READ, (name,)).fetchone()
        if offset <= last_offset:
            return None  # applied by an earlier call
        after = cents + change
        if after < 0:
            return Discard(f"{-change} cents are to be withdrawn, the balance is {cents}")
        database.execute(WRITE, (after, offset, name))
    return None


def _change(value: bytes) -> int:
    try:
        change: Any = json.loads(value)["cents"]
    except (ValueError, KeyError, TypeError) as error:
        raise PermanentError(f"the value is no change of an account: {error}") from error
    if not isinstance(change, int):
        raise PermanentError(f"cents is {change!r}, expected a whole number")
    return change
