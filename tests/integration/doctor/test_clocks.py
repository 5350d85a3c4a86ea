"""Clocks are compared as far as that can be done without writing."""

from __future__ import annotations

import time

from tests.conftest import SettingsFactory
from tests.support.kafka_io import Outgoing
from tests.support.topics import Topics
from wait_registry.cli.checks.clocks import broker_clock, postgres_clock
from wait_registry.diagnosis import Severity


def test_the_clock_of_a_postgres_on_this_host_is_ours(prepared: SettingsFactory) -> None:
    [line] = postgres_clock(prepared())
    assert line.severity is Severity.OK
    assert "s against this host's, known to " in line.message


def test_the_broker_s_clock_is_judged_by_its_newest_append(prepared: SettingsFactory, topics: Topics) -> None:
    settings = prepared()
    [line] = broker_clock(settings)
    assert (line.severity, "no record yet" in line.message) == (Severity.OK, True)
    topics.produce(settings.wait.topic, [Outgoing(b"", key=b"one")])
    [line] = broker_clock(settings)
    assert (line.severity, "not ahead of this host's" in line.message) == (Severity.OK, True)


def test_a_broker_that_stamps_the_future_is_an_error(settings_for: SettingsFactory, topics: Topics) -> None:
    settings = settings_for()
    # A broker with such a clock can't be had here: a topic whose producers stamp the records shows the same.
    topics.create(settings.wait.topic, 2, message__timestamp__type="CreateTime")
    in_an_hour_ms = time.time_ns() // 1_000_000 + 3_600_000
    topics.produce(settings.wait.topic, [Outgoing(b"", key=b"one", timestamp_ms=in_an_hour_ms)])
    [line] = broker_clock(settings)
    assert line.severity is Severity.ERROR
    assert "ahead of this host's: more than half of wait.skew_allowance_s = 5 s" in line.message
    assert "NTP" in line.fix
