"""What `make chaos` refuses before it starts anything."""

from __future__ import annotations

import pytest

from tests.chaos.__main__ import main


def test_a_soak_too_short_to_be_judged_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit, match="2"):
        main(["--scenario", "soak", "--minutes", "12"])
    assert "saw a soak of 12 minutes, expected 12.5 or more" in capsys.readouterr().err
