"""RESULTS.md is written whole from the ledger: what was measured, of this commit and machine, and what wasn't."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from bench.harness.measurement import Entry
from bench.harness.report import head, section_of, write_report
from bench.harness.row import Axis, Line, Plot, Row
from bench.harness.target import at_least, at_most
from tests.unit.bench.made_up import HERE, end, row, stamp, turn

LINES = (
    Line(
        "registry / bare loop",
        lambda round_: round_.ratio("no-op", "records_per_s", "registry", to="bare loop"),
        target=at_least(0.75),
        why="../docs/decisions/0017.md",
    ),
    Line(
        "records a second",
        lambda round_: round_.figure("no-op", "registry", "records_per_s"),
        "records/s",
        aim=at_least(50_000),
    ),
    Line("memory", lambda round_: round_.figure("no-op", "registry", "rss_mb"), "MB", at_most(100), at_most(80)),
    Line("first record", lambda round_: round_.figure("start", "registry", "start_s"), "s", at_most(3)),
    Line("latency", lambda round_: round_.figure("latency", "registry", "p99_ms"), "ms", at_most(20)),
)
PLOT = Plot("rates", "Rates", Axis("N"), Axis("rate", "records/s"), lambda _: {"registry": [(1, 1), (2, 2)]})
ROW = replace(row((), LINES), plots=(PLOT,))

GOLDEN = """\
## Row 2: Processor ceiling

The full pattern.

A round took 1.5 min. **Only 2 of 3 rounds were played to the end.** The machine wasn't quiet before round 2: load \
average 3.0 on 2 cores.

| figure | median | least–most | target | verdict |
| --- | ---: | ---: | --- | --- |
| registry / bare loop | 0.728 | 0.720–0.735 | ≥ 0.75 | not met, [why](../docs/decisions/0017.md) |
| records a second | 38,000 records/s | 36,000–40,000 | aim ≥ 50,000 records/s | aim: missed, not explained |
| memory | 81 MB | 80–82 | ≤ 100 MB, aim ≤ 80 MB | met, aim: missed, not explained |
| first record | 2.50 s | one round | ≤ 3 s | failed: round 2: start, registry: took \\| too long |
| latency | – | – | ≤ 20 ms | not measured: round 1: latency, registry: no p99_ms |

![Rates](plots/rates.svg)

| case | contender | records_per_s | rss_mb |
| --- | --- | ---: | ---: |
| no-op | registry | 38,000 | 81 |
| no-op | bare loop | 52,200 | – |

| case | contender | start_s |
| --- | --- | ---: |
| start | registry | 2.50 |

| contender | version | does not do |
| --- | --- | --- |
| bare loop | 1.0 | no retries, no metrics |
"""


def measured() -> list[Entry]:
    """Return two of three rounds, the second one with a failure, and what doesn't belong to them."""
    entries: list[Entry] = []
    for number, ours, bare, rss in ((1, 40_000.0, 54_400.0, 80.0), (2, 36_000.0, 50_000.0, 82.0)):
        noise, failures = ("load average 3.0 on 2 cores", ["start: took too long"]) if number == 2 else ("", [])
        lacks = "no retries, no metrics"
        entries += [
            turn(figures={"records_per_s": ours, "rss_mb": rss}, number=number),
            turn("bare loop", {"records_per_s": bare}, number=number, lacks=lacks, version="1.0"),
            turn(
                case="start",
                figures={"start_s": 2.5},
                number=number,
                attempt=number,
                failure="took | too long\n  at some place" if number == 2 else "",
            ),
            end(number, failures=failures, noise=noise),
        ]
    entries.append(turn(figures={"records_per_s": 1.0}, number=3, stamped=stamp(origin=replace(HERE, commit="old"))))
    return entries


def test_a_rows_section() -> None:
    assert section_of(ROW, measured(), HERE, 3).text == GOLDEN


def test_a_row_without_measurements_says_so() -> None:
    elsewhere = replace(HERE, machine="another")
    assert section_of(ROW, measured(), elsewhere, 3).text == (
        "## Row 2: Processor ceiling\n\nThe full pattern.\n\nnot measured\n"
    )


def test_a_round_that_broke_off_says_why() -> None:
    section = section_of(ROW, [turn(), end(broken="the broker ended\nits log")], HERE, 1)
    assert "Round 1 broke off: the broker ended." in section.text
    assert "failed: round 1: the broker ended |" in section.text


def test_the_head_says_when_where_and_how() -> None:
    later = stamp(date="2026-11-21T05:00:00+00:00")
    text = head([*measured(), end(3, stamped=later)], HERE, 3)
    assert "2026-11-21T02:20:00+00:00 to 2026-11-21T05:00:00+00:00" in text
    assert "`abc123`" in text
    assert "| machine | a machine |" in text
    assert "Python 3.11.7, Java 17.0.15" in text
    assert "`make bench FULL=1`: 3 rounds" in text


def test_a_turn_that_was_measured_at_the_second_attempt_leaves_a_line() -> None:
    entries: list[Entry] = [turn(number=1, failure="no broker\n  somewhere"), turn(number=1, attempt=2), end()]
    section = section_of(ROW, entries, HERE, 1)
    assert "Measured at the second attempt: round 1, no-op, registry, turn 1; the first: no broker." in section.text
    assert "second attempt" not in section_of(ROW, measured(), HERE, 3).text


def test_the_head_names_the_commands_and_what_was_left_out() -> None:
    ours = [replace(stamp(), command="python -m bench --full --row 2"), replace(stamp(), command="python -m bench")]
    newer = replace(stamp(origin=replace(HERE, versions="Java 21")), versions={"Python": "3.11.7", "Java": "21"})
    text = head([end(stamped=each) for each in [*ours, newer]], HERE, 3, "rows 1, 3")
    assert "`python -m bench --full --row 2`, `python -m bench` |" in text
    assert "| left out | rounds of this commit that were measured with Java 21 |" in text
    assert "| **not measured** | **rows 1, 3: " in text
    assert "left out" not in head(measured(), HERE, 3)


def test_a_version_that_changed_between_rounds_is_told_with_the_one_before() -> None:
    later = replace(stamp(), versions={"Python": "3.11.7", "Java": "17.0.16"})
    assert "Python 3.11.7, Java 17.0.15 and 17.0.16" in head([end(), end(2, stamped=later)], HERE, 3)


def test_the_report_is_written_whole(tmp_path: Path) -> None:
    (tmp_path / "plots").mkdir()
    (tmp_path / "plots" / "of-a-row-that-is-gone.svg").write_text("old", "utf-8")
    (tmp_path / "RESULTS.md").write_text("old", "utf-8")
    other = Row(3, "Latency", "Soon.", lambda _: (), ())
    path = write_report(tmp_path, [ROW, other], measured(), HERE, 3)
    text = path.read_text("utf-8")
    assert text.startswith("# Results\n")
    assert [line for line in text.splitlines() if line.startswith("## ")] == [
        "## Row 2: Processor ceiling",
        "## Row 3: Latency",
    ]
    assert text.endswith("\n## Row 3: Latency\n\nSoon.\n\nnot measured\n")
    assert [plot.name for plot in (tmp_path / "plots").iterdir()] == ["rates.svg"]
    assert "</svg>" in (tmp_path / "plots" / "rates.svg").read_text("utf-8")


def test_the_same_ledger_gives_the_same_report(tmp_path: Path) -> None:
    first = write_report(tmp_path / "a", [ROW], measured(), HERE, 3).read_bytes()
    assert write_report(tmp_path / "b", [ROW], measured(), HERE, 3).read_bytes() == first
