"""Rows 4 to 6 of the benchmark can be played: everything that they measure is there, at a size that says nothing."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from bench.harness.process import ROOT
from bench.harness.row import Bench, Case, Contender, Row
from bench.harness.smoke import smoke
from bench.rows.row_4 import BUFFERED, UNBUFFERED
from bench.rows.row_4 import ROW as ROW_4
from bench.rows.row_5 import ROW as ROW_5
from bench.rows.row_6 import ROW as ROW_6
from tests.support.chosen_stack import skips_are_failures
from tests.support.stack import Stack
from wait_registry.errors import ConfigurationError
from wait_registry.jvm import CONNECT_JAR_KINDS, jar_directory
from wait_registry.local.connect_worker import plugin_jar


@pytest.mark.timeout(900)
@pytest.mark.parametrize("row", [ROW_4, ROW_5, ROW_6], ids=lambda row: f"row {row.number}")
def test_the_row_can_be_played(row: Row, stack: Stack, tmp_path: Path) -> None:
    can_be_had = row if connect_is_there() else without_connect(row)
    played = smoke(can_be_had, stack.bootstrap_servers, stack.postgres_url, tmp_path, say=print)
    assert played.failures == []
    assert [judgement.line.text for judgement in played.judgements if judgement.verdict == "failed"] == []
    assert any(judgement.spread is not None for judgement in played.judgements)
    assert all(plot.startswith("<") for plot in played.plots)


def connect_is_there() -> bool:
    """Whether a Kafka Connect worker with our plugin can be started; a CI machine must have one."""
    try:
        for kind in CONNECT_JAR_KINDS:
            jar_directory(kind)
        plugin_jar(ROOT)
    except ConfigurationError:
        if skips_are_failures():
            raise
        return False
    return True


def without_connect(row: Row) -> Row:
    """Return a row without those of its contenders that need a Kafka Connect worker."""

    def cases(bench: Bench) -> list[Case]:
        return [replace(case, contenders=[*filter(needs_no_connect, case.contenders)]) for case in row.cases(bench)]

    return replace(row, cases=cases)


def needs_no_connect(contender: Contender) -> bool:
    return contender.name not in (BUFFERED, UNBUFFERED)
