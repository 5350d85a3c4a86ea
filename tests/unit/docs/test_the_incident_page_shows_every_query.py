"""docs/incident.md shows every incident query, with the question as it is in its file and an answer."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.acceptance.incident_page import CHAPTERS
from wait_registry.cli.query_file import load_query, query_names

PAGE = (Path(__file__).parents[3] / "docs" / "incident.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", PAGE, re.MULTILINE | re.DOTALL))


def test_every_query_has_its_section_and_no_section_is_of_none() -> None:
    assert set(SECTIONS) == set(query_names())


def test_the_incident_is_asked_by_every_query() -> None:
    assert {chapter.name for chapter in CHAPTERS} == set(query_names())


@pytest.mark.parametrize("name", query_names())
def test_a_section_has_the_question_the_command_and_an_answer(name: str) -> None:
    section = SECTIONS.get(name, "")
    assert load_query(name).question in section, "play it again: make incident"
    assert f"$ waitreg query {name}" in section
    rows = re.search(r"^\((\d+) rows?\)$", section, re.MULTILINE)
    assert rows is not None
    assert int(rows[1]) > 0
