"""What the downstream is told in a few words."""

from __future__ import annotations

import math

import pytest

from wait_registry.demo.mixture import DROPPED, Behaviour, Latency, parse_latency, parse_status
from wait_registry.errors import ConfigurationError


@pytest.mark.parametrize(
    ("text", "latency"),
    [
        ("200ms", Latency(0.2, 0.2)),
        ("1s-5s", Latency(1.0, 5.0)),
        ("500ms - 2s", Latency(0.5, 2.0)),
        ("hang", Latency(math.inf, math.inf)),
    ],
)
def test_latencies_are_one_a_range_or_for_ever(text: str, latency: Latency) -> None:
    assert parse_latency(text) == latency


@pytest.mark.parametrize("text", ["5s-1s", "1s-", "-1s", "1s-2s-3s", "hangs", "1-5s"])
def test_what_is_no_latency_is_refused(text: str) -> None:
    with pytest.raises(ValueError):
        parse_latency(text)


def test_a_range_is_evenly_used_and_the_same_for_the_same_call() -> None:
    latency = Latency(1.0, 5.0)
    drawn = [latency.of_call(number) for number in range(2000)]
    assert drawn == [latency.of_call(number) for number in range(2000)]
    assert all(1 <= seconds <= 5 for seconds in drawn)
    assert sum(drawn) / len(drawn) == pytest.approx(3.0, abs=0.1)


@pytest.mark.parametrize(("text", "status"), [("503", 503), ("200", 200), ("drop", DROPPED)])
def test_a_failure_is_a_status_or_a_dropped_connection(text: str, status: int) -> None:
    assert parse_status(text) == status


@pytest.mark.parametrize(("mixture", "failures"), [("50%:hang,40%:1s", ""), ("1s", "1%:dropped"), ("1s", "101%:503")])
def test_what_cannot_be_read_is_refused(mixture: str, failures: str) -> None:
    with pytest.raises(ConfigurationError):
        Behaviour.read(mixture, failures)
