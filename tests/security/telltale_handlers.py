"""A handler that fails in many ways, each with the record in its message."""

from __future__ import annotations

import asyncio
import os

from wait_registry.handler import Record, TransientError


class Refused(Exception):
    """What a user's library raises."""


async def handle(record: Record) -> None:
    """Do what the value says."""
    said = (record.value or b"").decode()
    kind = said.partition(" ")[0]
    if kind == "fail":
        raise ValueError(f"no such order: {said} {record.key!r} {record.headers!r}")
    if kind == "chained":
        try:
            raise KeyError(said)
        except KeyError as error:
            raise Refused(f"not there: {record.headers!r}") from error
    if kind == "later":
        raise TransientError(f"busy with {said}")
    if kind == "slow":
        await asyncio.sleep(3600)
    if kind == "poison":
        os._exit(9)
