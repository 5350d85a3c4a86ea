"""An incident played for real, about which every query has something to tell (`make acceptance`; minutes)."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.acceptance.incident import answers, play, stage
from tests.acceptance.incident_page import CHAPTERS
from wait_registry.demo.screen import Screen


@pytest.mark.acceptance
@pytest.mark.timeout(900)
def test_every_query_has_something_to_tell_about_a_real_incident(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with capsys.disabled(), stage() as shop:
        play(Screen(), shop)
        assert len(answers(shop, tmp_path)) == len(CHAPTERS)
