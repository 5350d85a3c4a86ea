"""docs/configuration.md says what the settings are now."""

from __future__ import annotations

from pathlib import Path

import pytest

from wait_registry.cli.configuration_page import configuration_page
from wait_registry.cli.settings_reference import SettingReference, settings_reference

_PAGE = Path(__file__).parents[3] / "docs" / "configuration.md"


def test_the_committed_page_is_current() -> None:
    assert _PAGE.read_text("utf-8") == configuration_page(), "run `waitreg config --markdown > docs/configuration.md`"


@pytest.mark.parametrize("setting", settings_reference(), ids=lambda setting: setting.name)
def test_every_setting_has_a_reason_and_a_variable(setting: SettingReference) -> None:
    assert setting.description
    assert setting.variable == "WAITREG_" + setting.name.upper().replace(".", "__")
