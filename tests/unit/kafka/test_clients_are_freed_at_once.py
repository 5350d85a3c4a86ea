"""P8: an administrative client is freed where it is dropped, never by the garbage collector in a thread of its own."""

from __future__ import annotations

import gc
import weakref

import pytest

from wait_registry.errors import TransientError
from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import describe_topic
from wait_registry.settings.kafka import KafkaSettings


def test_an_administrative_client_is_in_no_reference_cycle() -> None:
    gc.disable()
    try:
        client = admin(KafkaSettings(bootstrap_servers="127.0.0.1:1"))
        dropped = weakref.ref(client)
        del client
        assert dropped() is None
    finally:
        gc.enable()


def test_nor_is_one_whose_request_failed() -> None:
    gc.disable()
    try:
        client = admin(KafkaSettings(bootstrap_servers="127.0.0.1:1", request_timeout_s=0.2))
        dropped = weakref.ref(client)
        with pytest.raises(TransientError):
            describe_topic(client, "orders")
        del client
        assert dropped() is None
    finally:
        gc.enable()
