"""A right that is missing, or taken away: the process ends with 2 and names it, and commits nothing unregistered."""

from __future__ import annotations

import time
from contextlib import closing
from datetime import UTC, datetime
from functools import partial

import pytest

from processor.intake import absent_topics
from processor.writing import emptied_topics
from sink.connect_group import require_no_second_sink
from sink.mirror import OffsetMirror
from sink.position import Position, TopicPartition
from sweeper.result import RowOutcome
from sweeper.tail import Tail
from sweeper.wait_topic import wait_log
from tests.integration.processor.running import Processors
from tests.integration.processor.scenario import accepts
from tests.integration.processor.wait_topic import stories
from tests.integration.sweeper.scenario import Scenario, sweeper_of
from tests.refusals.secured_settings import SecuredSettings
from tests.support.committed_offsets import committed
from tests.support.database import Database
from tests.support.rights import rights_of
from tests.support.waiting import wait_until
from wait_registry.clock import SystemClock
from wait_registry.errors import ConfigurationError
from wait_registry.handler import Record, TransientError
from wait_registry.kafka.clients import admin
from wait_registry.kafka.positions import earliest_offsets
from wait_registry.kafka.tail_reader import TailReader
from wait_registry.kafka.topics import require_topics
from wait_registry.records.topics import redelivery_topic, retry_topic
from wait_registry.settings.relations import Service
from wait_registry.settings.tree import Settings

QUICK = {"processor.commit_interval_s": 0.1, "processor.drain_timeout_s": 3, "processor.flush_timeout_s": 2}
ONE_PARTITION = {"wait.partitions": 1, "wait.skew_allowance_s": 0}
CONFIGS = "DESCRIBE_CONFIGS"


def grant_without(own: SecuredSettings, service: Service, settings: Settings, missing: str, on: str) -> None:
    """Give a service's user its rights, except one operation on a kind of resource or on names that end so."""
    for right in rights_of(service, settings):
        left = [
            one for one in right.operations if one != missing or not (right.resource == on or right.name.endswith(on))
        ]
        if left:
            own.secured.grant(own.user(service), right.resource, right.name, left, prefixed=right.prefixed)


def waiting_record(own: SecuredSettings, processors: Processors, *, granted: bool = True) -> tuple[Settings, str]:
    """Return the settings of a processor and its input topic, in which a record waits."""
    quick = {**QUICK, "processor.handler": processors.handler(accepts)}
    settings = own.of("processor", "SASL_PLAINTEXT", quick, granted=granted)
    topic = settings.processor.topics[0]
    own.topics.produce(topic, [b"value"])
    return settings, topic


def scenario(own: SecuredSettings, settings: Settings, database: Database) -> Scenario:
    """Return a wait topic and its view, looked at and written to by the operator."""
    database.install(settings)
    update = {"bootstrap_servers": own.secured.operator, "security": type(settings.kafka.security)()}
    by_operator = settings.model_copy(update={"kafka": settings.kafka.model_copy(update=update)})
    return Scenario(by_operator, own.topics, database)


@pytest.mark.parametrize("service", ["processor", "sink", "sweeper"])
def test_each_permission_missing_for_a_start_is_named(service: Service, secured_settings: SecuredSettings) -> None:
    settings = secured_settings.of(service, "SASL_PLAINTEXT")
    user, secured = secured_settings.user(service), secured_settings.secured
    for right in [right for right in rights_of(service, settings) if right.resource == "topic" and not right.prefixed]:
        own = [one for one in right.operations if one != CONFIGS]
        # DESCRIBE, which a start needs as well, comes with each of READ and WRITE.
        for lost, named in (((CONFIGS,), CONFIGS), (own, "DESCRIBE")):
            secured.revoke(user, "topic", right.name, lost)
            with pytest.raises(ConfigurationError, match=rf"topic {right.name} failed.* {named}\b"):
                require_topics(settings, service)
            secured.grant(user, "topic", right.name, lost)
    require_topics(settings, service)


@pytest.mark.guarantee("P8.17")
def test_a_sink_without_commit_permission_says_that_lag_is_not_shown(
    secured_settings: SecuredSettings, caplog: pytest.LogCaptureFixture
) -> None:
    settings = secured_settings.of("sink", "SASL_PLAINTEXT", granted=False)
    grant_without(secured_settings, "sink", settings, "READ", on="group")
    group = f"waitreg.sink.{settings.wait.topic}"
    with closing(OffsetMirror(settings.kafka, group)) as mirror:

        def told() -> bool:
            mirror.commit({TopicPartition(settings.wait.topic, 0): Position(0, datetime.now(UTC))})
            return "Group authorization failed" in caplog.text

        wait_until(told, 60, "the reason")
        for _ in range(20):
            assert told()
        ending = time.monotonic()
    told_so = [record.getMessage() for record in caplog.records if record.name == "sink.mirror"]
    assert all(f"{settings.wait.topic} could not be mirrored to its consumer group" in line for line in told_so)
    assert len(told_so) <= 2, "once each reason, however often it is tried"
    assert time.monotonic() - ending < 30, "its end waited for commits that the broker refuses"


def test_a_sink_that_cannot_see_the_connect_group_trusts_the_setting(
    secured_settings: SecuredSettings, caplog: pytest.LogCaptureFixture
) -> None:
    settings = secured_settings.of("sink", "SASL_PLAINTEXT")
    asked = (admin(settings.kafka), settings.kafka, settings.sink.connect_group, settings.wait.topic)
    require_no_second_sink(*asked)
    assert "can't be seen" not in caplog.text
    secured_settings.secured.revoke(secured_settings.user("sink"), "group", settings.sink.connect_group, ("DESCRIBE",))
    require_no_second_sink(*asked)
    assert "can't be seen, which takes DESCRIBE on its group: only sink.kind counts" in caplog.text


@pytest.mark.fault("F16")
@pytest.mark.parametrize(
    ("missing", "operation", "said"),
    [
        ("input", "READ", r"topic \S+\.input failed.*Grant the user of kafka\.security DESCRIBE"),
        ("input", CONFIGS, r"configuration of topic \S+\.input failed.* DESCRIBE_CONFIGS on it"),
        ("group", "READ", r"consuming as group \S+ failed.*Group authorization failed.*READ on the consumer group"),
        ("wait", "WRITE", r"topic \S+\.wait failed.* DESCRIBE"),
        ("dlq", "WRITE", r"topic \S+\.dlq failed.* DESCRIBE"),
    ],
)
def test_a_processor_without_a_right_ends_and_has_committed_nothing(
    missing: str, operation: str, said: str, secured_settings: SecuredSettings, processors: Processors
) -> None:
    settings, topic = waiting_record(secured_settings, processors, granted=False)
    grant_without(secured_settings, "processor", settings, operation, on=missing)
    with pytest.raises(ConfigurationError, match=said) as caught:
        processors.start(settings).join()
    assert caught.value.exit_code == 2
    topics = secured_settings.topics
    assert topics.read(settings.wait.topic) == []
    assert committed(topics.bootstrap, settings.processor.group, topic, 1) == [-1]


@pytest.mark.fault("F12")
def test_a_processor_without_write_ends_at_a_record(secured_settings: SecuredSettings, processors: Processors) -> None:
    settings, topic = waiting_record(secured_settings, processors, granted=False)
    grant_without(secured_settings, "processor", settings, "WRITE", on="wait")
    secured_settings.secured.grant(secured_settings.user("processor"), "topic", settings.wait.topic, ["DESCRIBE"])
    with pytest.raises(ConfigurationError, match=r"writing wait record \S+ to \S+\.wait failed.* WRITE on it"):
        processors.start(settings).join()
    assert committed(secured_settings.topics.bootstrap, settings.processor.group, topic, 1) == [0]


def test_a_processor_that_may_not_delete_says_that_retry_topics_fill(
    secured_settings: SecuredSettings,
    processors: Processors,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(emptied_topics, "FIRST_S", 0.2)
    monkeypatch.setattr(emptied_topics, "EVERY_S", 0.2)

    async def fails_once(record: Record) -> None:
        if record.delivery == 1:
            raise TransientError("once")

    retries = {"processor.max_attempts": 1, "processor.retry.delays": ("1s",)}
    overrides = {**QUICK, **retries, "processor.handler": processors.handler(fails_once)}
    settings = secured_settings.of("processor", "SASL_PLAINTEXT", overrides, granted=False)
    grant_without(secured_settings, "processor", settings, "DELETE", on=".")
    secured_settings.topics.produce(settings.processor.topics[0], [b"value"])
    running = processors.start(settings)
    wait_until(lambda: running.settled == {"retried": 1, "done": 1}, 60, "the second delivery")
    wait_until(lambda: "retry and redelivery topics aren't emptied" in caplog.text, 60, "the warning")
    assert "DELETE on it" in caplog.text
    first, secured = retry_topic(settings.processor.topics[0], settings.processor.group, 1), secured_settings.secured
    secured.grant(secured_settings.user("processor"), "topic", first, ["DELETE"])
    begins = partial(earliest_offsets, secured_settings.topics.admin, first, range(settings.dead_letter.partitions))
    wait_until(lambda: sum(begins().values()) == 1, 60, "the emptying, since the permission was granted")
    assert caplog.text.count("aren't emptied") == 1
    running.stop()


@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_processor_that_may_not_read_redeliveries_consumes_the_rest(
    protocol: str,
    secured_settings: SecuredSettings,
    processors: Processors,
    monkeypatch: pytest.MonkeyPatch,
    caplog: pytest.LogCaptureFixture,
) -> None:
    monkeypatch.setattr(absent_topics, "LOOK_EVERY_S", 0.3)
    quick = {**QUICK, "processor.handler": processors.handler(accepts), "processor.group_protocol": protocol}
    settings = secured_settings.of("processor", "SASL_PLAINTEXT", quick, granted=False)
    user, secured = secured_settings.user("processor"), secured_settings.secured
    for right in [right for right in rights_of("processor", settings) if not right.prefixed]:
        secured.grant(user, right.resource, right.name, right.operations)
    topic = settings.processor.topics[0]
    again = redelivery_topic(topic, settings.processor.group)
    secured_settings.topics.produce(topic, [b"value"])
    secured_settings.topics.produce(again, [b"redriven"])
    running = processors.start(settings)
    wait_until(lambda: running.done == 1, 60, "the input's record")
    assert f"without READ for this user: {again}" in caplog.text
    secured.grant(user, "topic", again, ["DESCRIBE"])
    restarted = processors.start(settings).wait_joined()
    assert f"topic {again}: configuration is hidden from this user" in caplog.text
    secured.grant(user, "topic", again, ["READ"])
    wait_until(lambda: running.done + restarted.done == 2, 60, "the redriven record")
    for one in (running, restarted):
        one.stop()


@pytest.mark.fault("F13")
@pytest.mark.parametrize(
    ("lost", "said"),
    [("wait", r"writing .* to \S+\.wait failed.* WRITE on it"), ("input", r"consuming \S+\.input.* READ on it")],
)
def test_a_revoked_permission_ends_a_processor_without_false_commits(
    lost: str, said: str, secured_settings: SecuredSettings, processors: Processors
) -> None:
    settings, topic = waiting_record(secured_settings, processors)
    topics = secured_settings.topics
    running = processors.start(settings)
    wait_until(lambda: running.done == 1, 60, "the first record")
    [right] = [right for right in rights_of("processor", settings) if right.name.endswith(lost)]
    operations = [one for one in right.operations if one != CONFIGS]
    secured_settings.secured.revoke(secured_settings.user("processor"), right.resource, right.name, operations)
    topics.produce(topic, [b"after"] * 20)
    with pytest.raises(ConfigurationError, match=said):
        running.join()
    registered = {origin[1:] for origin in stories(topics.read(settings.wait.topic))}
    for partition, position in enumerate(committed(topics.bootstrap, settings.processor.group, topic, 3)):
        assert {(partition, offset) for offset in range(max(position, 0))} <= registered
    secured_settings.secured.grant(secured_settings.user("processor"), right.resource, right.name, operations)
    processors.run_once(settings)
    told = stories(topics.read(settings.wait.topic))
    assert len(told) == 21
    assert all(story.resolved for story in told.values())


def test_a_sweeper_without_transactions_exports_nothing(secured_settings: SecuredSettings, database: Database) -> None:
    settings = secured_settings.of("sweeper", "SASL_PLAINTEXT", ONE_PARTITION, granted=False)
    at = scenario(secured_settings, settings, database)
    [registered] = at.due()
    grant_without(secured_settings, "sweeper", settings, "WRITE", on="transactional_id")
    sweeper = sweeper_of(settings)
    with pytest.raises(ConfigurationError, match=r"fencing .* failed.*WRITE on transactional IDs that begin with"):
        sweeper.run_once()
    assert at.dead_lettered_ids() == []
    secured_settings.secured.grant(
        secured_settings.user("sweeper"), "transactional_id", f"waitreg.sweep.{settings.wait.topic}.", ["WRITE"],
        prefixed=True,
    )  # fmt: skip
    assert sweeper.run_once().counts[RowOutcome.EXPORTED] == 1
    assert at.dead_lettered_ids() == [registered.wait_id]
    sweeper.close()


def test_a_sweeper_needs_each_right_on_the_wait_topic(secured_settings: SecuredSettings, database: Database) -> None:
    settings = secured_settings.of("sweeper", "SASL_PLAINTEXT", ONE_PARTITION)
    user, secured, wait = secured_settings.user("sweeper"), secured_settings.secured, settings.wait.topic
    at = scenario(secured_settings, settings, database)
    [registered] = at.due()
    at.register([at.wait_record(2, expires_in_ms=60_000)])
    sweeper = sweeper_of(settings)
    for operation, said in (
        ("READ", r"reading \S+ from .* READ on it"),
        ("WRITE", r"exporting 1 rows of \S+\.wait-0 .* WRITE on it"),
    ):
        secured.revoke(user, "topic", wait, [operation])
        with pytest.raises(ConfigurationError, match=said):
            sweeper.run_once()
        secured.grant(user, "topic", wait, [operation])
        assert at.dead_lettered_ids() == []
    assert sweeper.run_once().counts[RowOutcome.EXPORTED] == 1
    assert at.dead_lettered_ids() == [registered.wait_id]
    sweeper.close()


def test_reading_a_long_tail_needs_permission_on_the_group(secured_settings: SecuredSettings) -> None:
    settings = secured_settings.of("sweeper", "SASL_PLAINTEXT", ONE_PARTITION, granted=False)
    grant_without(secured_settings, "sweeper", settings, "DESCRIBE", on="group")
    # More than there is: it reads until it is refused.
    reader = TailReader(wait_log(settings, 0), admin(settings.kafka), SystemClock(), Tail(0, 1))
    with (
        closing(reader),
        pytest.raises(ConfigurationError, match=r"reading \S+ from 0 .*DESCRIBE on the consumer group"),
    ):
        reader.read_to(1)


def test_rows_of_a_forbidden_topic_are_unsendable(secured_settings: SecuredSettings, database: Database) -> None:
    settings = secured_settings.of("sweeper", "SASL_PLAINTEXT", ONE_PARTITION)
    barred = secured_settings.topics.create(f"{settings.dead_letter.topic}.barred", 1)
    at = scenario(secured_settings, settings, database)
    good, _ = at.due([at.wait_record(1), at.wait_record(2, dead_letter_topic=barred)])
    sweeper = sweeper_of(settings)
    sweep = sweeper.run_once()
    sweeper.close()
    assert (sweep.counts[RowOutcome.EXPORTED], sweep.counts[RowOutcome.UNSENDABLE]) == (1, 1)
    assert at.dead_lettered_ids() == [good.wait_id]
