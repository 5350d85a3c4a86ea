"""Relations between settings: every contradiction is named with its numbers and with what to change."""

from __future__ import annotations

import logging
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from wait_registry.diagnosis import Severity
from wait_registry.errors import ConfigurationError
from wait_registry.settings.loading import load_settings
from wait_registry.settings.relations import Service, least_ttl_s, relation_problems, require_relations, steady_prefetch
from wait_registry.settings.tree import Settings

COMPLETE = {"processor.group": "shop", "processor.topics": "orders", "processor.handler": "shop:handle"}
REDELIVER = "orders.shop.redeliver"
NAMED = ("wait__topic", "operations__topic", "dead_letter__topic", "sink__dead_letter_topics",
         "sweeper__default_dead_letter_topic")  # fmt: skip
DEFERRED: dict[str, Any] = {"processor__registration": "deferred"}
SHORT_SESSION: dict[str, Any] = {"kafka__librdkafka.session.timeout.ms": 6000}
PEM = "-----BEGIN CERTIFICATE-----\nx\n-----END CERTIFICATE-----"


def settings(**changes: Any) -> Settings:
    dotted = {name.replace("__", "."): str(value) for name, value in changes.items()}
    return load_settings({**COMPLETE, **dotted}, env={})


def fatal(service: Service = "processor", **changes: Any) -> list[str]:
    found = relation_problems(settings(**changes), service)
    return [problem.message for problem in found if problem.severity is Severity.ERROR]


@pytest.mark.parametrize("service", ["processor", "sink", "sweeper"])
def test_the_defaults_contradict_nothing(service: Service) -> None:
    assert relation_problems(settings(), service) == []


@pytest.mark.parametrize("name", ["group", "topics", "handler"])
def test_the_processor_needs_group_topics_and_handler(name: str) -> None:
    changes: dict[str, Any] = {f"processor__{name}": ""}
    (message,) = fatal(**changes)
    assert message == f"processor.{name} isn't set; the processor needs it"


def test_sink_and_sweeper_need_neither_group_nor_handler() -> None:
    bare = load_settings(env={})
    assert relation_problems(bare, "sink") == []
    assert relation_problems(bare, "sweeper") == []


def test_the_least_ttl_is_what_the_design_says() -> None:
    # N = 50: prefetch 50 + 66 = 116; (1 + 116/50) x (30 x 3 + 0.2 + 0.4) + 5 + 10
    assert steady_prefetch(settings().processor) == 116
    assert least_ttl_s(settings()) == pytest.approx(3.32 * 90.6 + 15)


def test_a_ttl_shorter_than_the_work_it_covers_is_refused_with_the_numbers() -> None:
    (message,) = fatal(processor__ttl_s=300)
    verdict, fix, derivation = message.split("\n")
    assert verdict == "processor.ttl_s = 300 s is too short: a record may be in progress for 315.8 s"
    assert fix == "  Fix: set processor.ttl_s > 315.8, or lower handler_timeout_s, max_attempts or margin_s"
    assert derivation.startswith("  315.8 = (1 + prefetch 116 / max_in_flight 50) x (")


def test_a_ttl_that_equals_the_limit_is_refused_and_one_above_is_taken() -> None:
    limit = least_ttl_s(settings())
    assert fatal(processor__ttl_s=limit)
    assert not fatal(processor__ttl_s=limit + 0.001)


def test_without_registrations_the_ttl_may_have_any_value() -> None:
    assert fatal(processor__ttl_s=1, processor__registration="deferred")
    assert not fatal(processor__ttl_s=1, processor__registration="off")


@pytest.mark.parametrize("mode", ["eager", "off"])
def test_the_time_until_a_late_registration_counts_in_deferred_only(mode: str) -> None:
    assert not fatal(processor__registration=mode, processor__register_after_s=10, **SHORT_SESSION)


def test_a_late_registration_within_a_quarter_of_the_session_is_taken() -> None:
    assert not fatal(**DEFERRED, processor__register_after_s=10)
    assert not fatal(**DEFERRED, processor__register_after_s=1.5, **SHORT_SESSION)


@pytest.mark.parametrize("slots", [1, 50, 5_000])
def test_the_bound_of_uncommitted_records_grows_with_the_worker_slots(slots: int) -> None:
    least = 2 * slots + 20
    long: dict[str, Any] = {"processor__ttl_s": 10_000, "processor__max_in_flight": slots}
    assert not fatal(**long, processor__uncommitted_max=least)
    assert fatal(**long, processor__uncommitted_max=least - 1)


AUTO_LIMITS = {"processor__max_in_flight_min": 10, "processor__max_in_flight_max": 300}
AUTO: dict[str, Any] = {"processor__max_in_flight": "auto", **AUTO_LIMITS}


@given(
    st.integers(1, 5_000),
    st.floats(0.1, 600),
    st.integers(1, 20),
    st.floats(0, 5),
    st.floats(0, 60),
    st.floats(0.1, 60),
)
def test_the_least_ttl_covers_every_round_of_the_look_ahead(
    in_flight: int, timeout_s: float, tries: int, first_s: float, most_s: float, margin_s: float
) -> None:
    made = settings(
        processor__max_in_flight=in_flight,
        processor__handler_timeout_s=timeout_s,
        processor__max_attempts=tries,
        processor__backoff_initial_s=first_s,
        processor__backoff_max_s=most_s,
        processor__margin_s=margin_s,
    )
    record_s = timeout_s * tries + sum(min(first_s * 2**pause, most_s) for pause in range(tries - 1))
    rounds = -(-steady_prefetch(made.processor) // in_flight)
    assert least_ttl_s(made) >= rounds * record_s + margin_s + made.wait.skew_allowance_s - 1e-6


@pytest.mark.guarantee("P8.8")
@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"processor__backoff_initial_s": 20}, "more than processor.backoff_max_s = 10 s"),
        ({"processor__prefetch_max": 49}, "processor.max_in_flight is 50, more than processor.prefetch_max = 49"),
        ({**AUTO, "processor__prefetch_max": 299}, "max_in_flight_max is 300, more than processor.prefetch_max = 299"),
        ({**AUTO, "processor__max_in_flight_min": 301}, "max_in_flight_min is 301, more than"),
        ({**AUTO, "processor__uncommitted_max": 619}, "less than 2 x processor.max_in_flight_max + 20 = 620"),
        ({**AUTO, "processor__ttl_s": 430}, "(1 + prefetch 36 / max_in_flight_min 10) x (handler_timeout_s 30 x"),
        ({"processor__prefetch_max_bytes": 2_000_000}, "wait.max_message_bytes is 2097152 bytes, more than"),
        (
            {"processor__group_protocol": "consumer", "processor__assignment_strategy": "range"},
            "with processor.group_protocol=consumer the broker assigns",
        ),
        ({"processor__http__discard_statuses": "503"}, "HTTP statuses [503]"),
        *(
            ({"processor__http__content_type": text}, "isn't one line of plain")
            for text in ("a/b\n", "a\r\nX: y", " a", "")
        ),
        *(
            ({"processor__http__forward_headers": f"tenant,{name}"}, f"http.forward_headers has '{name}'")
            for name in ("Content-Type", "idempotency-key", "Host", "transfer-encoding", "X-Waitreg-Topic", "a b", "é")
        ),
        ({"processor__grpc__discard_statuses": "ABORTED,NOT_FOUND"}, "gRPC statuses ABORTED are in"),
        *(
            ({"processor__grpc__forward_headers": f"tenant,{name}"}, f"forward_headers has '{name}'")
            for name in ("a b", "Grpc-Timeout", "trace-bin", "é")
        ),
        ({"processor__grpc__ca": "ca.pem"}, "processor.grpc.ca isn't PEM text"),
        ({"processor__grpc__certificate": PEM}, "processor.grpc.certificate is set without processor.grpc.key"),
        ({"processor__grpc__ca": PEM, "processor__handler": "grpc://a:1"}, "processor.handler is grpc://, which"),
        (
            {**DEFERRED, "processor__register_after_s": 1.6, **SHORT_SESSION},
            "processor.register_after_s is 1.6 s, more than a quarter of the consumer's session timeout = 6 s. "
            "Set it to 1.5 or less, or raise kafka.librdkafka.session.timeout.ms",
        ),
        (
            {**DEFERRED, "processor__register_after_s": 2, "processor__ttl_s": 2},
            "processor.register_after_s is 2 s, not less than processor.ttl_s = 2 s, which counts from",
        ),
        ({"processor__uncommitted_max": 119}, "is 119, less than 2 x processor.max_in_flight + 20 = 120"),
        (
            {"processor__flush_timeout_s": 31, "kafka__librdkafka.max.poll.interval.ms": 60000},
            "processor.flush_timeout_s is 31 s, more than half of kafka.librdkafka.max.poll.interval.ms = 60 s",
        ),
        ({"wait__min_insync_replicas": 4}, "more than wait.replication_factor = 3"),
        ({"processor__topics": "orders,waitreg.wait"}, "wait.topic is waitreg.wait, which is also processor.topics"),
        ({"processor__topics": "waitreg.dlq"}, "which is also dead_letter.topic: give each a topic of its own"),
        ({"processor__topics": "orders,dlq.shop", "dead_letter__topic": "dlq.{group}"}, "is dlq.shop, which is"),
        ({"processor__topics": "a.shop,a", "dead_letter__topic": "{topic}.{group}"}, "is a.shop, which is also"),
        ({"dead_letter__topic": "{topic}"}, "processor.topics is orders, which is also dead_letter.topic"),
        ({"wait__topic": "shop.wait", "dead_letter__topic": "{group}.wait"}, "wait.topic is shop.wait, which is also"),
        *(
            ({f"{name}_topic": REDELIVER}, f"is {REDELIVER}, which is also the redelivery topic of orders and shop")
            for name in ("wait_", "operations_", "sweeper__default_dead_letter")
        ),
        ({"sink__dead_letter_topics": REDELIVER}, f"is {REDELIVER}, which is also the redelivery topic of orders"),
        ({"processor__topics": "orders,orders.shop.redeliver"}, "also the redelivery topic of orders and shop"),
        ({"processor__topics": "orders,orders.shop.retry.1h"}, "which is also a retry topic of orders and shop"),
        ({"dead_letter__topic": "{topic}.{group}.redeliver"}, "dead_letter.topic is orders.shop.redeliver, which is"),
        ({"dead_letter__topic": "{topic}.{group}.retry.10s"}, "dead_letter.topic is orders.shop.retry.10s, which is"),
        *(({name: "orders.pay..eu.redeliver"}, "also the redelivery topic of orders and pay.eu") for name in NAMED),
        ({"processor__topics": "orders,orders.payments.retry.1h"}, "also a retry topic of orders and payments: give"),
        ({"dead_letter__topic": "{topic}.dlq.redeliver"}, "is orders.dlq.redeliver, which is also the redelivery"),
        ({"operations__topic": "waitreg.wait"}, "wait.topic is waitreg.wait, which is also operations.topic"),
        ({"operations__topic": "waitreg.dlq"}, "operations.topic is waitreg.dlq, which is also dead_letter.topic"),
        ({"operations__topic": "orders"}, "operations.topic is orders, which is also processor.topics"),
        ({"processor__topics": "orders,orders"}, "processor.topics contains orders 2 times"),
        (
            {"kafka__librdkafka.queue.buffering.max.kbytes": 2175},
            "is 2175, less than one record of wait.max_message_bytes with its dead letter's headers = 2228224 bytes",
        ),
        ({"dead_letter__topic": "waitreg.wait"}, "wait.topic is waitreg.wait, which is also dead_letter.topic"),
        ({"wait__topic": "a b"}, "wait.topic is 'a b', not a topic name"),
        ({"processor__topics": "orders,.."}, "processor.topics is '..', not a topic name"),
        ({"operations__topic": "ops@x"}, "operations.topic is 'ops@x', not a topic name"),
        ({"sink__dead_letter_topics": "dlq,{topic}.dlq"}, "sink.dead_letter_topics is '{topic}.dlq', not a topic"),
        ({"sweeper__default_dead_letter_topic": "a b"}, "sweeper.default_dead_letter_topic is 'a b': expected"),
        *(
            ({name: "__kept"}, f"{name.replace('__', '.')} is '__kept': names that begin with __ are those of Kafka")
            for name in (*NAMED, "processor__topics")
        ),
        ({"processor__topics": "orders."}, "contains 'orders.', which ends with a dot"),
        ({"dead_letter__topic": "{topic}.{reason}"}, "dead_letter.topic is '{topic}.{reason}'"),
        ({"dead_letter__topic": "dlq {topic}"}, "dead_letter.topic is 'dlq {topic}'"),
        ({"processor__group": "my group", "dead_letter__topic": "{group}.dlq"}, "processor.group is 'my group'"),
        ({"processor__group": "my group", "processor__expiry_policy": "redeliver"}, "processor.group is 'my group'"),
        ({"processor__group": "my group", "processor__retry__delays": "1m"}, "processor.group is 'my group'"),
    ],
)
def test_a_contradiction_is_refused(changes: dict[str, Any], says: str) -> None:
    messages = fatal(**changes)
    assert [message for message in messages if says in message], messages


def test_a_group_that_no_topic_is_named_after_may_have_any_name() -> None:
    assert not fatal(processor__group="my group")


@pytest.mark.parametrize("service", ["processor", "sink", "sweeper"])
@pytest.mark.parametrize(
    ("name", "value", "warned"),
    [
        *((name, "refunds.pay..eu.retry.5m", True) for name in NAMED),
        ("processor__topics", "eu.shop.retry.5m", True),  # perhaps of a program that names its topics alike
        *(("processor__topics", name, False) for name in ("orders.retry.5m", "eu.orders.retry.300s", "a..redeliver")),
    ],
)
def test_a_name_that_may_be_another_groups_is_warned_of(service: Service, name: str, value: str, warned: bool) -> None:
    problems = relation_problems(settings(**{name: value}), service)
    assert [problem.severity for problem in problems] == [Severity.WARNING] * warned
    assert all(f"{value}, which would also be a retry topic of " in problem.message for problem in problems)


@pytest.mark.parametrize("group", ["my group", 240 * "g"])
def test_a_group_without_redelivery_topics_is_warned_about(group: str) -> None:
    (problem,) = relation_problems(settings(processor__group=group), "processor")
    assert problem.severity is Severity.WARNING
    assert "the group has none" in problem.message


def test_the_sink_refuses_unresolvable_placeholders() -> None:
    unresolvable = {"dead_letter.topic": "{topic}.dlq"}
    (problem,) = relation_problems(load_settings(unresolvable, env={}), "sink")
    assert "list the topics in sink.dead_letter_topics" in problem.message
    listed = {**unresolvable, "sink.dead_letter_topics": "orders.dlq"}
    assert relation_problems(load_settings(listed, env={}), "sink") == []
    known = {**unresolvable, "processor.topics": "orders"}
    assert relation_problems(load_settings(known, env={}), "sink") == []
    assert fatal("sink", dead_letter__topic="{topic}.dlq") == []


@pytest.mark.parametrize(
    ("changes", "says"),
    [
        ({"protocol": "SASL_SSL"}, "which needs kafka.security.mechanism"),
        ({"protocol": "SASL_SSL"}, "which needs kafka.security.username"),
        ({"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN"}, "which needs kafka.security.password"),
        ({"mechanism": "PLAIN"}, "kafka.security.mechanism is set, but kafka.security.protocol is PLAINTEXT"),
        ({"protocol": "SSL", "username": "u"}, "kafka.security.username is set, but kafka.security.protocol is SSL"),
        ({"ca": PEM}, "kafka.security.ca is set, but kafka.security.protocol is PLAINTEXT"),
        ({"protocol": "SSL", "ca": "/etc/ca.pem"}, "the path of its file as kafka.security.ca_file"),
        ({"protocol": "SSL", "certificate": PEM}, "certificate is set without kafka.security.key"),
        ({"protocol": "SSL", "key": PEM}, "key is set without kafka.security.certificate"),
    ],
)
def test_security_that_does_not_fit_together_is_refused(changes: dict[str, str], says: str) -> None:
    messages = fatal("sweeper", **{f"kafka__security__{name}": value for name, value in changes.items()})
    assert [message for message in messages if says in message], messages


@pytest.mark.parametrize(
    "changes",
    [
        {"protocol": "SSL"},
        {"protocol": "SSL", "ca": PEM, "certificate": PEM, "key": PEM},
        {"protocol": "SASL_SSL", "mechanism": "SCRAM-SHA-512", "username": "u", "password": "p", "ca": PEM},
        {"protocol": "SASL_PLAINTEXT", "mechanism": "PLAIN", "username": "u", "password": "p"},
    ],
)
def test_security_that_fits_together_is_taken(changes: dict[str, str]) -> None:
    assert fatal("sweeper", **{f"kafka__security__{name}": value for name, value in changes.items()}) == []


@pytest.mark.guarantee("P2.5")
@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("kafka.librdkafka.acks", "remove it: the services need their own value"),
        ("kafka.librdkafka.group.instance.id", "no process handles its partitions, for up to session.timeout.ms"),
        ("kafka.java.group.instance.id", 'keep processor.assignment_strategy = "cooperative-sticky"'),
        ("kafka.librdkafka.partitioner", "remove it"),
        ("kafka.librdkafka.isolation.level", "remove it"),
        ("kafka.librdkafka.compression.type", "remove it"),
        ("kafka.librdkafka.batch.size", "remove it"),
        ("kafka.librdkafka.error_cb", "remove it"),
        ("kafka.librdkafka.delivery.report.only.error", "remove it"),
        ("kafka.librdkafka.dr_msg_cb", "remove it"),
        ("kafka.librdkafka.retries", "remove it"),
        ("kafka.librdkafka.message.send.max.retries", "remove it"),
        ("kafka.librdkafka.statistics.interval.ms", "remove it"),
        ("kafka.librdkafka.message.max.bytes", "set wait.max_message_bytes instead"),
        ("kafka.librdkafka.linger.ms", "set processor.linger_ms instead"),
        ("kafka.java.fetch.max.wait.ms", "remove it"),
        ("kafka.java.interceptor.classes", "remove it"),
        ("kafka.librdkafka.sasl.password", "set kafka.security.password instead"),
        ("kafka.java.sasl.jaas.config", "set kafka.security.username and password instead"),
        ("kafka.java.bootstrap.servers", "set kafka.bootstrap_servers instead"),
    ],
)
def test_client_properties_that_guarantees_rest_on_are_refused(name: str, says: str) -> None:
    made = load_settings({name: "x"}, env={})
    (problem,) = relation_problems(made, "sweeper")
    assert says in problem.message


def test_a_store_type_is_free_until_pem_texts_are_given() -> None:
    jks = {"kafka__security__protocol": "SSL", "kafka__java.ssl.truststore.type": "JKS"}
    jks["kafka__java.ssl.truststore.location"] = "/etc/trust.jks"
    assert fatal("sink", **jks) == []
    (message,) = fatal("sink", **jks, kafka__security__ca=PEM)
    assert message == "kafka.java sets ssl.truststore.type, which isn't free: set kafka.security.ca instead"


def test_only_the_sweeper_refuses_a_queue_smaller_than_a_chunk() -> None:
    small = {"kafka__librdkafka.queue.buffering.max.messages": 9_999}
    (message,) = fatal("sweeper", **small)
    assert "is 9999, less than twice sweeper.chunk_rows = 5000" in message
    assert fatal("processor", **small) == []
    assert fatal("sweeper", **small, sweeper__chunk_rows=4_999) == []


def test_a_dead_letter_topic_of_another_group_or_topic_may_be_an_input() -> None:
    assert not fatal(processor__topics="dlq.shop", processor__group="repair", dead_letter__topic="dlq.{group}")
    assert not fatal(processor__topics="refunds.dlq", dead_letter__topic="{topic}.dlq")


@pytest.mark.guarantee("P8.8")
def test_a_producer_queue_smaller_than_its_records_is_refused() -> None:
    small = {"kafka__librdkafka.queue.buffering.max.kbytes": 2176}
    assert fatal("processor", **small) == fatal("sink", **small) == []
    (message,) = fatal("sweeper", **small)
    assert "is 2176, less than twice sweeper.chunk_bytes = 8388608" in message
    assert fatal("sweeper", **small, sweeper__chunk_bytes=1_048_576) == []
    (message,) = fatal("sweeper", **small, sweeper__chunk_bytes=1_048_576, wait__max_message_bytes=2_097_153)
    assert "less than one record of wait.max_message_bytes" in message


def test_all_contradictions_are_reported_at_once() -> None:
    with pytest.raises(ConfigurationError) as caught:
        require_relations(settings(processor__ttl_s=1, processor__group="", wait__min_insync_replicas=4), "processor")
    assert len([line for line in str(caught.value).splitlines() if not line.startswith("  ")]) == 3


def test_unwise_settings_are_logged_and_accepted(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.WARNING):
        require_relations(settings(wait__delete_retention_ms=60_000), "sink")
    assert "below 24 h" in caplog.text
    assert "more than a quarter of wait.delete_retention_ms = 15 s" in caplog.text


def test_alongside_a_connect_sink_ours_needs_no_dead_letter_topics() -> None:
    unresolvable = {"dead_letter.topic": "{topic}.dlq", "sink.kind": "connect"}
    assert relation_problems(load_settings(unresolvable, env={}), "sink") == []
    assert fatal("sweeper", sink__kind="connect") == []


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"url": "schemas:8081"}, "processor.schema_registry.url is 'schemas:8081': expected http(s)://host:port"),
        ({"url": "http://a:8081,https://"}, "expected http(s)://host:port, or several with commas"),
        ({"url": "http://shop:secret@a:8081"}, "processor.schema_registry.url names a user"),
        ({"url": "http://a", "username": "shop"}, "username is set without processor.schema_registry.password"),
        ({"url": "http://a", "password": "secret"}, "password is set without processor.schema_registry.username"),
    ],
)
def test_a_schema_registry_that_can_not_be_asked_is_refused(changes: dict[str, Any], said: str) -> None:
    (message,) = fatal(**{f"processor__schema_registry__{name}": value for name, value in changes.items()})
    assert said in message
    assert "secret" not in message


def test_a_schema_registry_may_have_several_addresses_and_a_user() -> None:
    access: dict[str, Any] = {"url": "http://a:8081, https://b", "username": "shop", "password": "secret"}
    assert not fatal(**{f"processor__schema_registry__{name}": value for name, value in access.items()})
