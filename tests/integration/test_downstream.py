"""The downstream answers as its mixture says, logs what it did, and abandons work whose caller is gone."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from wait_registry.errors import ConfigurationError
from waitreg.downstream.calls import ABORTED, read_calls
from waitreg.downstream.service import Downstream

HEADERS = {
    "Idempotency-Key": "key-1",
    "X-Waitreg-Wait-Id": "id-1",
    "X-Waitreg-Topic": "orders",
    "X-Waitreg-Partition": "3",
    "X-Waitreg-Offset": "42",
    "X-Waitreg-Delivery": "2",
}


def with_downstream(use: Callable[[Downstream, aiohttp.ClientSession], Any], **options: Any) -> Any:
    """Return what ``use`` returns with a downstream of these options."""

    async def run() -> Any:
        downstream = Downstream(port=0, **options)
        await downstream.start()
        try:
            async with aiohttp.ClientSession() as session:
                return await use(downstream, session)
        finally:
            await downstream.stop()

    return asyncio.run(run())


async def post(session: aiohttp.ClientSession, address: str, body: bytes = b"x", **headers: str) -> int:
    async with session.post(address, data=body, headers=headers or HEADERS) as response:
        return response.status


async def measured(session: aiohttp.ClientSession, address: str) -> dict[str, Any]:
    async with session.get(f"{address}stats") as response:
        stats: dict[str, Any] = await response.json()
        return stats


def test_a_call_is_logged_with_its_record_and_the_body_it_got(tmp_path: Path) -> None:
    async def use(downstream: Downstream, session: aiohttp.ClientSession) -> None:
        await post(session, downstream.address, b"\x00\xff")

    with_downstream(use, mixture="0ms", log=tmp_path / "calls.jsonl")
    (call,) = read_calls(tmp_path / "calls.jsonl")
    assert (call.wait_id, call.topic, call.partition, call.offset, call.delivery) == ("id-1", "orders", 3, 42, 2)
    assert call.body_sha256 == "06eb7d6a69ee19e5fbdf749018d3d2abfa04bcbd1365db312eb86dc7169389b8"


def test_a_dropped_call_gets_no_answer_and_a_range_is_kept(tmp_path: Path) -> None:
    log = tmp_path / "calls.jsonl"

    async def use(downstream: Downstream, session: aiohttp.ClientSession) -> dict[str, Any]:
        dropped = 0
        for _ in range(10):
            try:
                assert await post(session, downstream.address) == 200
            except aiohttp.ClientConnectionError:
                dropped += 1
        assert dropped == 2
        return await measured(session, downstream.address)

    stats = with_downstream(use, mixture="20ms-40ms", failures="20%:drop", log=log)
    assert (stats["count"], stats["by_status"]) == (8, {"0": 2, "200": 8})
    calls = list(read_calls(log))
    assert sorted(call.status for call in calls) == [0, 0, *[200] * 8]
    assert all(call.latency_s >= 0.02 for call in calls)


def test_a_call_that_hangs_is_aborted_when_its_caller_or_the_service_gives_up(tmp_path: Path) -> None:
    async def use(downstream: Downstream, session: aiohttp.ClientSession) -> dict[str, Any]:
        async def until_in_flight(calls: int) -> None:
            async with asyncio.timeout(20):
                while (await measured(session, downstream.address))["in_flight"] != calls:
                    pass

        given_up = asyncio.create_task(post(session, downstream.address))
        await until_in_flight(1)
        given_up.cancel()
        await until_in_flight(0)
        hanging = asyncio.create_task(post(session, downstream.address))
        await until_in_flight(1)
        await downstream.stop()
        with pytest.raises(aiohttp.ClientError):
            await hanging
        return downstream.stats()

    log = tmp_path / "calls.jsonl"
    assert with_downstream(use, mixture="hang", log=log)["by_status"] == {"499": 2}
    assert [(call.status, call.succeeded) for call in read_calls(log)] == [(ABORTED, False)] * 2


def test_the_mixture_is_changed_while_it_runs() -> None:
    async def use(downstream: Downstream, session: aiohttp.ClientSession) -> list[Any]:
        async def change(body: str) -> tuple[int, dict[str, Any]]:
            async with session.post(f"{downstream.address}mixture", data=body) as response:
                return response.status, await response.json()

        assert await post(session, downstream.address) == 200
        for body, mixture in (('{"fail": "100%:503"}', "1ms"), ('{"mixture": "2ms"}', "2ms")):
            assert await change(body) == (200, {"mixture": mixture, "fail": "100%:503", "capacity": 0})
            assert await post(session, downstream.address) == 503
        refused = ("soon", '{"mixtur": "2ms"}', '{"mixture": 5}', '{"capacity": -1}')
        return [(await change(body))[0] for body in refused]

    assert with_downstream(use, mixture="1ms") == [400] * 4


def test_a_port_that_is_taken_is_named_with_what_to_do() -> None:
    async def use(downstream: Downstream, session: aiohttp.ClientSession) -> None:
        with pytest.raises(ConfigurationError, match=rf"{downstream.port}.*--port"):
            await Downstream(port=downstream.port).start()

    with_downstream(use)
