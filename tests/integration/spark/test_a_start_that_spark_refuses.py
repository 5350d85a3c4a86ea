"""P8: a setting that Spark refuses ends a service with 2 and what Spark said of it, in a line."""

from __future__ import annotations

import pytest

from tests.conftest import SettingsFactory
from tests.support.processes import Services


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("spark.master", "local[many]", "local[many]"),
        ("spark.conf", {"spark.memory.fraction": "much"}, "spark.memory.fraction"),
    ],
)
def test_the_service_ends_with_2_and_names_it(
    prepared: SettingsFactory, services: Services, setting: str, value: object, said: str
) -> None:
    service = services.start("sink", prepared({setting: value}))
    assert service.wait() == 2, service.log.read_text("utf-8")
    reason = service.log.read_text("utf-8").splitlines()[-1]
    assert "Spark refuses to" in reason
    assert said in reason
    assert "Correct spark.master, spark.driver_memory or spark.conf" in reason
