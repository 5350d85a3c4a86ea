"""The tests, and the tools that they need, keep to a number of lines: each is read for years."""

from __future__ import annotations

from tests.evidence import ROOT

MOST_LINES = 68_600
MOST_LINES_OF_TOOLS = 24_000


def test_tests_and_their_tools_keep_to_their_size() -> None:
    lines = {file: len(file.read_text("utf-8").splitlines()) for file in (ROOT / "tests").rglob("*.py")}
    assert sum(lines.values()) <= MOST_LINES
    assert sum(count for file, count in lines.items() if not file.name.startswith("test_")) <= MOST_LINES_OF_TOOLS
