"""A broker says what it supports before it knows who asks, on every kind of listener."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from typing import cast

import pytest

from tests.support.secured_broker import Protocol, SecuredBroker
from wait_registry.kafka.broker_question import ask_brokers
from wait_registry.kafka.broker_rules import release
from wait_registry.kafka.clients import admin
from wait_registry.settings.loading import load_settings
from wait_registry.tls import end_of


@pytest.mark.parametrize("protocol", ["SASL_PLAINTEXT", "SASL_SSL", "SSL"])
def test_each_listener_answers_and_shows_its_certificate(protocol: str, secured: SecuredBroker) -> None:
    password = "" if protocol == "SSL" else secured.add_user("asking")
    kafka = load_settings(secured.security(cast("Protocol", protocol), "asking", password), env={}).kafka
    [asked] = ask_brokers(admin(kafka), kafka)
    assert asked.failure == ""
    assert asked.support is not None
    assert release(asked.support) == "4.2"
    if protocol == "SASL_PLAINTEXT":
        assert asked.certificate is None
    else:
        assert asked.certificate is not None
        assert timedelta(0) < end_of(asked.certificate) - datetime.now(UTC) <= timedelta(days=2)


def test_a_certificate_that_is_not_trusted_is_the_reason_for_no_answer(secured: SecuredBroker) -> None:
    right = load_settings(secured.security("SSL", "asking"), env={}).kafka
    security = right.security.model_copy(update={"ca": secured.other_authority.certificate})
    [asked] = ask_brokers(admin(right), right.model_copy(update={"security": security}))
    assert asked.support is None
    assert "certificate verify failed" in asked.failure
