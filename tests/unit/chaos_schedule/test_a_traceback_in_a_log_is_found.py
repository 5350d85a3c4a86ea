"""Whether a log tells of an error that nobody foresaw: as services write their logs, and as an end is printed."""

from __future__ import annotations

import io
import logging
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from tests.chaos.endings import unexpected_endings
from tests.chaos.history.history import FaultDone
from tests.chaos.service import Service
from tests.chaos.traces import LOST_JVM_MS, traces
from wait_registry.clock import SystemClock
from wait_registry.logs import MAX_TRACEBACK_CHARS, configure_logging
from wait_registry.settings.runtime import LogSettings

Written = tuple[logging.Logger, io.StringIO]


@pytest.fixture
def written() -> Iterator[Written]:
    """A logger as a service of a run has it, and what it writes."""
    root, stream = logging.getLogger(), io.StringIO()
    handlers, level = root.handlers[:], root.level
    configure_logging(LogSettings(), "sweeper", stream)
    yield logging.getLogger("sweeper.partition_sweep"), stream
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.captureWarnings(False)


def lines_of(
    written: Written, error: str = "boom", level: int = logging.ERROR, message: str = "partition 3 failed"
) -> Sequence[str]:
    log, stream = written
    try:
        raise ZeroDivisionError(error)
    except ZeroDivisionError:
        log.log(level, message, exc_info=True)
    log.warning("broker is away")
    return stream.getvalue().splitlines()


@pytest.mark.parametrize("level", [logging.INFO, logging.WARNING, logging.ERROR])
def test_one_that_is_logged_is_found_whatever_its_level(written: Written, level: int) -> None:
    (found,) = traces("sweeper-1", lines_of(written, level=level), [])
    assert "partition 3 failed" in found


def test_one_that_is_too_long_for_its_beginning_is_found(written: Written) -> None:
    assert len(list(traces("sweeper-1", lines_of(written, "x" * MAX_TRACEBACK_CHARS), []))) == 1


def test_one_that_is_printed_by_what_ends_a_process_is_found() -> None:
    assert len(list(traces("downstream", ["fine", "Traceback (most recent call last):", "  File"], []))) == 1


def test_one_in_a_line_that_a_kill_has_torn_is_found(written: Written) -> None:
    torn = [line[:-20] for line in lines_of(written)]
    assert len(list(traces("sweeper-1", torn, []))) == 1


def test_what_only_speaks_of_one_is_none() -> None:
    quoted = '{"time":"2026-01-01T00:00:00.000Z","level":"INFO","message":"see Traceback (most recent call last)"}'
    assert list(traces("sink-1", ["all is well", quoted], [])) == []


@pytest.mark.parametrize(
    ("name", "target", "ago_ms", "fine"),
    [
        ("kill_jvm", "sink-1", 0, True),
        ("kill_jvm", "sink-1", LOST_JVM_MS - 5_000, True),
        ("kill_jvm", "sink-1", LOST_JVM_MS + 5_000, False),
        ("kill_jvm", "sink-1", -5_000, False),
        ("kill_jvm", "sink-2", 0, False),
        ("kill", "sink-1", 0, False),
    ],
)
def test_a_sink_may_tell_of_the_jvm_that_was_taken_from_it(
    written: Written, name: str, target: str, ago_ms: int, fine: bool
) -> None:
    at_ms = SystemClock().now_ms() - ago_ms
    fault = FaultDone(name, target, at_ms, at_ms, "JVM 7 is gone")
    assert (list(traces("sink-1", lines_of(written), [fault])) == []) is fine


def test_a_standby_may_find_out_late_that_its_jvm_was_taken(written: Written) -> None:
    began_ms = SystemClock().now_ms() - LOST_JVM_MS - 60_000
    lines = lines_of(written, message="Exception while sending command.")
    lost = FaultDone("kill_jvm", "sink-2", began_ms, began_ms, "JVM 7 is gone")
    assert list(traces("sink-2", lines, [lost])) == []
    assert len(list(traces("sink-1", lines, [lost]))) == 1
    assert len(list(traces("sink-2", lines, []))) == 1


def test_a_run_whose_service_logged_one_is_not_kept(written: Written, tmp_path: Path) -> None:
    service = Service("sweeper-1", ["sweeper"], tmp_path, {})
    service.log.write_text("\n".join(lines_of(written)))
    (ending,) = unexpected_endings([service], [])
    assert "1 tracebacks" in str(ending) and "partition 3 failed" in str(ending)
    service.log.write_text("all is well\n")
    assert unexpected_endings([service], []) == []
