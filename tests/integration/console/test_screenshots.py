"""Pictures of the console for the docs: `make screenshots` writes them, and a plain run checks that it could."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import ROOT
from tests.integration.console.addresses import LETTER
from tests.integration.console.conftest import Visitor

MOST_BYTES = 150_000
SHOTS = {"now": "/", "dead-letters": "/dead-letters?since=2d", "dead-letter": LETTER, "timeline": "/timeline"}


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("name", SHOTS)
def test_a_page_has_a_picture(
    visit: Visitor, pytestconfig: pytest.Config, tmp_path: Path, name: str, theme: str
) -> None:
    folder = ROOT / "docs" / "img" if pytestconfig.getoption("--screenshots") else tmp_path
    picture = folder / f"console-{name}-{theme}.png"
    visit(refresh=True, viewport={"width": 1100, "height": 720}, color_scheme=theme).open(SHOTS[name]).screenshot(
        path=picture
    )
    assert picture.stat().st_size <= MOST_BYTES
