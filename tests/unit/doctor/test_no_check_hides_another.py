"""A check that fails, hangs or breaks is one line; the others say what they have to say."""

from __future__ import annotations

from collections.abc import Iterator
from threading import Event

import pytest

from wait_registry.cli.check_report import exit_code
from wait_registry.cli.checks import check as running
from wait_registry.cli.checks.catalogue import SERVICES, all_checks
from wait_registry.cli.checks.check import Check, Look, run_checks
from wait_registry.diagnosis import Diagnosis, Severity
from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.postgres.connection import PostgresUnavailable
from wait_registry.settings.root import Settings

SETTINGS = Settings()


def sound(_settings: Settings) -> Iterator[Diagnosis]:
    yield Diagnosis("a thing", Severity.OK, "sound")


def raising(error: BaseException) -> Look:
    def look(_settings: Settings) -> Iterator[Diagnosis]:
        yield Diagnosis("the first part", Severity.OK, "sound")
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
def test_what_is_raised_is_a_line_and_the_next_check_runs(error: BaseException, seen: str, fix: str) -> None:
    lines = run(Check("thing", "a thing", raising(error), fix="make it"), Check("other", "another", sound))
    assert [line.severity for line in lines] == [Severity.OK, Severity.ERROR, Severity.OK]
    assert (lines[1].id, lines[1].subject, lines[1].message) == ("thing", "a thing", seen)
    assert lines[1].fix.startswith(fix)


@pytest.mark.parametrize(
    ("errors", "code"),
    [
        ([], 0),
        ([TransientError("no answer")], 1),
        ([TransientError("no answer"), PostgresUnavailable("nobody there")], 1),
        ([TransientError("no answer"), ConfigurationError("the topic is missing")], 2),
        ([ValueError("unforeseen")], 2),
    ],
)
def test_only_what_may_pass_by_itself_ends_with_1(errors: list[BaseException], code: int) -> None:
    checks = [Check(f"thing.{number}", "a thing", raising(error)) for number, error in enumerate(errors)]
    assert exit_code(run(*checks, Check("then", "the next", sound, needs=("thing",)))) == code


def test_a_check_that_hangs_ends_with_its_limit_and_says_so_early(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(running, "PATIENCE_S", 0.01)
    monkeypatch.setattr(running, "longest_s", lambda _settings: 0.1)
    released, told = Event(), list[str]()

    def hang(_settings: Settings) -> Iterator[Diagnosis]:
        yield Diagnosis("the first part", Severity.OK, "sound")
        released.wait(60)

    checks = (Check("thing", "a thing", hang, fix="look at it"), Check("other", "another", sound))
    lines = list(run_checks(checks, SETTINGS, told.append))
    released.set()
    assert [line.severity for line in lines[-2:]] == [Severity.ERROR, Severity.OK]
    assert "didn't end within" in lines[-2].message
    assert told == ["a thing: still checking, for 0 s at most"]


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
def test_a_check_is_skipped_only_when_what_it_needs_is_unsound(failed: str, need: str, skipped: bool) -> None:
    broken = Check(failed, "the topic", raising(ConfigurationError("broken")))
    then = Check("then", "the next", sound, needs=(need,))
    after = Check("after", "the one after", sound, needs=("then",))
    lines = run(broken, then, after)[2:]
    expected = [Severity.SKIPPED] * 2 if skipped else [Severity.OK] * 2
    assert [line.severity for line in lines] == expected
    if skipped:
        assert {line.message for line in lines} == {"the topic must be sound first"}


def test_ids_are_unique_and_what_is_needed_is_looked_at_before() -> None:
    ids: list[str] = []
    for check in all_checks(SERVICES):
        for need in check.needs:
            assert any(need == known or need.startswith(f"{known}.") for known in ids), (check.id, need)
        assert check.id not in ids
        ids.append(check.id)
