"""A typed handler: the value is decoded and checked before the call, so the handler begins with an order."""

from __future__ import annotations

import os
from decimal import Decimal
from typing import Literal

import aiohttp
from pydantic import BaseModel, Field

from wait_registry.handler import Discard, HandlerResult, PermanentError, Record, TransientError

URL = os.environ.get("STOCK_URL", "http://127.0.0.1:8080/reservations")


class Item(BaseModel):
    """One line of an order."""

    article: str
    quantity: int = Field(gt=0)
    price: Decimal


class Order(BaseModel):
    """The value of a record; fields that aren't named here are ignored."""

    id: str
    status: Literal["placed", "cancelled"]
    items: list[Item] = Field(min_length=1)


class ReserveStock:
    """Opened once per process; ``handle`` runs up to ``processor.max_in_flight`` times at once."""

    def __init__(self) -> None:
        self._http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> ReserveStock:
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._http is not None:
            await self._http.close()

    async def handle(self, order: Order | None, record: Record) -> HandlerResult:
        """Reserve the articles of one order. Without ``| None`` a null value would be malformed."""
        if order is None:
            return Discard("the order was deleted")
        if order.status == "cancelled":
            return Discard("the order was cancelled")
        wanted = {item.article: item.quantity for item in order.items}
        status = await self._reserve({"order": order.id, "wanted": wanted}, record.idempotency_key)
        if status >= 500 or status in (408, 425, 429):
            raise TransientError(f"the stock service answered {status}")
        if status >= 400:
            raise PermanentError(f"the stock service refused with {status}")
        return None

    async def _reserve(self, body: dict[str, object], idempotency_key: str) -> int:
        assert self._http is not None, "opened before the first record"
        try:
            async with self._http.post(URL, json=body, headers={"Idempotency-Key": idempotency_key}) as answer:
                return answer.status
        except aiohttp.ClientError as error:
            raise TransientError(f"no answer from the stock service: {type(error).__name__}: {error}") from error
