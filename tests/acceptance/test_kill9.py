"""Each service is killed under load again and again, and every promise is kept (`make acceptance`; minutes)."""

from __future__ import annotations

import pytest

from tests.acceptance.kill9 import SERVICES, kill_services
from wait_registry.demo.screen import Screen


@pytest.mark.guarantee("P1.14")
@pytest.mark.acceptance
@pytest.mark.timeout(600)
@pytest.mark.parametrize("service", SERVICES)
def test_a_service_killed_five_times_under_load_breaks_no_promise(
    service: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled():
        assert kill_services(Screen(), [service], kills=5, seed=1)
