"""What comes out of measured figures: medians, verdicts, the data file, and how two checkouts compare."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bench.__main__ import ROWS
from bench.against import gain
from bench.contenders.bare_loop import producer_properties
from bench.contenders.callers import UNDONE
from bench.contenders.flow_program import FlowArguments
from bench.contenders.meter import Mark, percentile
from bench.contenders.product import processor_settings
from bench.contenders.registry import shared_window
from bench.contenders.sink_pace import Step, pace, stretch
from bench.contenders.wait_log import WaitLog
from bench.harness.data import Data
from bench.harness.play import Turn, play
from bench.harness.report import judged, shown
from bench.harness.row import Bench, Case, Contender, Line, Round, Row
from processor.fault import Fault
from processor.health.broker_connection import BrokerConnection
from processor.wiring import outbox_config

PLACE = ("case", "one", "rate")
# Newer than the last full run.
UNMEASURED_ROWS = (9, 10)


def rounds(*values: float) -> list[Round]:
    """Return a round for each value."""
    return [Round(number, {PLACE[:2]: [{PLACE[2]: value}]}) for number, value in enumerate(values, 1)]


@pytest.mark.parametrize(
    ("line", "measured", "verdict"),
    [
        (Line("more is better", PLACE, least=10), rounds(9, 10, 30), "met"),
        (Line("more is better", PLACE, least=10), rounds(9, 9, 30), "not met"),
        (Line("less is better", PLACE, most=10), rounds(9, 10, 30), "met"),
        (Line("less is better", PLACE, most=10), rounds(11), "not met"),
        (Line("no target", PLACE), rounds(1), ""),
        (Line("not tried", PLACE, most=10), [Round(1)], "not measured"),
        (
            Line("failed", PLACE, most=10),
            [*rounds(9), Round(2, {}, {PLACE[:2]: "it ended"})],
            "failed: round 2: it ended",
        ),
    ],
)
def test_the_median_over_the_rounds_decides(line: Line, measured: list[Round], verdict: str) -> None:
    assert [one.verdict for one in judged(Row(1, "", lambda _: [], [line]), measured)] == [verdict]


def test_a_line_may_say_how_much_a_figure_is_above_another_one() -> None:
    line = Line("above", PLACE, above=("case", "other", "rate"))
    both = Round(1, {PLACE[:2]: [{"rate": 70}], ("case", "other"): [{"rate": 50}]})
    assert line.value(both) == 20
    assert line.value(rounds(70)[0]) is None
    assert line.failure(Round(1, {}, {("case", "other"): "it ended"})) == "it ended"


def test_calls_that_failed_are_seen_in_the_metrics() -> None:
    metrics = (
        'waitreg_processor_settled_total{outcome="done"} 9.0\n'
        'waitreg_processor_settled_total{outcome="discarded"} 0.0\n'
    )
    assert UNDONE.findall(metrics) == []
    failed = 'waitreg_processor_settled_total{outcome="dead_lettered"} 2.0'
    assert UNDONE.findall(f"{metrics}{failed}\n") == [failed.rpartition("2.0")[0]]


def test_a_run_replaces_its_rows_and_keeps_the_others(tmp_path: Path) -> None:
    data = Data.read(tmp_path / "rounds.jsonl")
    for run, rows in (("first", [1, 2]), ("second", [2])):
        data.begin({"run": run, "commit": run}, rows)
        for row in rows:
            data.add_turn(run, row, 1, Turn("case", "one", 1, {"rate": len(run)}))
    read = Data.read(data.path)
    assert [round_.figure(PLACE) for row in (1, 2) for round_ in read.rounds(row)] == [5, 6]
    assert [run["commit"] for row in (1, 2) for run in read.runs(row)] == ["first", "second"]


def test_a_contender_that_failed_has_no_further_turns(tmp_path: Path) -> None:
    called: list[str] = []

    def fails(error: Exception) -> Contender:
        def measure(_: Bench) -> dict[str, float]:
            called.append(str(error))
            raise error

        return Contender(str(error), measure)

    case = Case("case", [fails(OSError("gone")), fails(RuntimeError("rows are missing"))], turns=2)
    turns: list[Turn] = []
    failures = play(Row(1, "", lambda _: [case], []), Bench("", "", tmp_path), turns.append)
    assert called == ["gone", "rows are missing"]
    assert len(failures) == len(turns) == 2


def test_the_contenders_of_a_case_have_different_names() -> None:
    for row in ROWS.values():
        names = [(case.name, one.name) for case in row.cases(Bench("", "", Path())) for one in case.contenders]
        assert len(names) == len(set(names))


def test_the_lines_of_a_row_have_different_texts() -> None:
    for row in ROWS.values():
        texts = [line.text for line in row.lines]
        assert len(texts) == len(set(texts)), sorted(text for text in texts if texts.count(text) > 1)


def test_the_committed_data_is_what_the_rows_ask_for() -> None:
    data = Data.read(Path(__file__).parents[3] / "bench" / "rounds.jsonl")
    for row in ROWS.values():
        if row.number in UNMEASURED_ROWS:
            continue
        assert len(data.rounds(row.number)) == 3
        missing = [one.line.text for one in judged(row, data.rounds(row.number)) if one.verdict == "not measured"]
        # The last full run is older than these modes.
        assert all("deferred" in text.lower() or "registry, off" in text for text in missing), missing


def test_processes_are_measured_while_all_of_them_work() -> None:
    def marks(calls: list[int], clock_s: list[int]) -> list[Mark]:
        return [Mark(n, s * 10**9, s * 10**9, 0, 1, 2) for n, s in zip(calls, clock_s, strict=True)]

    one, other = marks([10, 20, 30, 40], [1, 2, 3, 4]), marks([10, 20, 30], [2, 3, 4])
    assert shared_window([one, other[:1]], 30, 60) is None
    line = shared_window([one, other], 30, 60)
    assert line is not None
    assert (line["records"], line["seconds"], line["rss_bytes"]) == (40, 2, 4)


def test_a_pace_counts_the_steps_within_its_stretch() -> None:
    steps = [Step(0, 0, 0), Step(10, 400, 1), Step(12, 800, 2), Step(20, 1000, 9)]
    assert pace(*stretch(steps, 400, 900)) == {"records_per_s": 200, "cpu_us_per_record": 2500}
    assert stretch(steps, 401, 799) == (steps[0], steps[-1])


def test_serial_cpu_is_known_where_both_steps_know_it() -> None:
    first, last = Step(0, 0, 0, 1), Step(10, 500, 9, 3)
    assert pace(first, last)["serial_cpu_us_per_record"] == 4000
    assert "serial_cpu_us_per_record" not in pace(first, last._replace(serial_cpu_s=None))


@pytest.mark.parametrize("log", [WaitLog("t", 100, 20), WaitLog("t", 100, 20, left_open_every=10), WaitLog("t", 7)])
def test_a_wait_log_is_as_long_as_it_says(log: WaitLog) -> None:
    order = list(log.order())
    assert len(order) == log.records
    assert sum(is_wait for _, is_wait in order) == log.waits == log.records - log.waits + log.left_open


def test_small_things_are_right() -> None:
    assert (gain(False, 110, 100), gain(True, 100, 110)) == (1.1, 1.1)
    assert [percentile(range(1, 101), share) for share in (0.5, 0.99)] == [50, 99]
    texts = [shown(value, "ms") for value in (55_234.1, 0.98765, 12.0, 0)]
    assert texts == ["55,200 ms", "0.988 ms", "12.0 ms", "0 ms"]


def test_the_bare_loop_has_the_processors_producer() -> None:
    settings = processor_settings(FlowArguments("localhost:9092", "orders", "shop", 50, "noop", 10, 20, 7.5))
    theirs, ours = outbox_config(settings, BrokerConnection(Fault())), producer_properties(settings, 1.0, "lz4")
    own = {"error_cb", "stats_cb", "statistics.interval.ms", "linger.ms"}
    assert {name: ours[name] for name in ours.keys() - own} == {name: theirs[name] for name in theirs.keys() - own}


def test_interrupted_lines_are_whole(tmp_path: Path) -> None:
    data = Data(tmp_path / "rounds.jsonl")
    data.begin({"run": "one", "commit": "c"}, [1])
    data.add({"run": "one", "row": 1, "round": 1, "seconds": 1, "noise": ""})
    assert [json.loads(line)["run"] for line in data.path.read_text().splitlines()] == ["one", "one"]
