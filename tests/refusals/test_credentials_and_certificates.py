"""Who isn't let in ends with 2 and a sentence that says why, without its password; nothing is registered or committed.

The same broker lets the right user in: see tests/security.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest
from pydantic import SecretStr

from tests.integration.processor.running import Processors
from tests.integration.processor.scenario import accepts
from tests.integration.sweeper.scenario import sweeper_of
from tests.refusals.secured_settings import SecuredSettings
from tests.support.certificates import Certificate
from tests.support.committed_offsets import committed
from tests.support.database import Database
from tests.support.kafka_io import Outgoing
from tests.support.secured_broker import OUT_OF_DATE, PLAIN_USER
from tests.support.settings import changed, with_broker
from tests.support.waiting import wait_until
from wait_registry.errors import ConfigurationError
from wait_registry.settings.tree import Settings

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Wrong = Callable[[SecuredSettings, Settings], Settings]
QUICK = {"kafka.request_timeout_s": 1.5, "processor.handler": "shop:handle"}
SECRET = "hunter2-not-the-password"


def with_security(settings: Settings, **security: Any) -> Settings:
    return changed(settings, "kafka", security=settings.kafka.security.model_copy(update=security))


def reconnected(own: SecuredSettings, settings: Settings, protocol: str, **security: Any) -> Settings:
    """Return the same processor at another listener."""
    handler = {"processor.handler": settings.processor.handler}
    return own.of("processor", protocol, {**QUICK, **handler, **security}, granted=False)


def by_certificate(own: SecuredSettings, settings: Settings, certificate: Certificate) -> Settings:
    """Return the same processor at the SSL listener, with this certificate."""
    security = {"certificate": certificate.certificate, "key": SecretStr(certificate.key)}
    return with_security(reconnected(own, settings, "SSL"), **security)


def plain_password(own: SecuredSettings, settings: Settings) -> Settings:
    return reconnected(
        own, settings, "SASL_PLAINTEXT", **own.secured.security("SASL_PLAINTEXT", PLAIN_USER, SECRET, "PLAIN")
    )


def key_of_another_certificate(own: SecuredSettings, settings: Settings) -> Settings:
    other = SecretStr(own.secured.authority.issue("somebody-else").key)
    return with_security(reconnected(own, settings, "SSL"), key=other)


# What is wrong, how it is made wrong, and the sentence; the first four are asked of sink and sweeper too.
REFUSED: dict[str, tuple[Wrong, str]] = {
    "password": (
        lambda own, right: with_security(right, password=SecretStr(SECRET)),
        r"invalid credentials .*Check kafka\.security",
    ),
    "authority": (
        lambda own, right: with_security(right, ca=own.secured.other_authority.certificate),
        r"certificate verify failed.*signed by kafka\.security\.ca",
    ),
    "host of the certificate": (
        lambda own, right: with_broker(right, right.kafka.bootstrap_servers.replace("127.0.0.1", "localhost")),
        r"certificate verify failed.*issued for the host name in kafka\.bootstrap_servers",
    ),
    "certificate out of date": (
        lambda own, right: with_broker(right, own.secured.address(OUT_OF_DATE)),
        r"certificate verify failed.*must be valid now",
    ),
    "plain password": (plain_password, r"Invalid username or password.*Check kafka\.security"),
    "user": (
        lambda own, right: with_security(right, username="unknown"),
        r"invalid credentials .*Check kafka\.security",
    ),
    "no client certificate": (
        lambda own, right: with_security(reconnected(own, right, "SSL"), certificate=None, key=None),
        r"alert.*The broker refuses our certificate: kafka\.security\.certificate",
    ),
    "authority of the client certificate": (
        lambda own, right: by_certificate(own, right, own.secured.other_authority.issue("stranger")),
        r"alert.*The broker refuses our certificate",
    ),
    "client certificate out of date": (
        lambda own, right: by_certificate(own, right, own.secured.authority.issue("of-old", expired=True)),
        r"alert.*The broker refuses our certificate.*be valid now",
    ),
    "key": (key_of_another_certificate, r"key values mismatch.*a key must belong to its certificate"),
}


@pytest.mark.parametrize("wrong", REFUSED)
def test_a_processor_that_is_not_let_in_says_why_and_has_done_nothing(
    wrong: str, secured_settings: SecuredSettings, processors: Processors
) -> None:
    make, said = REFUSED[wrong]
    right = secured_settings.of("processor", "SASL_SSL", {**QUICK, "processor.handler": processors.handler(accepts)})
    topics, group, topic = secured_settings.topics, right.processor.group, right.processor.topics[0]
    topics.produce(topic, [b"value"])
    with pytest.raises(ConfigurationError, match=said) as caught:
        processors.start(make(secured_settings, right)).join()
    assert SECRET not in str(caught.value)
    assert topics.read(right.wait.topic) == []
    assert committed(topics.bootstrap, group, topic, 1) == [-1]


@pytest.mark.parametrize("wrong", list(REFUSED)[:4])
def test_sink_and_sweeper_that_are_not_let_in_say_why(
    wrong: str, secured_settings: SecuredSettings, spark: SparkSession, database: Database
) -> None:
    from sink.service import SinkService

    make, said = REFUSED[wrong]
    sink = secured_settings.of("sink", "SASL_SSL", QUICK, granted=False)
    database.install(sink)
    with pytest.raises(ConfigurationError, match=said):
        SinkService(make(secured_settings, sink), spark, once=True).run()
    sweeper = secured_settings.of("sweeper", "SASL_SSL", QUICK, granted=False)
    with pytest.raises(ConfigurationError, match=said):
        sweeper_of(make(secured_settings, sweeper)).run_once()


def test_a_refusal_of_spark_s_own_client_ends_the_sink(secured_settings: SecuredSettings, spark: SparkSession) -> None:
    from sink.position import TopicPartition
    from sink.read.kafka_reader import SparkReader
    from sink.read.range_plan import Range

    settings = secured_settings.of("sink", "SASL_SSL", QUICK)
    first = {TopicPartition(settings.wait.topic, 0): Range(0, 1)}
    for wrong in ("password", "authority"):
        make, _ = REFUSED[wrong]
        reader = SparkReader(spark, make(secured_settings, settings).kafka)
        with pytest.raises(ConfigurationError, match=r"AuthenticationException.*Check kafka\.security") as caught:
            reader.read(first)
        assert SECRET not in str(caught.value)
    secured_settings.topics.produce(settings.wait.topic, [Outgoing(b"value", b"key", (), 0)])
    for protocol in ("SASL_SSL", "SSL"):
        right = secured_settings.of("sink", protocol, QUICK)
        assert SparkReader(spark, right.kafka).read(first).records.num_rows == 1, protocol


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        (
            lambda own, plain: with_broker(reconnected(own, plain, "SSL"), own.secured.operator),
            "PLAINTEXT broker listener?",
        ),
        (
            lambda own, plain: with_broker(plain, own.secured.address("SASL_SSL")),
            "kafka.security.protocol=SASL_PLAINTEXT",
        ),
        (lambda own, plain: with_broker(plain, own.secured.operator), "SASL"),
    ],
    ids=["TLS to a plain listener", "no TLS to a listener with TLS", "SASL to a listener without"],
)
def test_a_listener_of_another_protocol_is_an_outage_with_a_hint(
    wrong: Wrong, said: str, secured_settings: SecuredSettings, processors: Processors, caplog: pytest.LogCaptureFixture
) -> None:
    plain = secured_settings.of(
        "processor", "SASL_PLAINTEXT", {**QUICK, "processor.handler": processors.handler(accepts)}
    )
    running = processors.start(wrong(secured_settings, plain))

    def told() -> bool:
        if running.ended:
            return running.error is not None and said in str(running.error)
        lines = [r.getMessage() for r in caplog.records if "the broker doesn't answer yet" in r.getMessage()]
        return any(said in line for line in lines)

    wait_until(told, 30, f"a line with {said!r}")
    assert running.ended or not running.health.ok
    running.service.request_stop()
