"""The rules for topics, and the fix for each broken rule."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import pytest

from wait_registry.diagnosis import Diagnosis, Severity
from wait_registry.kafka.topic_rules import TopicState, check_mark_retention, check_topic, missing
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
from wait_registry.settings.tree import Settings

BROKER = "kafka:9092"
WAIT, DEAD_LETTER, REDELIVERY, INPUT, RETRY = map(TopicRole, ("wait", "dead letter", "redelivery", "input", "retry"))
LOSES_RETRIES = {"message.timestamp.type": "CreateTime", "retention.ms": "604800000", "retention.bytes": "1073741824"}
OK, WARNING, ERROR = Severity.OK, Severity.WARNING, Severity.ERROR


def settings(**overrides: str) -> Settings:
    named = {"processor.group": "shop", "processor.topics": "orders,refunds"}
    return load_settings(named | {name.replace("__", "."): value for name, value in overrides.items()}, env={})


def spec(role: TopicRole, **overrides: str) -> TopicSpec:
    own = {"processor__expiry_policy": "redeliver", "processor__retry__delays": "10s,1m", **overrides}
    specs = topic_specs(settings(**own))
    return next(one for one in specs if one.role is role)


def found(of: TopicSpec, changes: Mapping[str, str] = {}, replicas: int = 3) -> dict[str, Diagnosis]:
    config = {"max.message.bytes": "1048588", **of.creation_config, **changes}
    return by_rule(check_topic(of, TopicState(of.partitions, replicas, config), BROKER))


def by_rule(diagnoses: list[Diagnosis]) -> dict[str, Diagnosis]:
    return {one.id.split(".", 2)[2]: one for one in diagnoses}


@pytest.mark.parametrize("role", list(TopicRole))
def test_a_topic_created_as_specified_satisfies_every_rule(role: TopicRole) -> None:
    diagnoses = found(spec(role))
    assert diagnoses
    assert {one.severity for one in diagnoses.values()} == {OK}


@pytest.mark.guarantee("P4.8")
@pytest.mark.parametrize(
    ("role", "name", "value", "severity"),
    [
        (WAIT, "cleanup.policy", "delete", ERROR),
        (WAIT, "cleanup.policy", "compact,delete", ERROR),
        (WAIT, "message.timestamp.type", "CreateTime", ERROR),
        (WAIT, "delete.retention.ms", "86399999", ERROR),
        (WAIT, "delete.retention.ms", "86400000", WARNING),
        (WAIT, "unclean.leader.election.enable", "true", ERROR),
        (WAIT, "max.message.bytes", "1048588", ERROR),
        (WAIT, "segment.ms", "604800000", WARNING),
        (WAIT, "max.compaction.lag.ms", "9223372036854775807", WARNING),
        (WAIT, "min.insync.replicas", "1", WARNING),
        (WAIT, "min.insync.replicas", "4", WARNING),
        *(
            (role, name, value, ERROR)
            for role in (DEAD_LETTER, REDELIVERY, RETRY)
            for name, value in (
                ("cleanup.policy", "compact"),
                ("max.message.bytes", "2097152"),
                ("unclean.leader.election.enable", "true"),
            )
        ),
        *((role, "message.timestamp.type", "CreateTime", WARNING) for role in (DEAD_LETTER, REDELIVERY)),
        *((RETRY, name, value, ERROR) for name, value in LOSES_RETRIES.items()),
        (DEAD_LETTER, "retention.ms", "0", WARNING),
        (DEAD_LETTER, "retention.ms", "3599999", WARNING),
        (DEAD_LETTER, "retention.ms", "3600000", OK),
        (DEAD_LETTER, "retention.ms", "-1", OK),
    ],
)
def test_a_topic_that_differs_is_found_with_its_fix(role: TopicRole, name: str, value: str, severity: Severity) -> None:
    topic = spec(role)
    diagnoses = found(topic, {name: value})
    diagnosis = diagnoses.pop(name)
    assert diagnosis.severity is severity
    assert diagnosis.message.startswith(f"{name} is {value}, expected ")
    assert {one.severity for one in diagnoses.values()} == {OK}
    if severity is not OK:
        command = f"kafka-configs --bootstrap-server {BROKER} --alter --entity-type topics --entity-name {topic.topic}"
        assert diagnosis.fix.startswith(f"{command} --add-config {name}=")
        assert diagnosis.fix in str(diagnosis)


@pytest.mark.parametrize(("partitions", "severity"), [(4, ERROR), (8, OK), (12, WARNING)])
def test_added_partitions_are_a_warning_and_fewer_are_an_error(partitions: int, severity: Severity) -> None:
    wait = wait_spec(settings())
    state = TopicState(partitions, 3, {"max.message.bytes": "1048588", **wait.creation_config})
    diagnosis = by_rule(check_topic(wait, state, BROKER))["number.of.partitions"]
    assert diagnosis.severity is severity
    assert diagnosis.message.startswith(f"number of partitions is {partitions}, expected wait.partitions = 8")
    assert bool(diagnosis.fix) == (severity is not OK)


@pytest.mark.guarantee("P4.8")
@pytest.mark.parametrize("role", [WAIT, DEAD_LETTER, REDELIVERY, RETRY])
def test_the_fix_sets_a_value_that_satisfies_the_rule(role: TopicRole) -> None:
    topic = spec(role)
    broken = {name: "1" for name in topic.creation_config if name != "min.insync.replicas"}
    fixes = [one.fix for one in found(topic, broken).values() if one.severity is not OK]
    fixed = dict(fix.rpartition(" ")[2].split("=", 1) for fix in fixes)
    assert {one.severity for one in found(topic, {**broken, **fixed}).values()} == {OK}


@pytest.mark.parametrize("replicas", [1, 2])
def test_fewer_than_three_replicas_are_warned_about(replicas: int) -> None:
    diagnosis = found(wait_spec(settings()), {"min.insync.replicas": "1"}, replicas)["replication.factor"]
    assert diagnosis.severity is WARNING
    assert diagnosis.message.startswith(f"replication factor is {replicas}, ")
    assert "kafka-reassign-partitions" in diagnosis.fix
    assert "nothing on a single broker" in diagnosis.fix
    assert "Never delete a topic" in diagnosis.fix
    assert "recreate" not in diagnosis.fix, "a recreated wait topic has lost its records"


@pytest.mark.guarantee("P1.11")
@pytest.mark.parametrize("name", ["retention.ms", "retention.bytes"])
def test_a_redelivery_topic_deletes_nothing_by_age_or_size(name: str) -> None:
    redelivery = spec(REDELIVERY, dead_letter__retention_ms="3600000")
    assert redelivery.creation_config[name] == "-1"
    assert found(redelivery)[name].severity is OK
    diagnosis = found(redelivery, {name: "2592000000"})[name]
    assert diagnosis.severity is WARNING
    assert diagnosis.fix.endswith(f"--entity-name orders.shop.redeliver --add-config {name}=-1")
    assert "expected -1" in str(diagnosis)


def test_a_dead_letter_topic_is_created_with_the_set_retention() -> None:
    for retention_ms in ("-1", "86400000"):
        made = spec(DEAD_LETTER, dead_letter__retention_ms=retention_ms).creation_config
        assert made["retention.ms"] == retention_ms
        assert "retention.bytes" not in made


def test_a_dead_letter_topic_holds_the_largest_wait_record() -> None:
    config = spec(DEAD_LETTER).creation_config
    assert int(config["max.message.bytes"]) == settings().wait.max_message_bytes + DEAD_LETTER_EXTRA_BYTES
    text = 4 * (MAX_CLASS_CHARACTERS + MAX_MESSAGE_CHARACTERS + MAX_STACKTRACE_CHARACTERS)
    names_and_numbers = 4_096
    assert text + names_and_numbers <= DEAD_LETTER_EXTRA_BYTES


def test_an_input_topic_with_unregistrable_sizes_is_warned_about() -> None:
    diagnosis = found(spec(INPUT), {"max.message.bytes": "10485760"})["max.message.bytes"]
    assert diagnosis.severity is WARNING
    assert "can't be registered" in str(diagnosis)
    assert diagnosis.fix.startswith("set wait.max_message_bytes to 10485760, ")


def test_a_missing_topic_names_the_command_that_creates_it() -> None:
    assert str(missing(spec(WAIT), BROKER)).endswith("Fix: `waitreg topics create`")
    assert f"kafka-topics --bootstrap-server {BROKER}" in str(missing(spec(INPUT), BROKER))


@pytest.mark.parametrize(
    ("topic", "existing", "seen"),
    [
        ("ordres", ["__consumer_offsets", "orders", "parcels"], "missing, did you mean orders?, expected"),
        ("ordres", ["parcels"], "missing, expected"),
        ("orders", ["orders"], "missing, expected"),  # never its own name
        ("orders", ["orders", "orders2"], "missing, did you mean orders2?, expected"),
    ],
)
def test_a_missing_topic_is_answered_with_the_nearest_existing_one(topic: str, existing: list[str], seen: str) -> None:
    named = replace(spec(INPUT), topic=topic)
    assert missing(named, BROKER, existing).message.startswith(f"the input topic is {seen}")


@pytest.mark.parametrize(
    ("template", "topics", "group", "resolved"),
    [
        ("{topic}.{group}.dlq", "orders,refunds", "shop", ["orders.shop.dlq", "refunds.shop.dlq"]),
        ("{topic}.dlq", "orders,refunds", "", ["orders.dlq", "refunds.dlq"]),
        ("{group}.dlq", "orders,refunds", "shop", ["shop.dlq"]),
        ("{group}.dlq", "", "shop", ["shop.dlq"]),
        ("{topic}.dlq", "", "", []),
        ("{topic}.{group}.dlq", "orders", "", []),
    ],
)
def test_a_template_needs_its_own_placeholders_set(template: str, topics: str, group: str, resolved: list[str]) -> None:
    given = {"dead_letter.topic": template, "processor.topics": topics, "processor.group": group}
    made = load_settings(given, env={})
    assert dead_letter_topics(made) == resolved
    assert {one.topic for one in topic_specs(made) if one.role is DEAD_LETTER} == set(resolved)


@pytest.mark.parametrize(
    ("kept_ms", "letters_ms", "severity", "says"),
    [
        ("34560000000", ["604800000"], OK, "more than that of sweeper.retention_days, 2592000000 ms"),
        ("2592000000", ["604800000"], WARNING, "more than that of sweeper.retention_days, 2592000000 ms"),
        ("5184000000", ["604800000", "5184000000"], WARNING, "more than that of dlq-1, 5184000000 ms"),
        ("5184000000", ["-1"], WARNING, "more than that of dlq-0, unlimited"),
        ("-1", ["-1", "604800000"], OK, "more than that of dlq-0, unlimited"),
        ("-1", [], OK, "more than that of sweeper.retention_days"),
    ],
)
def test_marks_outlast_their_dead_letters(kept_ms: str, letters_ms: list[str], severity: Severity, says: str) -> None:
    letters = {f"dlq-{number}": TopicState(1, 3, {"retention.ms": ms}) for number, ms in enumerate(letters_ms)}
    state = TopicState(1, 3, {"retention.ms": kept_ms})
    line = check_mark_retention(spec(TopicRole.OPERATIONS), state, letters, 30, BROKER)
    assert (line.severity, says in line.message) == (severity, True), line
    assert ("--entity-name waitreg.operations --add-config retention.ms=" in line.fix) is (severity is WARNING)


def test_each_service_needs_its_own_topics() -> None:
    both = settings(
        processor__expiry_policy="redeliver", sink__dead_letter_topics="a,b", sweeper__default_dead_letter_topic="c"
    )
    topics = {name: {one.topic for one in topic_specs(both, name)} for name in ("processor", "sink", "sweeper")}
    assert topics["sink"] == {"waitreg.wait", "a", "b", "waitreg.operations"}
    assert topics["sweeper"] == {"waitreg.wait", "waitreg.dlq", "c"}
    again = {"orders.shop.redeliver", "refunds.shop.redeliver"}
    assert {one.topic for one in topic_specs(both, "redrive")} == {"waitreg.operations", *again}
    assert topics["processor"] == {"waitreg.wait", "waitreg.dlq", "orders", "refunds", *again}
    assert {one.topic for one in topic_specs(both)} == set().union(*topics.values())


def test_a_retry_topic_that_no_setting_names_any_more_is_used_as_long_as_it_exists() -> None:
    existing = [f"orders.{name}" for name in ("shop.retry.1h", "shop.retry.60m", "other.retry.1h", "shop.retry.")]
    existing.append("refunds")
    specs = topic_specs(settings(processor__retry__delays="10s"), existing=existing)
    retries = [one.topic for one in specs if one.role is RETRY]
    assert retries == ["orders.shop.retry.10s", "refunds.shop.retry.10s", "orders.shop.retry.1h"]


@pytest.mark.parametrize(("keeps_ms", "severity"), [("60000", ERROR), ("60001", OK), ("-1", OK)])
def test_a_delayed_input_keeps_its_records_until_they_are_due(keeps_ms: str, severity: Severity) -> None:
    delayed = spec(INPUT, processor__delay_s="60")
    assert found(delayed, {"retention.ms": keeps_ms})["retention.ms"].severity is severity


@pytest.mark.parametrize("policy", ["compact", "compact,delete"])
def test_a_compacted_input_is_warned_about_if_redeliveries_go_there(policy: str) -> None:
    compacted = {"cleanup.policy": policy}
    assert "cleanup.policy" not in found(spec(INPUT), compacted)
    diagnosis = found(spec(INPUT, processor__redeliver_to="origin"), compacted)["cleanup.policy"]
    assert (diagnosis.severity, "would replace newer records" in diagnosis.message) == (WARNING, True)


@pytest.mark.parametrize(("policy", "partitions", "severity"), [("dlq", 1, WARNING), ("redeliver", 6, ERROR)])
def test_the_policy_decides_if_redelivery_topics_are_needed(policy: str, partitions: int, severity: Severity) -> None:
    redelivery = spec(REDELIVERY, processor__expiry_policy=policy, dead_letter__partitions="6")
    assert (redelivery.topic, redelivery.partitions) == ("orders.shop.redeliver", partitions)
    assert missing(redelivery, BROKER).severity is severity


@pytest.mark.parametrize(
    "changes", [{"processor__group": ""}, {"processor__group": "my group"}, {"processor__source": "share"}]
)
def test_a_group_that_can_consume_no_redelivery_topic_has_none(changes: dict[str, str]) -> None:
    assert redelivery_topics(settings(**changes)) == []
