"""What the checks ask for, and what they conclude from what they saw."""

from __future__ import annotations

import shlex
import socket
from collections import defaultdict
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta

import pytest

from tests.support.naming import Names
from tests.support.rights import rights_of
from tests.support.settings import settings_against
from wait_registry.diagnosis import Diagnosis, Severity
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.topic_specs import TopicUser
from wait_registry.settings.loading import load_settings
from wait_registry.settings.tree import Settings
from waitreg.doctor import certificates, clocks, machine, sweeps, tables
from waitreg.doctor.catalogue import all_checks
from waitreg.doctor.check import Concerned
from waitreg.doctor.command import services_of
from waitreg.doctor.group import Logs, lag_line, retention_line
from waitreg.doctor.handler import handler
from waitreg.doctor.needed_permissions import Need, grant, needs

GIB, MIB = 1 << 30, 1 << 20


def clock(off_s: float, margin_s: float, allowance_s: float) -> Diagnosis:
    settings = Settings.model_validate({"processor": {"margin_s": margin_s}, "wait": {"skew_allowance_s": allowance_s}})
    return clocks.difference_line("off", off_s, settings)


def age(hours: float) -> Diagnosis:
    return tables.aged("5 offsets behind", timedelta(hours=hours), timedelta(hours=72))


def group(committed: int, waiting: int, members: int) -> Diagnosis:
    offsets = {number: 0 if number < committed else -1 for number in range(3)}
    return lag_line("shop", "orders", Logs(offsets, dict.fromkeys(offsets, 0), {0: waiting, 1: 0, 2: 0}), members)


def certificate(**left: float) -> Diagnosis:
    now = datetime(2026, 1, 1, tzinfo=UTC)
    return certificates.end_line("kafka.security.ca", now + timedelta(**left), now, "replace it")


NO_RULE = "3 partitions of orders have one"
RULE = "with no member, or with nothing committed, are a warning"


@pytest.mark.parametrize(
    ("line", "severity", "said"),
    [
        (machine.space_line("/scratch", 3 * GIB), Severity.OK, "3,072 MiB free in /scratch"),
        (machine.space_line("/scratch", GIB), Severity.OK, "1,024 MiB free in /scratch"),
        (machine.space_line("/scratch", GIB - 1), Severity.WARNING, "1,023 MiB free in /scratch, less than 1 GiB"),
        (machine.space_line("/scratch", 100 * MIB), Severity.WARNING, "100 MiB free in /scratch"),
        (machine.space_line("/scratch", 100 * MIB - 1), Severity.ERROR, "99 MiB free in /scratch"),
        (clock(1.2, 10, 5), Severity.OK, "off"),
        (clock(1.25, 10, 5), Severity.WARNING, "a quarter of wait.skew_allowance_s = 5 s"),
        (clock(2.5, 10, 5), Severity.ERROR, "half of wait.skew_allowance_s = 5 s"),
        (clock(0.5, 2, 5), Severity.WARNING, "a quarter of processor.margin_s = 2 s"),
        (clock(4.9, 10, 0), Severity.WARNING, "a quarter of processor.margin_s = 10 s"),
        (clocks.broker_line(1_000_000, 1_060_000, Settings()), Severity.OK, "newest record 60.0 s old"),
        (clocks.broker_line(1_000_000, 1_060_000, Settings()), Severity.OK, "whether it is behind can't be measured"),
        (age(17.9), Severity.OK, "5 offsets behind"),
        (age(18), Severity.WARNING, "5 offsets behind"),
        (age(35.9), Severity.WARNING, "5 offsets behind"),
        (group(3, 0, 0), Severity.OK, NO_RULE),
        (group(3, 5, 0), Severity.WARNING, RULE),
        (group(3, 5, 2), Severity.OK, NO_RULE),
        (group(1, 5, 2), Severity.OK, NO_RULE),
        (group(0, 5, 2), Severity.WARNING, RULE),
        (group(0, 0, 2), Severity.OK, NO_RULE),
        (retention_line(10_080, 3600), Severity.OK, "offsets.retention.minutes is 10080, the longest delay 60 minutes"),
        (retention_line(1, 90), Severity.WARNING, "offsets.retention.minutes is 1, the longest delay 1.5 minutes"),
        (certificate(days=15), Severity.OK, "kafka.security.ca ends at 2026-01-16T00:00:00Z, in 15 days"),
        (certificate(days=14), Severity.WARNING, "in 14 days"),
        (certificate(seconds=1), Severity.WARNING, "in 0 days"),
        (certificate(), Severity.ERROR, "ended at 2026-01-01T00:00:00Z"),
    ],
)
def test_a_check_judges_what_it_saw(line: Diagnosis, severity: Severity, said: str) -> None:
    assert (line.severity, said in line.message) == (severity, True), line
    assert (RULE in line.message) is (said == RULE), "the rule is only named with a warning"


@pytest.mark.parametrize(
    ("sink", "sweeper", "services"),
    [
        ("spark", "spark", ["processor", "sink", "sweeper"]),
        ("connect", "spark", ["processor", "sweeper"]),
        ("spark", "connect", ["processor", "sink", "connect"]),
        ("connect", "connect", ["processor", "connect"]),
    ],
)
def test_services_that_kafka_connect_replaces_are_not_checked(sink: str, sweeper: str, services: list[str]) -> None:
    settings = Settings.model_validate({"sink": {"kind": sink}, "sweeper": {"kind": sweeper}})
    assert services_of(settings) == services


@pytest.mark.parametrize(
    ("kind", "said", "unsaid"),
    [
        ("spark", "start `waitreg sweeper`", "expired.source"),
        ("connect", "expired.source and expired.tombstones run", "waitreg sweeper"),
    ],
)
def test_the_fix_for_due_rows_names_the_service_that_exports(kind: str, said: str, unsaid: str) -> None:
    settings = Settings.model_validate({"sweeper": {"kind": kind}})
    now = datetime.now(UTC)
    line = sweeps.due_line(3, now - timedelta(hours=1), now, settings)
    assert (line.severity, said in line.fix, unsaid in line.fix) == (Severity.WARNING, True, False), line


def test_with_a_source_only_due_rows_are_checked_of_the_sweeper() -> None:
    services: list[Concerned] = ["processor", "connect"]
    asked = {check.id for check in all_checks(services) if check.services & set(services)}
    assert asked >= {"postgres.schema", "tables.position", "sweep.due"}
    assert not [id for id in asked if id.endswith((".sweeper", ".transactions"))]
    assert not asked & {"sweep.last", "version.spark"}


@pytest.mark.parametrize("answers", [True, False])
def test_the_url_of_a_handler_is_shown_without_its_password(answers: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if not answers:
            server.close()
        url = f"http://shop:hunter2@127.0.0.1:{port}/orders"
        (line,) = handler(load_settings({"processor.handler": url}, env={}))
    assert f"http://**********@127.0.0.1:{port}/orders" in str(line)
    assert line.severity is (Severity.OK if answers else Severity.WARNING)
    assert ("can't be connected to" in str(line)) is not answers
    assert "hunter2" not in str(line)


def test_the_handler_of_each_route_is_loaded_once_and_shown() -> None:
    routes = '[{"match": {"topic": "a"}, "handler": "json:loads"}, {"handler": "json:load"}, {"handler": "json:loads"}]'
    lines = list(handler(load_settings({"processor.routes": routes}, env={})))
    assert [(line.severity, line.message) for line in lines] == [
        (Severity.OK, f"json:{name}") for name in ("loads", "load")
    ]
    with pytest.raises(ConfigurationError, match=r"processor.routes\[0\], processor.routes\[1\]: handler 'json:no'"):
        list(handler(load_settings({"processor.routes": '[{"handler": "json:no"}, {"handler": "json:no"}]'}, env={})))


@pytest.mark.parametrize("answers", [True, False])
def test_a_schema_registry_that_can_not_be_connected_to_is_a_warning(answers: bool) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        if not answers:
            server.close()
        access = {"processor.schema_registry.url": f"http://127.0.0.1:{port}, http://127.0.0.1:{port}"}
        lines = list(handler(load_settings({"processor.handler": "json:loads", **access}, env={})))
    warnings = [line for line in lines if line.severity is Severity.WARNING]
    assert len(warnings) == (0 if answers else 2)
    assert all(f"the schema registry http://127.0.0.1:{port} can't be connected to" in str(line) for line in warnings)


@pytest.mark.parametrize(
    ("service", "kind"),
    [("processor", "spark"), ("sink", "spark"), ("sweeper", "spark"), ("redrive", "spark"), ("redrive", "connect")],
)
def test_doctor_asks_for_exactly_the_granted_permissions(service: TopicUser, kind: str) -> None:
    overrides = {"processor.expiry_policy": "redeliver", "processor.retry.delays": ("10s", "1m"), "sink.kind": kind}
    settings = settings_against("broker:9092", "postgresql://nowhere", Names(), overrides)
    rights = rights_of(service, settings)
    granted: dict[tuple[str, str], frozenset[str]] = {
        (right.resource, right.name): frozenset(right.operations)
        for right in rights
        if right.resource != "transactional_id"  # they have a line of their own
    }
    prefixes = [right.name for right in rights if right.prefixed]
    wanted: dict[tuple[str, str], frozenset[str]] = defaultdict(frozenset)
    for need in needs(settings, service):
        name = next((prefix for prefix in prefixes if need.name.startswith(prefix)), need.name)
        wanted[need.resource, name] |= _without_implied(need.operations)
    if service == "sink":
        # A group for lag tools and one to look at Connect, without which it works.
        granted = {key: operations for key, operations in granted.items() if key[0] != "group"}
        wanted = {key: operations for key, operations in wanted.items() if key[0] != "group"}
    assert wanted == granted


def _without_implied(operations: Iterable[str]) -> frozenset[str]:
    """DESCRIBE comes with READ and WRITE."""
    named = frozenset(operations)
    return named - {"DESCRIBE"} if named & {"READ", "WRITE"} else named


def test_a_printed_command_keeps_names_together() -> None:
    settings = load_settings({"kafka.security.username": "o'neil $(id)"}, env={})
    words = shlex.split(grant(settings, Need("group", "it's; a group", ("READ",)), ("READ",)))
    assert words[words.index("--allow-principal") + 1] == "User:o'neil $(id)"
    assert words[-2:] == ["--group", "it's; a group"]
