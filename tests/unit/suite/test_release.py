"""The parts of the release tests: a result is kept for its commit, and only what passed isn't repeated."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests import release


@pytest.fixture(autouse=True)
def own_parts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two parts, and results of this test's own."""
    file = tmp_path / "release.toml"
    file.write_text('[tests]\n[part]\ngood = "true"\nbad = "exit 3"\nlong = "sleep 60"\n', encoding="utf-8")
    monkeypatch.setattr(release, "FILE", file)
    monkeypatch.setattr(release, "changes", lambda commit: "")
    monkeypatch.setattr(release, "RESULTS", tmp_path / "kept" / "release.json")


def test_a_part_passes_for_its_commit_alone() -> None:
    assert release.run("good", "c1")
    assert release.missing("c1") == ["bad", "long"]
    assert release.missing("c2") == ["good", "bad", "long"]


@pytest.mark.parametrize(("part", "limit_s", "status"), [("bad", 60.0, 3), ("long", 0.1, -1)])
def test_a_part_that_fails_or_takes_too_long_is_missing(
    part: str, limit_s: float, status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(release, "LIMIT_S", limit_s)
    assert not release.run(part, "c1")
    assert release.results("c1")[part]["status"] == status
    assert part in release.missing("c1")


def test_a_part_that_changes_files_has_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(release, "changes", lambda commit: " M docs/incident.md")
    assert not release.run("good", "c1")
    assert release.results("c1") == {}
