"""What rows 4 to 6 show comes from what they measure."""

from __future__ import annotations

from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.contenders.incident_queries import COUNTING, PARAMETERS
from bench.harness.judgement import judgements
from bench.harness.plot import drawn
from bench.harness.row import Bench, Round, Row
from bench.rows.row_4 import ROW as ROW_4
from bench.rows.row_5 import ROW as ROW_5
from bench.rows.row_6 import ROW as ROW_6
from tests.integration.queries.test_plans_stay_cheap_on_a_million_rows import RULES
from waitreg.commands.query_file import bind, load_query, query_names

ROWS = [ROW_4, ROW_5, ROW_6]


def listed(full: bool, quick: bool = False) -> Bench:
    return Bench("", "", Path(), quick, full, lambda _: None)


def all_measured(row: Row, bench: Bench) -> Round:
    """Return a round in which each contender has every figure that anybody asks for."""
    names = [(case.name, contender.name) for case in row.cases(bench) for contender in case.contenders]
    return Round(1, {name: [_Everything()] for name in names})


class _Everything(dict[str, float]):
    def __contains__(self, _: object) -> bool:
        return True

    def __missing__(self, _: str) -> float:
        return 7.0


@pytest.mark.parametrize("full", [False, True])
@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"row {row.number}")
def test_each_line_is_about_a_contender_that_is_measured(row: Row, full: bool) -> None:
    found = judgements(row, [all_measured(row, listed(full))])
    assert [judgement.reason for judgement in found if judgement.spread is None] == []


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"row {row.number}")
def test_its_plots_can_be_drawn(row: Row) -> None:
    for plot in row.plots:
        ElementTree.fromstring(drawn(plot, [all_measured(row, listed(full=True))]))


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"row {row.number}")
def test_what_the_smoke_plays_is_part_of_the_row(row: Row) -> None:
    small, whole = ({case.name for case in row.cases(listed(full=False, quick=quick))} for quick in (True, False))
    assert small and small <= whole


def test_the_queries_that_count_are_those_whose_plans_may_read_the_whole_table() -> None:
    assert {name for name, rule in RULES.items() if "wait" in rule.whole} == COUNTING


def test_every_query_has_its_parameters() -> None:
    for name in query_names():
        query = load_query(name)
        given = {name: PARAMETERS[name] for name in query.parameters if name not in query.defaults}
        assert set(bind(query, given)) == set(query.parameters)
