"""The handlers of the incident's shop; copied alongside its services as `shop.py`: errors are named as a user's are."""

from __future__ import annotations

import asyncio
import json

from wait_registry.handler import PermanentError, Record


class CardDeclined(PermanentError):
    """The bank said no: trying again doesn't help."""


async def charge(record: Record) -> None:
    """Charge an order, which takes as long as the order says."""
    order = json.loads(record.value or b"{}")
    if order.get("card") == "declined":
        raise CardDeclined(f"the bank declined the card of {order['customer']}")
    if not order["lines"]:
        raise ValueError("an order without lines has no amount")
    await asyncio.sleep(order["takes_s"])


async def send(record: Record) -> None:
    """Hand a parcel to a carrier whose service doesn't answer today."""
    await asyncio.sleep(3600)
