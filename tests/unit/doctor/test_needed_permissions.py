"""Doctor asks for the permissions with which the services work on a broker with an authorizer."""

from __future__ import annotations

from collections.abc import Iterable

import pytest

from tests.support.naming import Names
from tests.support.rights import rights_of
from tests.support.settings import settings_against
from wait_registry.cli.checks.needed_permissions import needs
from wait_registry.settings.relations import Service


@pytest.mark.parametrize("service", ["processor", "sink", "sweeper"])
def test_doctor_asks_for_exactly_the_granted_permissions(service: Service) -> None:
    settings = settings_against("broker:9092", "postgresql://nowhere", Names())
    # Transactional ids have a line of their own; the sink works without its group.
    granted = {
        (right.resource, right.name, frozenset(right.operations))
        for right in rights_of(service, settings)
        if right.resource != "transactional_id"
    }
    wanted = {
        (need.resource, need.name, _without_implied(need.operations))
        for need in needs(settings, service)
        if need.essential
    }
    assert wanted == {right for right in granted if service != "sink" or right[0] != "group"}


def _without_implied(operations: Iterable[str]) -> frozenset[str]:
    """DESCRIBE comes with READ and WRITE."""
    named = frozenset(operations)
    return named - {"DESCRIBE"} if named & {"READ", "WRITE"} else named
