"""P8: an administrative client is freed where it is dropped, never by the garbage collector in a thread of its own."""

from __future__ import annotations

import gc
import weakref

from wait_registry.kafka.clients import admin
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
