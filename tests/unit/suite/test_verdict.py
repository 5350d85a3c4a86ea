"""A failed test that passes alone fails the run, unless it is in the dated list."""

from __future__ import annotations

import datetime
from pathlib import Path

import pytest

from tests import evidence
from tests.verdict import MOST_DAYS, Flaky, flaky, verdict

TODAY = datetime.date(2026, 11, 29)
ONCE = """
from pathlib import Path
def test_once():
    mark = Path(__file__).with_name("ran")
    ran = mark.exists()
    mark.touch()
    assert ran
"""
ENTRY = '[[flaky]]\ntest = "t"\nreason = "{}"\nsince = 2026-11-29\nuntil = {}\n'


@pytest.mark.parametrize(
    ("last_day", "status"), [(None, 1), (TODAY - datetime.timedelta(1), 1), (TODAY, 0)], ids=["new", "over", "listed"]
)
def test_only_a_listed_test_may_fail_once(
    tmp_path: Path, last_day: datetime.date | None, status: int, capfd: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "test_flaky.py"
    file.write_text(ONCE, encoding="utf-8")
    test = "test_flaky.py::test_once"
    listed = [Flaky(test, "a trial", TODAY, last_day)] if last_day else []
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(tmp_path)
        assert verdict(["--rootdir", str(tmp_path), "-p", "no:cov", str(file)], listed, TODAY) == status
    assert f"FLAKY: {test} failed among others and passed alone" in capfd.readouterr().out


@pytest.mark.parametrize(
    "text",
    [
        ENTRY.format("", TODAY),
        ENTRY.format("why", TODAY + datetime.timedelta(MOST_DAYS + 1)),
        ENTRY.format("why", TODAY) * 4,
    ],
    ids=["no reason", "too long", "too many"],
)
def test_a_list_beyond_its_bounds_is_refused(tmp_path: Path, text: str) -> None:
    file = tmp_path / "flaky.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(ValueError, match="expected"):
        flaky(file)


def test_each_listed_test_exists_and_is_within_its_days() -> None:
    known = {test.node for test in evidence.all_tests()}
    for entry in flaky():
        assert entry.test.partition("[")[0] in known
        assert datetime.date.today() <= entry.until, f"{entry.test}: fix it or remove it"
