"""A settings file of any text: settings, or a refusal that says what to fix."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.fuzz.target import Target
from wait_registry.errors import ConfigurationError
from wait_registry.settings.loading import load_settings
from wait_registry.settings.root import Settings

FILE = Path(tempfile.gettempdir()) / f"waitreg-fuzz-{os.getpid()}.toml"
SECRET = "s3cr3t-word"


def _read(data: bytes) -> Settings | None:
    FILE.write_bytes(data)
    try:
        return load_settings(config_file=FILE, env={"WAITREG_KAFKA__SECURITY__PASSWORD": SECRET})
    except ConfigurationError as error:
        assert str(error) and SECRET not in str(error), "a refusal that says nothing, or too much"
        return None
    finally:
        FILE.unlink()


def _seeds() -> Iterator[bytes]:
    yield b'[kafka]\nbootstrap_servers = "localhost:9092"\n[kafka.librdkafka]\nsocket.timeout.ms = 1\n'
    yield b'[processor]\ntopics = ["orders"]\ngroup = "billing"\nhandler_timeout_s = 1e3\n[log]\nformat = "json"\n'
    yield b'postgres.url = "postgresql://u:p@h/d"\nwait.partitions = 99999999999999999999\nwait.topic = "\\u0000"\n'
    yield b'kafka.security.password_file = "missing"\n[spark.conf]\n"a.b" = true\nx = 2026-11-21T02:20:00Z\n'


TARGET = Target(
    "settings_file",
    _read,
    _read,
    _seeds,
    (b"[kafka]\n", b"[processor]\n", b"_file = ", b"[[wait]]\n", b"nan", b"-inf", b"0x10", b'"""', b"max_in_flight = "),
    share=0.6,
)
