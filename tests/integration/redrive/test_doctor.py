"""`waitreg doctor redrive` says whether the tables have what the operations topic has."""

from __future__ import annotations

import pytest

from tests.integration.doctor.findings import look
from tests.integration.redrive.scenario import Scenario
from wait_registry.diagnosis import Severity
from wait_registry.settings.loading import load_settings
from waitreg.doctor.tables import operations_line


def test_doctor_finds_what_a_redrive_would_refuse(at: Scenario) -> None:
    found = look(at.settings, "redrive")
    assert found.broken == []
    line = found.one("tables.operations")
    assert line.severity is Severity.WARNING
    assert "no sink has read" in line.message and "waitreg sink" in line.fix
    at.show_dead_letters(1)
    found = look(at.settings, "redrive")
    assert found.one("tables.operations").severity is Severity.OK
    assert {line.id for line in found.lines} >= {
        "kafka.permissions.redrive",
        "kafka.permissions.redrive.transactions",
        "postgres.permissions.redrive",
    }
    at.topics.configure(at.settings.operations.topic, "retention.ms", "86400000")
    kept = "topic.operations.retention.beyond.dead.letters"
    assert look(at.settings, "redrive").one(kept).severity is Severity.WARNING
    at.topics.delete(at.settings.operations.topic)
    assert look(at.settings, "redrive").broken == ["topic.operations.missing"]
    at.topics.create_own(at.settings)
    assert look(at.settings, "redrive").broken == ["tables.operations"]


@pytest.mark.parametrize(
    ("same", "position", "severity", "says"),
    [
        (True, 5, Severity.OK, "4 offsets behind the end of waitreg.operations"),
        (True, 2, Severity.ERROR, "whose log holds 3 to 9"),
        (True, 10, Severity.ERROR, "whose log holds 3 to 9"),
        (True, 3, Severity.WARNING, "more than redrive.max_tail_records = 5"),
        (False, 5, Severity.ERROR, "was recreated"),
    ],
)
def test_a_position_is_judged_by_the_log(same: bool, position: int, severity: Severity, says: str) -> None:
    settings = load_settings({"redrive.max_tail_records": "5"}, env={})
    line = operations_line(settings, same, position, (3, 9))
    assert (line.severity, says in line.message) == (severity, True), line
