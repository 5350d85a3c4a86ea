"""A handler that gathers single records into one call for many, and still gives each record its own outcome.

The processor calls ``handle`` once a record, many at a time. Here a call joins the batch that is being gathered and
waits for its own answer. The batch leaves when it is full or when its oldest record has waited long enough.
"""

from __future__ import annotations

import asyncio
import json
import os
from typing import Any

import aiohttp

from gathering import BatchFailed, Gathering
from wait_registry.handler import Discard, HandlerResult, PermanentError, Record, TransientError

URL = os.environ.get("ENRICH_URL", "http://127.0.0.1:8080/enrich")
BATCH_RECORDS = int(os.environ.get("ENRICH_BATCH_RECORDS", "20"))
BATCH_WAIT_S = float(os.environ.get("ENRICH_BATCH_WAIT_MS", "20")) / 1000
# Well below processor.handler_timeout_s: a batch that hangs leaves time for the single calls.
BATCH_TIMEOUT_S = float(os.environ.get("ENRICH_BATCH_TIMEOUT_S", "2"))

TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})

Answer = tuple[int, str]


class EnrichOrders:
    """Opened once a process; all of its records share one connection pool and one gathering batch."""

    def __init__(self) -> None:
        self._http: aiohttp.ClientSession | None = None
        self._gathering = Gathering(self._call_for_many, BATCH_RECORDS, BATCH_WAIT_S)

    async def __aenter__(self) -> EnrichOrders:
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._gathering.close()
        if self._http is not None:
            await self._http.close()

    async def handle(self, record: Record) -> HandlerResult:
        """Enrich one record, in a batch if that works and alone if not."""
        if record.value is None:
            return Discard("the order was deleted")
        order = _order(record.value)
        try:
            status, problem = await self._gathering.answer_for(record.idempotency_key, order)
        except BatchFailed:
            status, problem = await self._call_for_one(record.idempotency_key, order)
        return _judge(status, problem)

    async def _call_for_many(self, orders: dict[str, Any]) -> dict[str, Answer]:
        """Send one batch; the service answers per record, in any order."""
        body = {"orders": [{"id": key, "order": order} for key, order in orders.items()]}
        async with asyncio.timeout(BATCH_TIMEOUT_S):
            status, text = await self._post(f"{URL}/batch", body)
        if status != 200:
            raise TransientError(f"the batch was answered with {status}")
        return {item["id"]: (int(item["status"]), str(item.get("problem", ""))) for item in json.loads(text)["results"]}

    async def _call_for_one(self, key: str, order: Any) -> Answer:
        return await self._post(URL, {"id": key, "order": order}, {"Idempotency-Key": key})

    async def _post(self, url: str, body: object, headers: dict[str, str] | None = None) -> Answer:
        assert self._http is not None, "opened before the first record"
        try:
            async with self._http.post(url, json=body, headers=headers) as answer:
                return answer.status, await answer.text(errors="replace")
        except aiohttp.ClientError as error:
            raise TransientError(f"no answer from the service: {type(error).__name__}: {error}") from error


def _order(value: bytes) -> Any:
    try:
        return json.loads(value)
    except ValueError as error:
        raise PermanentError(f"the value is no JSON: {error}") from error


def _judge(status: int, problem: str) -> HandlerResult:
    if 200 <= status < 300:
        return None
    if status in TRY_AGAIN:
        raise TransientError(f"the service answered {status}: {problem[:200]}")
    raise PermanentError(f"the service refused with {status}: {problem[:200]}")
