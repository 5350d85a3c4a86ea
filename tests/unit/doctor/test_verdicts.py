"""What the checks conclude from what they saw."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import pytest

from wait_registry.cli.check_report import fixes, summary
from wait_registry.cli.checks import clocks, disk, kafka_cluster, sweeps, tables
from wait_registry.cli.checks.catalogue import all_checks
from wait_registry.cli.checks.check import Concerned
from wait_registry.cli.checks.group import lag_line
from wait_registry.cli.checks.versions import parts
from wait_registry.cli.doctor import services_of
from wait_registry.diagnosis import Diagnosis, Severity
from wait_registry.settings.root import Settings

GIB, MIB = 1 << 30, 1 << 20


@pytest.mark.parametrize(
    ("free", "standing", "shown"),
    [
        (3 * GIB, Severity.OK, "3.0 GiB"),
        (GIB, Severity.OK, "1.0 GiB"),
        (GIB - 1, Severity.WARNING, "1024 MiB"),
        (100 * MIB, Severity.WARNING, "100 MiB"),
        (100 * MIB - 1, Severity.ERROR, "100 MiB"),
        (0, Severity.ERROR, "0 MiB"),
    ],
)
def test_little_room_is_a_warning_and_none_an_error(free: int, standing: Severity, shown: str) -> None:
    line = disk.judged("/scratch", free)
    assert line.severity is standing
    assert line.message.startswith(f"{shown} free in /scratch")


@pytest.mark.parametrize(
    ("margin_s", "allowance_s", "off_s", "standing", "named"),
    [
        (10, 5, 1.2, Severity.OK, ""),
        (10, 5, 1.25, Severity.WARNING, "a quarter of wait.skew_allowance_s = 5 s"),
        (10, 5, 2.5, Severity.ERROR, "half of wait.skew_allowance_s = 5 s"),
        (2, 5, 0.5, Severity.WARNING, "a quarter of processor.margin_s = 2 s"),
        (10, 0, 4.9, Severity.WARNING, "a quarter of processor.margin_s = 10 s"),
    ],
)
def test_clocks_may_differ_by_less_than_a_quarter_of_what_is_tolerated(
    margin_s: float, allowance_s: float, off_s: float, standing: Severity, named: str
) -> None:
    settings = Settings.model_validate({"processor": {"margin_s": margin_s}, "wait": {"skew_allowance_s": allowance_s}})
    line = clocks.judged("off", off_s, settings)
    assert (line.severity, named in line.message) == (standing, True), line


def test_a_broker_that_is_behind_can_t_be_told_from_an_idle_topic_and_that_is_said() -> None:
    line = clocks.broker_line(1_000_000, 1_060_000, Settings())
    assert line.severity is Severity.OK
    assert "newest record 60.0 s old" in line.message and "whether it is behind can't be measured" in line.message


@pytest.mark.parametrize(
    ("config", "standing", "said"),
    [
        ({"inter.broker.protocol.version": "3.7-IV4"}, Severity.WARNING, "3.7 "),
        ({"group.coordinator.rebalance.protocols": "classic,consumer"}, Severity.OK, "4.0 or newer"),
        ({"log.retention.ms": "1"}, Severity.OK, "version unknown"),
    ],
)
def test_a_broker_s_version_is_told_as_far_as_it_can_be_known(
    config: dict[str, str], standing: Severity, said: str
) -> None:
    line = kafka_cluster.broker_line(config)
    assert (line.severity, line.message.startswith(said)) == (standing, True), line


@pytest.mark.parametrize(("age_h", "standing"), [(17.9, Severity.OK), (18, Severity.WARNING), (35.9, Severity.WARNING)])
def test_a_view_is_a_warning_from_a_quarter_of_the_tombstones_life_on(age_h: float, standing: Severity) -> None:
    assert tables.aged("5 offsets behind", timedelta(hours=age_h), timedelta(hours=72)).severity is standing


@pytest.mark.parametrize(
    ("committed", "waiting", "members", "standing"),
    [
        (3, 0, 0, Severity.OK),
        (3, 5, 0, Severity.WARNING),
        (3, 5, 2, Severity.OK),
        (1, 5, 2, Severity.OK),
        (0, 5, 2, Severity.WARNING),
        (0, 0, 2, Severity.OK),
        (3, 5, None, Severity.OK),
    ],
)
def test_only_records_that_nobody_takes_are_a_warning_that_says_its_rule(
    committed: int, waiting: int, members: int | None, standing: Severity
) -> None:
    line = lag_line("shop", "orders", committed, 3, waiting, members)
    assert (line.severity, "are a warning" in line.message) == (standing, standing is Severity.WARNING)


@pytest.mark.parametrize(("silent_s", "standing"), [(120, Severity.OK), (121, Severity.WARNING)])
def test_a_silent_sink_is_a_warning_from_the_age_on_at_which_a_query_calls_its_answer_old(
    silent_s: int, standing: Severity
) -> None:
    line = tables.written(timedelta(seconds=silent_s), timedelta(seconds=silent_s))
    assert line.severity is standing
    assert "a sink writes at least every minute, over 2 min is a warning" in line.message


@pytest.mark.parametrize(
    ("text", "numbers"), [("2.16.1", (2, 16, 1)), ("2.16.1rc1", (2, 16, 1)), ("3.7-IV4", (3, 7)), ("dev", ())]
)
def test_versions_are_compared_by_their_leading_numbers(text: str, numbers: tuple[int, ...]) -> None:
    assert parts(text) == numbers


def test_the_last_line_counts_and_the_list_before_it_has_only_errors() -> None:
    ok = Diagnosis("Java", Severity.OK, "17")
    warning = Diagnosis("topic wait", Severity.WARNING, "one replica", "add two")
    error = Diagnosis("schema", Severity.ERROR, "missing", "waitreg db migrate")
    assert list(fixes([ok, warning])) == []
    assert summary([ok, warning], "sink could start") == "sink could start, 1 warning"
    assert list(fixes([ok, error, warning]))[1:] == ["  1. schema: missing", "     waitreg db migrate"]
    assert summary([ok, error, warning, warning], "") == "1 to fix, 2 warnings"


@pytest.mark.parametrize(
    ("sink", "sweeper", "services"),
    [
        ("spark", "spark", ["processor", "sink", "sweeper"]),
        ("connect", "spark", ["processor", "sweeper"]),
        ("spark", "connect", ["processor", "sink", "connect"]),
        ("connect", "connect", ["processor", "connect"]),
    ],
)
def test_where_kafka_connect_is_in_its_place_none_of_ours_is_looked_at_unless_it_is_named(
    sink: str, sweeper: str, services: list[str]
) -> None:
    settings = Settings.model_validate({"sink": {"kind": sink}, "sweeper": {"kind": sweeper}})
    assert services_of(settings) == services


@pytest.mark.parametrize(
    ("kind", "said", "unsaid"),
    [
        ("spark", "start `waitreg sweeper`", "connect status"),
        ("connect", "`waitreg connect status`", "waitreg sweeper"),
    ],
)
def test_nobody_is_told_to_start_a_second_one_that_exports(kind: str, said: str, unsaid: str) -> None:
    settings = Settings.model_validate({"sweeper": {"kind": kind}})
    now = datetime.now(UTC)
    line = sweeps.due_line(3, now - timedelta(hours=1), now, settings)
    assert (line.severity, said in line.fix, unsaid in line.fix) == (Severity.WARNING, True, False), line


def test_where_a_source_exports_doctor_asks_for_no_sweep_and_no_right_of_a_sweeper_s_but_for_what_is_due() -> None:
    services: list[Concerned] = ["processor", "connect"]
    asked = {check.id for check in all_checks(services) if check.services & set(services)}
    assert asked >= {"postgres.schema", "tables.position", "sweep.due"}
    assert not {
        id for id in asked if id.endswith((".sweeper", ".transactions")) or id in ("sweep.last", "version.spark")
    }
