"""docs/configuration.md says what the settings are now."""

from __future__ import annotations

from pathlib import Path

from wait_registry.cli.config import configuration_page
from wait_registry.settings.names import setting_names

_PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_committed_page_is_current() -> None:
    assert _PAGE.read_text("utf-8") == configuration_page(), "run `waitreg config --markdown > docs/configuration.md`"


def test_every_setting_has_a_reason() -> None:
    assert [name for name, setting in setting_names().items() if not setting.field.description] == []
