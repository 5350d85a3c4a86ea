"""A check that fails, hangs or breaks is one line, and the other checks still run."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import pytest

from wait_registry.cli.check_report import exit_code
from wait_registry.cli.checks import check as running
from wait_registry.cli.checks.catalogue import SERVICES, all_checks
from wait_registry.cli.checks.check import Check, Look, run_checks
from wait_registry.diagnosis import Diagnosis, Severity, ok
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.postgres.connection import PostgresUnavailable
from wait_registry.settings.root import Settings

SETTINGS = Settings()


def sound(_settings: Settings) -> Iterator[Diagnosis]:
    yield ok("sound")


def raising(error: BaseException) -> Look:
    def look(_settings: Settings) -> Iterator[Diagnosis]:
        yield ok("sound")
        raise error

    return look


def run(*checks: Check) -> list[Diagnosis]:
    return list(run_checks(checks, SETTINGS, lambda _: None))


@pytest.mark.parametrize(
    ("error", "seen", "fix"),
    [
        (ConfigurationError("the topic is missing"), "the topic is missing", "make it"),
        (ValueError("unforeseen"), "ValueError: unforeseen", "make it"),
        (SystemExit("a handler's module ends it"), "SystemExit: a handler's module ends it", "make it"),
        (
            ImportError("No module named 'psycopg'"),
            "No module named 'psycopg'",
            "pip install 'wait-registry[sink,sweeper]'",
        ),
    ],
)
def test_an_exception_is_a_line_and_the_next_check_runs(error: BaseException, seen: str, fix: str) -> None:
    lines = run(Check("thing", "a thing", raising(error), fix="make it"), Check("other", "another", sound))
    assert [line.severity for line in lines] == [Severity.OK, Severity.ERROR, Severity.OK]
    assert (lines[1].id, lines[1].subject, lines[1].message) == ("thing", "a thing", seen)
    assert lines[1].fix.startswith(fix)


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ([], 0),
        ([TransientError("no answer")], 1),
        ([TransientError("no answer"), PostgresUnavailable("refused")], 1),
        ([TransientError("no answer"), ConfigurationError("the topic is missing")], 2),
        ([ValueError("unforeseen")], 2),
    ],
)
def test_only_transient_errors_end_with_1(errors: list[BaseException], code: int) -> None:
    checks = [Check(f"thing.{number}", "a thing", raising(error)) for number, error in enumerate(errors)]
    assert exit_code(run(*checks, Check("then", "the next", sound, needs=("thing",)))) == code


def test_a_check_that_hangs_is_reported_and_ends_at_its_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "PATIENCE_S", 0.01)
    monkeypatch.setattr(running, "longest_s", lambda _settings: 0.1)
    released, noticed = Event(), list[str]()

    def hang(_settings: Settings) -> Iterator[Diagnosis]:
        yield ok("sound")
        released.wait(60)

    checks = (Check("thing", "a thing", hang, fix="look at it"), Check("other", "another", sound))
    lines = list(run_checks(checks, SETTINGS, noticed.append))
    released.set()
    assert [line.severity for line in lines[-2:]] == [Severity.ERROR, Severity.OK]
    assert "didn't end within" in lines[-2].message
    assert noticed == ["a thing: still checking, for 0 s at most"]


@pytest.mark.parametrize(
    ("failed", "need", "skipped"),
    [
        ("topic.wait.cleanup.policy", "topic.wait", True),
        ("topic.wait", "topic.wait", True),
        ("topic", "topic.wait", True),
        ("topic.dead_letter.missing", "topic.wait", False),
        ("topic.waiting", "topic.wait", False),
    ],
)
def test_a_check_is_skipped_if_one_it_needs_has_an_error(failed: str, need: str, skipped: bool) -> None:
    broken = Check(failed, "the topic", raising(ConfigurationError("broken")))
    then = Check("then", "the next", sound, needs=(need,))
    after = Check("after", "the one after", sound, needs=("then",))
    lines = run(broken, then, after)[2:]
    expected = [Severity.SKIPPED] * 2 if skipped else [Severity.OK] * 2
    assert [line.severity for line in lines] == expected
    if skipped:
        assert {line.message for line in lines} == {"the topic must be sound first"}


def test_ids_are_unique_and_needed_checks_come_first() -> None:
    ids: list[str] = []
    for check in all_checks(SERVICES):
        for need in check.needs:
            assert any(need == known or need.startswith(f"{known}.") for known in ids), (check.id, need)
        assert check.id not in ids
        ids.append(check.id)
