"""A handler that charges payments over HTTP, once each although it may be called more often.

Delivery is at least once: after a timeout, a crash or a rebalance the same record comes again. Each call carries an
idempotency key, so that the service can distinguish a repetition from a second payment: the payment's own ID, or else
the record's ``idempotency_key``.
"""

from __future__ import annotations

import json
import os
from http import HTTPStatus
from typing import Any

import aiohttp

from wait_registry.handler import Discard, HandlerResult, PermanentError, Record, TransientError

URL = os.environ.get("PAYMENTS_URL", "http://127.0.0.1:8080/charges")

# The service is busy or restarting, or limits the rate: another attempt may succeed.
TRY_AGAIN = frozenset({408, 425, 429, 500, 502, 503, 504})


class ChargePayment:
    """Opened once per process; ``handle`` runs up to ``processor.max_in_flight`` times at once."""

    def __init__(self) -> None:
        self._http: aiohttp.ClientSession | None = None

    async def __aenter__(self) -> ChargePayment:
        # No limit on connections and none on time: max_in_flight and handler_timeout_s are the limits, in one place.
        self._http = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0), timeout=aiohttp.ClientTimeout(total=None)
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        if self._http is not None:
            await self._http.close()

    async def handle(self, record: Record) -> HandlerResult:
        """Charge one payment."""
        if record.value is None:
            return Discard("the payment was deleted before it was charged")
        payment = _payment(record.value)
        if payment.get("status") == "cancelled":
            return Discard("the payment was cancelled")
        status, answer = await self._charge(record.value, _idempotency_key(payment, record))
        return _judge(status, answer)

    async def _charge(self, body: bytes, idempotency_key: str) -> tuple[int, str]:
        assert self._http is not None, "opened before the first record"
        headers = {"Content-Type": "application/json", "Idempotency-Key": idempotency_key}
        try:
            async with self._http.post(URL, data=body, headers=headers) as answer:
                return answer.status, await answer.text(errors="replace")
        except aiohttp.ClientError as error:
            # Not all of aiohttp's errors are OSErrors. As TransientError, all of them are retried.
            raise TransientError(f"no answer from the payment service: {type(error).__name__}: {error}") from error


def _payment(value: bytes) -> dict[str, Any]:
    try:
        payment = json.loads(value)
    except ValueError as error:
        raise PermanentError(f"the value isn't JSON: {error}") from error
    if not isinstance(payment, dict):
        raise PermanentError(f"the value is a JSON {type(payment).__name__}, not an object")
    return payment


def _idempotency_key(payment: dict[str, Any], record: Record) -> str:
    own = payment.get("id")
    return own if isinstance(own, str) and own else record.idempotency_key


def _judge(status: int, answer: str) -> HandlerResult:
    if 200 <= status < 300:
        return None
    if status == HTTPStatus.CONFLICT:
        # It has this payment already: an earlier attempt succeeded, and its answer was lost.
        return None
    if status in TRY_AGAIN:
        raise TransientError(f"the payment service answered {status}")
    # Support staff need the answer's first words, in the dead letter.
    raise PermanentError(f"the payment service refused with {status}: {answer[:200]}")
