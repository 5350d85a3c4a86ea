"""An administrative client whose own attributes aren't set yet, as in a copy, says so; it asked itself for ever."""

from __future__ import annotations

import copy

import pytest

from wait_registry.kafka.clients import Admin
from wait_registry.settings.kafka import KafkaSettings


@pytest.mark.parametrize("name", ["_client", "_kafka", "__setstate__", "list_topics"])
def test_what_it_has_not_is_an_attribute_error(name: str) -> None:
    with pytest.raises(AttributeError, match="has no attribute"):
        getattr(Admin.__new__(Admin), name)


def test_a_copy_asks_the_same_client() -> None:
    admin = Admin(KafkaSettings(bootstrap_servers="127.0.0.1:1"))
    assert copy.copy(admin).list_topics.__self__ is admin.list_topics.__self__
