"""Log lines: one JSON object each, with the record they concern, and never a payload."""

from __future__ import annotations

import io
import json
import logging
import os
import re
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from tests.unit.processor.parts import HaltedClock
from wait_registry.logs import MAX_ERROR_MESSAGE_CHARS, configure_logging, record_fields
from wait_registry.repeats import RepeatFilter
from wait_registry.settings.runtime import LogFormat, LogSettings

log = logging.getLogger("shop.orders")


@pytest.fixture
def stream() -> Iterator[io.StringIO]:
    root = logging.getLogger()
    before, level = root.handlers[:], root.level
    yield io.StringIO()
    root.handlers[:] = before
    root.setLevel(level)
    logging.captureWarnings(False)


@pytest.fixture
def line(stream: io.StringIO) -> Callable[[], dict[str, Any]]:
    configure_logging(LogSettings(level="INFO"), "processor", stream)

    def only_line() -> dict[str, Any]:
        (text,) = stream.getvalue().splitlines()
        return dict(json.loads(text))

    return only_line


def test_a_line_says_when_how_bad_who_and_what(line: Callable[[], dict[str, Any]]) -> None:
    log.warning("paused after %d records", 3)
    seen = line()
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z", seen.pop("time"))
    text = "paused after 3 records"
    assert seen == {"level": "WARNING", "service": "processor", "logger": "shop.orders", "message": text}


def test_a_line_that_concerns_a_record_names_it(line: Callable[[], dict[str, Any]]) -> None:
    log.info("dead-lettered", extra=record_fields(wait_id="w", topic="orders", partition=0, offset=0))
    seen = line()
    assert (seen["wait_id"], seen["topic"], seen["partition"], seen["offset"]) == ("w", "orders", 0, 0)


def test_unknown_record_fields_are_omitted() -> None:
    assert record_fields(topic="orders") == {"topic": "orders"}


def test_an_error_comes_with_its_class_message_and_traceback(line: Callable[[], dict[str, Any]]) -> None:
    try:
        raise ValueError("no such order")
    except ValueError:
        log.exception("handler failed")
    seen = line()
    assert seen["error_class"] == "builtins.ValueError"
    assert seen["error_message"] == "no such order"
    assert seen["traceback"].endswith("ValueError: no such order")


def test_a_long_error_message_is_cut(line: Callable[[], dict[str, Any]]) -> None:
    try:
        raise ValueError("x" * 1_000_000)
    except ValueError:
        log.exception("handler failed")
    seen = line()
    assert len(seen["error_message"]) == MAX_ERROR_MESSAGE_CHARS
    assert len(json.dumps(seen)) < 50_000


def test_bytes_are_counted_and_not_shown(line: Callable[[], dict[str, Any]]) -> None:
    log.info("odd", extra={"body": b"card 4711", "headers": [("a", b"4711")]})
    seen = line()
    assert seen["body"] == "<9 bytes>"
    assert "4711" not in json.dumps(seen)


def test_a_field_cannot_forge_the_line_s_own(line: Callable[[], dict[str, Any]]) -> None:
    log.info("true", extra={"service": "other", "level": "DEBUG"})
    seen = line()
    assert (seen["service"], seen["level"]) == ("processor", "INFO")


@pytest.mark.parametrize("text", ["two\nlines", "lone \udce4 surrogate", "nul \x00", "ünï"], ids=ascii)
def test_any_text_makes_one_readable_line(line: Callable[[], dict[str, Any]], stream: io.StringIO, text: str) -> None:
    # Once more, now that pytest has added its own handler: a report with half a character can't be sent to its master.
    configure_logging(LogSettings(level="INFO"), "processor", stream)
    log.info("topic %s", text, extra=record_fields(topic=text))
    assert line()["message"].startswith("topic ")


def test_numbers_of_any_size_are_kept(line: Callable[[], dict[str, Any]]) -> None:
    log.info("big", extra={"count": 2**70, "rate": 0.5})
    assert (line()["count"], line()["rate"]) == (str(2**70), 0.5)


def test_lines_below_the_level_are_not_written(stream: io.StringIO) -> None:
    configure_logging(LogSettings(level="ERROR"), "sink", stream)
    log.warning("quiet")
    assert stream.getvalue() == ""


def test_configuring_twice_writes_each_line_once(stream: io.StringIO) -> None:
    configure_logging(LogSettings(), "sink", io.StringIO())
    configure_logging(LogSettings(), "sink", stream)
    log.info("once")
    assert len(stream.getvalue().splitlines()) == 1


def test_the_console_format_is_for_people(stream: io.StringIO) -> None:
    configure_logging(LogSettings(format=LogFormat.CONSOLE), "sink", stream)
    try:
        raise ValueError("boom")
    except ValueError:
        log.exception("failed", extra=record_fields(topic="orders", offset=7))
    first, *rest = stream.getvalue().splitlines()
    assert first.endswith("ERROR   sink shop.orders: failed topic=orders offset=7")
    assert rest[-1] == "ValueError: boom"


@pytest.mark.parametrize(("given", "begins"), [("auto", "20"), ("json", "{")])
def test_a_terminal_gets_lines_for_people_unless_json_is_set(stream: io.StringIO, given: str, begins: str) -> None:
    ours, theirs = os.openpty()
    with os.fdopen(theirs, "w") as terminal:
        configure_logging(LogSettings(format=LogFormat(given)), "sink", terminal)
        log.info("ready")
        assert os.read(ours, 100).decode().startswith(begins)
    os.close(ours)


def test_no_control_character_reaches_a_terminal(stream: io.StringIO) -> None:
    configure_logging(LogSettings(format=LogFormat.CONSOLE), "sink", stream)
    try:
        raise ValueError("\x1b]0;title\x07")
    except ValueError:
        log.exception("refused \x1b[2J\u202e", extra={"topic": "\x9b1m"})
    for shown in ("refused \\x1b[2J\\u202e topic=\\x9b1m\n", "ValueError: \\x1b]0;title\\x07\n"):
        assert shown in stream.getvalue()
    assert not any(sign in stream.getvalue() for sign in "\x1b\x07\x9b\u202e")


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("librdkafka", logging.ERROR, __file__, 1, text, None, None)


def test_a_repeated_message_passes_once_per_interval_with_a_count() -> None:
    clock = HaltedClock()
    repeats = RepeatFilter(30, clock.monotonic)
    assert repeats.filter(record("refused (after 1ms)"))
    assert not any(repeats.filter(record(f"refused (after {n}ms)")) for n in range(5))
    clock.now_s += 30
    again = record("refused (after 9ms)")
    assert repeats.filter(again)
    assert again.getMessage() == "refused (after 9ms) (and 5 times more since)"


def test_another_message_passes_at_once() -> None:
    repeats = RepeatFilter(30, HaltedClock().monotonic)
    assert repeats.filter(record("refused"))
    assert repeats.filter(record("timed out"))
    assert all(repeats.filter(record(f"answered with status {status}")) for status in (500, 503, 404))


def test_messages_are_not_remembered_without_limit() -> None:
    repeats = RepeatFilter(30, HaltedClock().monotonic)
    for number in range(5_000):
        repeats.filter(record("x" * number))
    assert len(repeats.seen) <= 1_000
