"""P6: of several sinks of one wait topic and schema one works, and the next as soon as that one's session is gone."""

from __future__ import annotations

import threading
from contextlib import closing

import pytest

from sink.advisory_lock import sink_lock_key, try_lock, wait_for_lock
from tests.conftest import SettingsFactory
from wait_registry.postgres.connection import connect


@pytest.mark.guarantee("P6.7")
def test_the_lock_has_one_holder_until_its_session_ends(prepared: SettingsFactory) -> None:
    settings = prepared()
    first, second, other = (connect(settings.postgres, autocommit=True, application_name="test") for _ in range(3))
    with closing(second), closing(other):
        key = sink_lock_key(first, settings.wait.topic)
        assert try_lock(first, key)
        assert not try_lock(second, key)
        assert try_lock(other, sink_lock_key(other, f"{settings.wait.topic}.other")), "another topic, another lock"

        assert wait_for_lock(second, key, threading.Event(), waiting=first.close)
