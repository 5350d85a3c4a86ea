"""What a share group's configuration must allow, and what the source can't be combined with."""

from __future__ import annotations

from typing import Any

import pytest

from processor.share.group_limits import share_group_problems
from wait_registry.diagnosis import Severity
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.settings.share_relations import share_problems

CONFIG = {
    "share.record.lock.duration.ms": "30000",
    "share.isolation.level": "read_committed",
    "share.auto.offset.reset": "earliest",
}
SHARE: dict[str, Any] = {"source": "share", "registration": "off"}


def settings(**own: Any) -> ProcessorSettings:
    return ProcessorSettings.model_validate({"group": "shop", **SHARE, **own})


@pytest.mark.parametrize(
    ("own", "severity"),
    [
        ({"handler_timeout_s": 4, "max_attempts": 3}, [Severity.ERROR]),  # 3 x 4 + 2 x 10 = 32
        ({"handler_timeout_s": 3, "max_attempts": 3}, []),
        ({"handler_timeout_s": 30, "max_attempts": 1}, [Severity.ERROR]),
        ({"handler_timeout_s": 29.9, "max_attempts": 1}, []),
    ],
)
def test_all_attempts_and_their_pauses_fit_the_lease(own: dict[str, Any], severity: list[Severity]) -> None:
    problems = share_group_problems(settings(**own), CONFIG)
    assert [problem.severity for problem in problems] == severity


@pytest.mark.parametrize(
    ("changed", "named"),
    [
        ({"share.isolation.level": "read_uncommitted"}, "aborted transactions"),
        ({"share.auto.offset.reset": "latest"}, "before the group's first poll"),
    ],
)
def test_a_configuration_that_surprises_is_warned_of(changed: dict[str, str], named: str) -> None:
    (problem,) = share_group_problems(settings(handler_timeout_s=5, max_attempts=1), CONFIG | changed)
    assert problem.severity is Severity.WARNING
    assert named in problem.message


def test_a_broker_without_share_groups_is_refused() -> None:
    (problem,) = share_group_problems(settings(), {})
    assert "needs Kafka 4.2" in problem.message


@pytest.mark.parametrize(
    ("own", "named"),
    [
        ({"registration": "deferred"}, "processor.registration is deferred"),
        ({"ordering": "key"}, "processor.ordering is key"),
        ({"retry": {"delays": ("10s",)}}, "processor.retry.delays is 10s"),
        ({"delay_s": 60}, "processor.delay_s is 60"),
        ({"group_protocol": "consumer"}, "processor.group_protocol is consumer"),
    ],
)
def test_what_needs_offsets_is_refused(own: dict[str, Any], named: str) -> None:
    (problem,) = share_problems(settings(**own))
    assert problem.severity is Severity.ERROR
    assert problem.message.startswith(named)
    assert list(share_problems(settings(**{**own, "source": "group"}))) == []


def test_the_least_settings_of_a_share_group_contradict_nothing() -> None:
    assert list(share_problems(settings())) == []
