"""What every row shows comes from what it measures, and to describe it measures nothing."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.harness.catalogue import row_numbers, row_of
from bench.harness.judgement import judgements
from bench.harness.plot import drawn
from bench.harness.process import ROOT
from bench.harness.row import Bench, Line, Round, Row
from tests.support.pages import Page

ROWS = [row_of(number) for number in row_numbers()]
LINK = re.compile(r"\.\./(docs/decisions/\d{4}-[a-z0-9-]+\.md)(#[a-z0-9-]+)?")

of_every_row = pytest.mark.parametrize("row", ROWS, ids=lambda row: f"row {row.number}")


class _Everything(dict[str, float]):
    """Figures in which whatever is asked for is 7."""

    def __contains__(self, _: object) -> bool:
        return True

    def __missing__(self, _: str) -> float:
        return 7.0


def listed(*, full: bool, quick: bool = False) -> Bench:
    return Bench("", "", Path(), quick, full, lambda _: None)


def all_measured(row: Row, bench: Bench) -> Round:
    """Return a round in which each contender has every figure that anybody asks for."""
    names = [(case.name, contender.name) for case in row.cases(bench) for contender in case.contenders]
    return Round(1, {name: [_Everything()] for name in names})


def lines_of(row: Row) -> Sequence[Line]:
    return row.lines([all_measured(row, listed(full=True))]) if callable(row.lines) else row.lines


@of_every_row
def test_each_line_is_about_a_contender_that_is_measured(row: Row) -> None:
    found = judgements(row, [all_measured(row, listed(full=True))])
    assert [judgement.reason for judgement in found if judgement.spread is None] == []


@of_every_row
def test_no_line_fails_where_only_the_usual_round_is_measured(row: Row) -> None:
    found = judgements(row, [all_measured(row, listed(full=False))])
    assert [judgement.reason for judgement in found if judgement.verdict == "failed"] == []


@of_every_row
def test_each_line_has_a_text_of_its_own(row: Row) -> None:
    texts = [line.text for line in lines_of(row)]
    assert len(set(texts)) == len(texts)


@of_every_row
def test_its_plots_can_be_drawn(row: Row) -> None:
    for plot in row.plots:
        ElementTree.fromstring(drawn(plot, [all_measured(row, listed(full=True))]))


@of_every_row
def test_what_the_smoke_plays_is_part_of_the_row(row: Row) -> None:
    small, whole = ({case.name for case in row.cases(listed(full=False, quick=quick))} for quick in (True, False))
    assert small
    assert small <= whole


@of_every_row
@pytest.mark.parametrize(("quick", "full"), [(True, False), (False, False), (False, True)])
def test_it_is_described_without_measuring_anything(row: Row, quick: bool, full: bool, tmp_path: Path) -> None:
    cases = row.cases(Bench("", "", tmp_path, quick=quick, full=full, say=lambda _: None))
    assert len({case.name for case in cases}) == len(cases)
    for case in cases:
        names = [contender.name for contender in case.contenders]
        assert len(set(names)) == len(names)
    assert list(tmp_path.iterdir()) == []


@of_every_row
def test_what_explains_a_missed_target_is_a_decision(row: Row) -> None:
    for line in lines_of(row):
        assert not line.why or LINK.fullmatch(line.why), line.text
        assert not line.why or line.target or line.aim, line.text


@of_every_row
def test_it_can_say_why_each_of_its_targets_is_missed(row: Row) -> None:
    assert [line.text for line in lines_of(row) if (line.target or line.aim) and not line.why] == []


def test_the_decisions_that_are_linked_exist() -> None:
    linked = {match.groups("") for row in ROWS for line in lines_of(row) if (match := LINK.fullmatch(line.why))}
    pages = {name: Page(name, (ROOT / name).read_text("utf-8")) for name, _ in linked}
    assert pages
    assert {(name, anchor) for name, anchor in linked if anchor and anchor[1:] not in pages[name].anchors} == set()
