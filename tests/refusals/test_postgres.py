"""A Postgres that refuses a service, or has no room: a sentence without the password, and exit code 2 or patience.

The processor isn't concerned: it never talks to Postgres.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import psycopg
import pytest
from pydantic import SecretStr

from sweeper.result import SweepResult
from tests.conftest import SettingsFactory
from tests.integration.sink.conftest import StartSink
from tests.integration.sweeper.scenario import Scenario, sweeper_of
from tests.support.certificates import Authority
from tests.support.command import run_waitreg
from tests.support.database import Database
from tests.support.naming import Names
from tests.support.own_postgres import own_postgres, reachable
from tests.support.secured_postgres import SecuredPostgres
from tests.support.settings import with_postgres
from tests.support.tls_front import TlsFront
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.postgres.connection import PostgresRefused, PostgresUnavailable, connect
from wait_registry.settings.postgres import PostgresSettings
from wait_registry.settings.tree import Settings
from waitreg.local.postgres import EmbeddedPostgres

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

SECRET = "hunter2-not-the-password"
PASSWORD = "s3cret"


@pytest.fixture(scope="module")
def asking() -> Iterator[EmbeddedPostgres]:
    """A server that asks for passwords, with a user that has one."""
    with own_postgres() as server:
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute(f"create role registry login superuser password '{PASSWORD}'".encode())
            (server.data / "pg_hba.conf").write_text("host all all all scram-sha-256\n")
            connection.execute("select pg_reload_conf()")
        yield server


def url(server: EmbeddedPostgres, password: str = PASSWORD, database: str = "postgres", options: str = "") -> str:
    return f"postgresql://registry:{password}@127.0.0.1:{server.port}/{database}{options}"


@pytest.mark.parametrize(
    ("password", "database", "options", "said"),
    [
        (SECRET, "postgres", "", r"password authentication failed for user \"registry\"\. Check user and password in"),
        (
            PASSWORD,
            "nowhere",
            "",
            r"database \"nowhere\" does not exist\. Correct the database's name in postgres\.url",
        ),
        (PASSWORD, "postgres", "?sslmode=require", r"server does not support SSL.*lower sslmode in postgres\.url"),
        (PASSWORD, "postgres", "?sslmode=never", r"invalid sslmode value.*Correct postgres\.url"),
    ],
)
def test_a_refused_connection_names_the_fix(
    password: str, database: str, options: str, said: str, asking: EmbeddedPostgres
) -> None:
    with pytest.raises(PostgresRefused, match=said) as raised:
        connect(PostgresSettings(url=SecretStr(url(asking, password, database, options))))
    assert password not in str(raised.value)
    assert raised.value.exit_code == 2


def test_one_refusing_and_one_unavailable_host_is_an_outage(asking: EmbeddedPostgres) -> None:
    for hosts in (f"127.0.0.1:{asking.port},127.0.0.1:1", f"127.0.0.1:1,127.0.0.1:{asking.port}"):
        address = f"postgresql://registry:{PASSWORD}@{hosts}/nowhere"
        with pytest.raises(PostgresUnavailable, match=r"\"nowhere\" does not exist(.|\n)*Correct the database's name"):
            connect(PostgresSettings(url=SecretStr(address)))


def test_a_later_refusal_of_postgres_is_waited_out(settings_for: SettingsFactory, asking: EmbeddedPostgres) -> None:
    address = url(asking, "fickle").replace("registry", "fickle")
    settings = with_postgres(settings_for(), address)
    with connect(with_postgres(settings, url(asking)).postgres, autocommit=True) as owner:
        owner.execute("create role fickle login password 'fickle'")
        connect(settings.postgres).close()
        owner.execute("alter role fickle nologin")
        with pytest.raises(
            PostgresUnavailable, match=r"not permitted to log in(.|\n)*before, .*Check user and password"
        ):
            connect(settings.postgres)
        swept = sweeper_of(settings).run_once()
        assert swept.result is SweepResult.FAILED
        assert "not permitted to log in" in swept.reason


Wrong = Callable[[SecuredPostgres, str, str, Path], str]


def with_shown_key(server: SecuredPostgres, user: str, password: str, folder: Path) -> str:
    own = server.authority.issue(f"{user}-shown")
    own.key_file.chmod(0o644)
    return server.url(user, password, own)


# How the address is made wrong, from the server, a user, its password and a folder for files; and the sentence.
CERTIFICATES: dict[str, tuple[Wrong, str]] = {
    "another authority": (
        lambda server, user, password, folder: server.url(user, password, authority=Authority(folder, "another")),
        r"certificate verify failed.*sslrootcert",
    ),
    "another host": (
        lambda server, user, password, _: server.url(user, password, host="localhost"),
        r"does not match host name.*issued for that host",
    ),
    "foreign client certificate": (
        lambda server, user, password, folder: server.url(user, password, Authority(folder, "foreign").issue(user)),
        r"alert.*The server refuses our certificate",
    ),
    "client certificate out of date": (
        lambda server, user, password, _: server.url(
            user, password, server.authority.issue(f"{user}-of-old", expired=True)
        ),
        r"alert.*The server refuses our certificate.*be valid now",
    ),
    "key of another certificate": (
        lambda server, user, password, _: server.url(
            user,
            password,
            replace(server.authority.issue(user), key_file=server.authority.issue(f"{user}-other").key_file),
        ),
        r"key values mismatch.*a key must belong to its certificate",
    ),
    "key that others may read": (with_shown_key, r"has group or world access.*readable by its owner alone"),
}


@pytest.mark.parametrize("wrong", CERTIFICATES)
def test_certificates_are_checked_on_both_sides(
    wrong: str, secured_postgres: SecuredPostgres, names: Names, settings_for: SettingsFactory, spark: SparkSession,
    tmp_path: Path,
) -> None:  # fmt: skip
    make, said = CERTIFICATES[wrong]
    user = f"{names.prefix}_registry"
    password = secured_postgres.add_login(user, "pg_monitor")
    right = with_postgres(settings_for(), secured_postgres.url(user, password, secured_postgres.authority.issue(user)))
    with connect(right.postgres) as connection:
        assert connection.execute("select 1").fetchone() == (1,)
    settings = with_postgres(right, make(secured_postgres, user, password, tmp_path))
    both_refuse(settings, spark, said, password)


def test_a_servers_expired_certificate_is_refused(asking: EmbeddedPostgres, secured_postgres: SecuredPostgres) -> None:
    old = secured_postgres.authority.issue("postgres-of-old", "IP:127.0.0.1", expired=True)
    options = f"?sslmode=verify-full&sslrootcert={secured_postgres.authority.certificate_file}"
    with TlsFront(asking.port, old) as front, pytest.raises(PostgresRefused, match=r"verify failed.*be valid now"):
        connect(PostgresSettings(url=SecretStr(f"postgresql://registry@127.0.0.1:{front.port}/postgres{options}")))


def test_sink_and_sweeper_end_with_2_and_a_sentence(
    settings_for: SettingsFactory, topics: Topics, asking: EmbeddedPostgres, spark: SparkSession, here: Path
) -> None:
    settings = with_postgres(settings_for(), url(asking, SECRET))
    topics.create_own(settings)
    both_refuse(settings, spark, "password authentication failed", SECRET)
    ended = run_waitreg(here, "sweeper", "--once", settings=settings)
    assert ended.code == 2, ended.errors
    assert "Check user and password in postgres.url" in ended.errors
    assert SECRET not in ended.errors + ended.output
    assert "Traceback" not in ended.errors


def both_refuse(settings: Settings, spark: SparkSession, said: str, secret: str) -> None:
    """Run sink and sweeper, which must both end with this refusal."""
    from sink.service import SinkService

    for run in (SinkService(settings, spark, once=True).run, sweeper_of(settings).run_once):
        with pytest.raises(PostgresRefused, match=said) as raised:
            run()
        assert secret not in str(raised.value)


BLOCK = 65_536
HOUR_MS = 3_600_000


@contextmanager
def small_disk(folder: Path, size_mb: int) -> Iterator[Path]:
    """Mount a file system of this size; skips the test where that isn't allowed: only root may."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", f"size={size_mb}m,mode=0755", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(command, capture_output=True, check=False).returncode != 0:
        pytest.skip("a full disk can only be had by root with the right to mount a tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "-l", str(folder)], check=True)


def fill(disk: Path) -> Path:
    """Leave no room on a disk and return the file that takes it."""
    ballast = disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(b"x" * BLOCK) == BLOCK:
                pass
            while file.write(b"x"):
                pass
        except OSError:
            pass
    return ballast


def registered(at: Scenario, first: int, count: int) -> set[str]:
    records = [at.wait_record(n, expires_in_ms=HOUR_MS, value=b"v" * 2_000) for n in range(first, first + count)]
    return {item.wait_id for item in at.register(records)}


def in_view(settings: Settings, url: str) -> set[str]:
    try:
        with Database(url).connect(settings) as connection:
            return {row[0] for row in connection.execute("select wait_expiration_uuid from wait")}
    except psycopg.OperationalError:
        return set()


@pytest.mark.fault("F99")
@pytest.mark.timeout(400)
def test_no_room_in_postgres_is_waited_out_and_the_view_is_exact_again(
    topics: Topics, start_sink: StartSink, tmp_path: Path,
    caplog: pytest.LogCaptureFixture,
) -> None:  # fmt: skip
    with small_disk(reachable(tmp_path) / "disk", 160) as disk, own_postgres(disk) as server:
        overrides = {
            "wait.partitions": 1,
            "wait.skew_allowance_s": 0,
            "sink.restart_backoff_max_s": 1,
            "sink.poll_interval_s": 0.2,
        }
        at = Scenario.made(topics, Database(server.url), overrides)
        settings = at.settings
        sink = start_sink(settings)
        sink.wait_ready()
        known = registered(at, 0, 3)
        wait_until(lambda: in_view(settings, server.url) == known, 60, "the first rows")
        ballast = fill(disk)
        known |= registered(at, 3, 2_000)
        wait_until(lambda: "No space left" in caplog.text or not server.running, 90, "a line that says why")
        assert not sink.ended
        ballast.unlink()
        server.start()  # Postgres itself ends where it can't write its log
        wait_until(lambda: in_view(settings, server.url) == known, 90, "the rows of meanwhile")
        sink.stop()
