"""Calls of the downstream: which are work done."""

from __future__ import annotations

import pytest

from wait_registry.demo.calls import ABORTED, Call


@pytest.mark.parametrize(
    ("status", "succeeded"), [(200, True), (204, True), (302, False), (ABORTED, False), (503, False)]
)
def test_only_a_2xx_answer_is_work_done(status: int, succeeded: bool) -> None:
    call = Call(1, 1000, 1200, 5.0, 5.25, "id", "orders", 0, 7, 1, status, "ab")
    assert call.succeeded is succeeded
    assert call.latency_s == 0.25
