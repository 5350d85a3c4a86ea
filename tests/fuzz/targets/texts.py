"""Readers of text: times, commit metadata, headers in JSON, settings files."""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.inputs import vectors
from tests.fuzz.target import Target
from wait_registry.errors import ConfigurationError, DataError
from wait_registry.kafka.cluster import TopicIdentity
from wait_registry.kafka.commit_metadata import CommitMetadata, decode_metadata
from wait_registry.records.headers import Headers, decode_headers_json, encode_headers_json
from wait_registry.records.times import format_utc_ms, parse_utc_ms
from wait_registry.settings.loading import load_settings
from wait_registry.settings.root import Settings

SETTINGS_FILE = Path(tempfile.gettempdir()) / f"waitreg-fuzz-{os.getpid()}.toml"
SECRET = "s3cr3t-word"


def read_time(data: bytes) -> int | None:
    try:
        return parse_utc_ms(data.decode("utf-8", "replace"))
    except DataError as error:
        assert len(str(error)) < 1000, "a refusal that quotes its input"
        return None


def check_time(data: bytes) -> None:
    """Any text is a time or refused; what is written reads back."""
    time_ms = read_time(data)
    if time_ms is not None:
        assert parse_utc_ms(format_utc_ms(time_ms)) == time_ms, "not as it was written"


def times() -> Iterator[bytes]:
    for text in vectors("times", "parse"):
        yield text.encode()
    # The borders of the calendar, and of what other clients can write.
    yield from (b"294277-01-01T00:00:00Z", b"infinity", b"0001-01-01T00:00:00+00:01", b"9999-12-31T23:59:59-00:01")


def read_metadata(data: bytes) -> CommitMetadata | None:
    return decode_metadata(data.decode("utf-8", "replace"))


def check_metadata(data: bytes) -> None:
    """A client that may commit for a group may write any text into the metadata of its commits."""
    metadata = read_metadata(data)
    if metadata is None:
        return
    again = decode_metadata(metadata.encode())
    assert again is not None and again.wait_topic == metadata.wait_topic, "another topic"
    assert again.input_topic_id == metadata.input_topic_id, "another input topic"


def commit_metadata() -> Iterator[bytes]:
    topic = TopicIdentity("waitreg.wait", "abcdefghijklmnopqrstuv", 8)
    yield CommitMetadata(topic).encode().encode()
    yield CommitMetadata(topic, "abcdefghijklmnopqrstuv").encode().encode()
    yield b"waitreg1;wait;id;8;ttl_s=1e400;skew_allowance_s=nan;later=1"


def read_headers(data: bytes) -> Headers | None:
    try:
        return decode_headers_json(data)
    except DataError as error:
        assert len(str(error)) < 500, "a refusal that quotes its input"
        return None


def check_headers(data: bytes) -> None:
    """Any bytes are headers or refused, and what was read is written back."""
    headers = read_headers(data)
    if headers is not None:
        encoded = encode_headers_json(headers)
        assert decode_headers_json(encoded) == headers, "not as it was written"
        names = [text for pair in json.loads(encoded) for text in pair if isinstance(text, str)]
        assert all("\0" not in name for name in names), "what jsonb doesn't hold"


def headers_json() -> Iterator[bytes]:
    for given in vectors("headers_json", "decode"):
        yield given.encode("latin-1")
    yield b"[" * 1100 + b"]" * 1100
    yield b'{"a":' * 200 + b"1" + b"}" * 200
    yield b'{"a":"1","a":null,"b":"\\u00e9","a":"2"}'
    yield b'[["\\ud800","AA=="]]'
    yield b'[[{"base64":"7aCA"},"AB=="]]'
    yield b"[1e400,1" + b"0" * 400 + b"]"


def read_settings(data: bytes) -> Settings | None:
    """Any text is settings, or refused with what to fix."""
    SETTINGS_FILE.write_bytes(data)
    try:
        return load_settings(config_file=SETTINGS_FILE, env={"WAITREG_KAFKA__SECURITY__PASSWORD": SECRET})
    except ConfigurationError as error:
        assert str(error) and SECRET not in str(error), "a refusal that says nothing, or too much"
        return None
    finally:
        SETTINGS_FILE.unlink()


def settings_files() -> Iterator[bytes]:
    yield b'[kafka]\nbootstrap_servers = "localhost:9092"\n[kafka.librdkafka]\nsocket.timeout.ms = 1\n'
    yield b'[processor]\ntopics = ["orders"]\ngroup = "billing"\nhandler_timeout_s = 1e3\n[log]\nformat = "json"\n'
    yield b'postgres.url = "postgresql://u:p@h/d"\nwait.partitions = 99999999999999999999\nwait.topic = "\\u0000"\n'
    yield b'kafka.security.password_file = "missing"\n[spark.conf]\n"a.b" = true\nx = 2026-11-21T02:20:00Z\n'


METADATA_WORDS = (b"waitreg1;", b";input_topic_id=", "\u0663".encode())
JSON_WORDS = (*rb'[[" ",null] {"base64":" AA== \u0000 \ud83d\ude00 1e999 null'.split(), b"\xef\xbb\xbf")
TOML_WORDS = (
    b"[kafka]\n",
    b"[processor]\n",
    b"[[wait]]\n",
    b"_file = ",
    b"max_in_flight = ",
    *b'nan -inf 0x10 """'.split(),
)
TARGETS = (
    Target("times", read_time, check_time, times, (b"T00:00", b"Z", b"+18:00", b"-00:00:01", b"[UTC]", b"-02-29T")),
    Target("commit_metadata", read_metadata, check_metadata, commit_metadata, METADATA_WORDS, share=0.3),
    Target("headers_json", read_headers, check_headers, headers_json, JSON_WORDS),
    Target("settings_file", read_settings, read_settings, settings_files, TOML_WORDS, share=0.6),
)
