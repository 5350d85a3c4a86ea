"""What a topic must be like, and what is said when it isn't."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from wait_registry.diagnosis import Diagnosis, Severity
from wait_registry.kafka.topic_rules import TopicState, check_topic, missing
from wait_registry.kafka.topic_specs import (
    TopicRole,
    TopicSpec,
    dead_letter_topics,
    redelivery_topics,
    topic_specs,
    wait_spec,
)
from wait_registry.records.dead_letter import (
    DEAD_LETTER_EXTRA_BYTES,
    MAX_CLASS_CHARACTERS,
    MAX_MESSAGE_CHARACTERS,
    MAX_STACKTRACE_CHARACTERS,
)
from wait_registry.settings.loading import load_settings
from wait_registry.settings.root import Settings

BROKER = "kafka:9092"


def settings(**overrides: str) -> Settings:
    named = {"processor.group": "shop", "processor.topics": "orders,refunds"}
    return load_settings(named | {name.replace("__", "."): value for name, value in overrides.items()}, env={})


def spec(role: TopicRole, **overrides: str) -> TopicSpec:
    specs = topic_specs(settings(processor__expiry_policy="redeliver", **overrides))
    return next(one for one in specs if one.role is role)


def found(of: TopicSpec, changes: Mapping[str, str] = {}, replicas: int = 3) -> dict[str, Diagnosis]:
    config = {"max.message.bytes": "1048588", **of.creation_config, **changes}
    return by_rule(check_topic(of, TopicState(of.partitions, replicas, config), BROKER))


def by_rule(diagnoses: list[Diagnosis]) -> dict[str, Diagnosis]:
    return {one.id.split(".", 2)[2]: one for one in diagnoses}


@pytest.mark.parametrize("role", list(TopicRole))
def test_a_topic_made_as_specified_satisfies_every_rule(role: TopicRole) -> None:
    diagnoses = found(spec(role))
    assert diagnoses
    assert {one.severity for one in diagnoses.values()} == {Severity.OK}


@pytest.mark.parametrize(
    ("name", "value", "severity"),
    [
        ("cleanup.policy", "delete", Severity.ERROR),
        ("cleanup.policy", "compact,delete", Severity.ERROR),
        ("message.timestamp.type", "CreateTime", Severity.ERROR),
        ("delete.retention.ms", "86399999", Severity.ERROR),
        ("delete.retention.ms", "86400000", Severity.WARNING),
        ("unclean.leader.election.enable", "true", Severity.ERROR),
        ("max.message.bytes", "1048588", Severity.ERROR),
        ("segment.ms", "604800000", Severity.WARNING),
        ("max.compaction.lag.ms", "9223372036854775807", Severity.WARNING),
        ("min.insync.replicas", "1", Severity.WARNING),
        ("min.insync.replicas", "4", Severity.ERROR),
    ],
)
def test_a_wait_topic_that_differs_is_found_with_the_command_that_fixes_it(
    name: str, value: str, severity: Severity
) -> None:
    wait = wait_spec(settings())
    diagnoses = found(wait, {name: value})
    diagnosis = diagnoses.pop(name)
    assert diagnosis.severity is severity
    assert diagnosis.message.startswith(f"{name} is {value}, expected ")
    assert diagnosis.fix.startswith(
        f"kafka-configs --bootstrap-server {BROKER} --alter --entity-type topics --entity-name {wait.topic} "
        f"--add-config {name}="
    )
    assert diagnosis.fix in str(diagnosis)
    assert {one.severity for one in diagnoses.values()} == {Severity.OK}


@pytest.mark.parametrize(("partitions", "severity"), [(4, Severity.ERROR), (8, Severity.OK), (12, Severity.WARNING)])
def test_added_partitions_are_a_warning_and_fewer_are_an_error(partitions: int, severity: Severity) -> None:
    wait = wait_spec(settings())
    state = TopicState(partitions, 3, {"max.message.bytes": "1048588", **wait.creation_config})
    diagnosis = by_rule(check_topic(wait, state, BROKER))["number.of.partitions"]
    assert diagnosis.severity is severity
    assert diagnosis.message.startswith(f"number of partitions is {partitions}, expected wait.partitions = 8")
    assert bool(diagnosis.fix) == (severity is not Severity.OK)


def test_the_fix_sets_a_value_that_satisfies_the_rule() -> None:
    wait = wait_spec(settings())
    broken = {name: "1" for name in wait.creation_config if name != "min.insync.replicas"}
    fixed = {}
    for diagnosis in found(wait, broken).values():
        if diagnosis.severity is not Severity.OK:
            name, _, value = diagnosis.fix.rpartition(" ")[2].partition("=")
            fixed[name] = value
    assert {one.severity for one in found(wait, {**broken, **fixed}).values()} == {Severity.OK}


def test_settings_below_a_day_let_a_test_s_topic_pass() -> None:
    short = wait_spec(settings(wait__delete_retention_ms="60000"))
    assert found(short)["delete.retention.ms"].severity is Severity.OK
    assert found(short, {"delete.retention.ms": "59999"})["delete.retention.ms"].severity is Severity.ERROR


@pytest.mark.parametrize("replicas", [1, 2])
def test_fewer_than_three_replicas_are_warned_about(replicas: int) -> None:
    diagnosis = found(wait_spec(settings()), {"min.insync.replicas": "1"}, replicas)["replication.factor"]
    assert diagnosis.severity is Severity.WARNING
    assert diagnosis.message.startswith(f"replication factor is {replicas}, ")
    assert "kafka-reassign-partitions" in diagnosis.fix
    assert "nothing on a single broker" in diagnosis.fix
    assert "Never delete the wait topic" in diagnosis.fix
    assert "recreate" not in diagnosis.fix, "a recreated wait topic has lost its records"


@pytest.mark.parametrize("role", [TopicRole.DEAD_LETTER, TopicRole.REDELIVERY])
@pytest.mark.parametrize(
    ("name", "value"),
    [("cleanup.policy", "compact"), ("max.message.bytes", "2097152"), ("unclean.leader.election.enable", "true")],
)
def test_a_dead_letter_topic_that_would_lose_or_refuse_records_is_an_error(
    role: TopicRole, name: str, value: str
) -> None:
    assert found(spec(role), {name: value})[name].severity is Severity.ERROR


@pytest.mark.guarantee("P4.8")
@pytest.mark.parametrize("role", [TopicRole.DEAD_LETTER, TopicRole.REDELIVERY])
def test_a_dead_letter_topic_that_takes_its_writers_time_is_warned_about(role: TopicRole) -> None:
    diagnosis = found(spec(role), {"message.timestamp.type": "CreateTime"})["message.timestamp.type"]
    assert diagnosis.severity is Severity.WARNING
    assert diagnosis.fix.endswith("--add-config message.timestamp.type=LogAppendTime")


@pytest.mark.guarantee("P1.11")
@pytest.mark.parametrize("name", ["retention.ms", "retention.bytes"])
def test_a_redelivery_topic_deletes_nothing_by_age_or_size(name: str) -> None:
    redelivery = spec(TopicRole.REDELIVERY, dead_letter__retention_ms="3600000")
    assert redelivery.creation_config[name] == "-1"
    assert found(redelivery)[name].severity is Severity.OK
    diagnosis = found(redelivery, {name: "2592000000"})[name]
    assert diagnosis.severity is Severity.WARNING
    assert diagnosis.fix.endswith(f"--entity-name orders.shop.redeliver --add-config {name}=-1")
    assert "expected -1" in str(diagnosis)


@pytest.mark.parametrize(
    ("retention_ms", "severity"),
    [("0", Severity.WARNING), ("3599999", Severity.WARNING), ("3600000", Severity.OK), ("-1", Severity.OK)],
)
def test_a_dead_letter_topic_that_deletes_within_the_hour_is_warned_about(
    retention_ms: str, severity: Severity
) -> None:
    diagnosis = found(spec(TopicRole.DEAD_LETTER), {"retention.ms": retention_ms})["retention.ms"]
    assert diagnosis.severity is severity
    if severity is Severity.WARNING:
        assert diagnosis.fix.endswith("--add-config retention.ms=2592000000")


def test_a_dead_letter_topic_is_made_with_the_retention_that_was_set() -> None:
    for retention_ms in ("-1", "86400000"):
        made = spec(TopicRole.DEAD_LETTER, dead_letter__retention_ms=retention_ms).creation_config
        assert made["retention.ms"] == retention_ms
        assert "retention.bytes" not in made


def test_a_dead_letter_topic_holds_the_largest_wait_record() -> None:
    config = spec(TopicRole.DEAD_LETTER).creation_config
    assert int(config["max.message.bytes"]) == settings().wait.max_message_bytes + DEAD_LETTER_EXTRA_BYTES
    text = 4 * (MAX_CLASS_CHARACTERS + MAX_MESSAGE_CHARACTERS + MAX_STACKTRACE_CHARACTERS)
    names_and_numbers = 4_096
    assert text + names_and_numbers <= DEAD_LETTER_EXTRA_BYTES


def test_an_input_topic_with_unregistrable_sizes_is_warned_about() -> None:
    diagnosis = found(spec(TopicRole.INPUT), {"max.message.bytes": "10485760"})["max.message.bytes"]
    assert diagnosis.severity is Severity.WARNING
    assert "can't be registered" in str(diagnosis)
    assert diagnosis.fix.startswith("set wait.max_message_bytes to 10485760, ")


def test_an_owned_topic_that_is_missing_is_made_by_the_command() -> None:
    assert str(missing(spec(TopicRole.WAIT), BROKER)).endswith("Fix: `waitreg topics create`")
    assert f"kafka-topics --bootstrap-server {BROKER}" in str(missing(spec(TopicRole.INPUT), BROKER))


def test_a_mistyped_topic_is_answered_with_the_nearest_existing_one() -> None:
    mistyped = replace(spec(TopicRole.INPUT), topic="ordres")
    there = ["__consumer_offsets", "orders", "parcels"]
    assert missing(mistyped, BROKER, there).message.startswith("the input topic is missing, did you mean orders?")
    assert missing(mistyped, BROKER, ["parcels"]).message.startswith("the input topic is missing, expected")


def test_a_missing_topic_is_never_told_its_own_name() -> None:
    assert missing(wait_spec(settings()), BROKER, ["waitreg.wait"]).message.startswith(
        "the wait topic is missing, expected"
    )
    assert "waitreg.waits?" in missing(wait_spec(settings()), BROKER, ["waitreg.wait", "waitreg.waits"]).message


def test_a_template_gives_one_dead_letter_topic_per_input_topic() -> None:
    templated = settings(dead_letter__topic="{topic}.{group}.dlq")
    assert dead_letter_topics(templated) == ["orders.shop.dlq", "refunds.shop.dlq"]
    assert dead_letter_topics(settings(dead_letter__topic="{group}.dlq")) == ["shop.dlq"]


def test_a_template_needs_only_its_own_placeholders() -> None:
    by_topic = load_settings({"dead_letter.topic": "{topic}.dlq", "processor.topics": "orders,refunds"}, env={})
    assert dead_letter_topics(by_topic) == ["orders.dlq", "refunds.dlq"]
    by_group = load_settings({"dead_letter.topic": "{group}.dlq", "processor.group": "shop"}, env={})
    assert dead_letter_topics(by_group) == ["shop.dlq"]


def test_an_unresolvable_template_names_no_topic() -> None:
    alone = load_settings({"dead_letter.topic": "{topic}.dlq"}, env={})
    assert dead_letter_topics(alone) == []
    no_group = load_settings({"dead_letter.topic": "{topic}.{group}.dlq", "processor.topics": "orders"}, env={})
    assert dead_letter_topics(no_group) == []
    assert [one.topic for one in topic_specs(alone)] == ["waitreg.wait"]


def test_each_service_needs_its_own_topics() -> None:
    both = settings(
        processor__expiry_policy="redeliver", sink__dead_letter_topics="a,b", sweeper__default_dead_letter_topic="c"
    )
    topics = {
        service: {one.topic for one in topic_specs(both, service)} for service in ("processor", "sink", "sweeper")
    }
    assert topics["sink"] == {"waitreg.wait", "a", "b"}
    assert topics["sweeper"] == {"waitreg.wait", "waitreg.dlq", "c"}
    assert topics["processor"] == {
        "waitreg.wait",
        "waitreg.dlq",
        "orders",
        "refunds",
        "orders.shop.redeliver",
        "refunds.shop.redeliver",
    }
    assert {one.topic for one in topic_specs(both)} == set().union(*topics.values())


def test_redelivery_topics_exist_under_that_policy_only() -> None:
    assert redelivery_topics(settings()) == []
    assert redelivery_topics(settings(processor__expiry_policy="redeliver")) == [
        "orders.shop.redeliver",
        "refunds.shop.redeliver",
    ]


def test_input_topics_are_not_ours_to_make() -> None:
    assert {one.topic for one in topic_specs(settings()) if not one.owned} == {"orders", "refunds"}
