"""What libpq says of a failed connection: what the same settings will never get, and what may pass."""

from __future__ import annotations

import pytest
from pydantic import SecretStr

from wait_registry.postgres.connection import PostgresRefused, connect
from wait_registry.postgres.errors import fix_of_passing, refusal_of
from wait_registry.settings.postgres import PostgresSettings


@pytest.mark.parametrize(
    ("message", "fix"),
    [
        ('FATAL:  password authentication failed for user "waitreg"', "user and password"),
        ("FATAL:  SASL authentication failed", "user and password"),
        ('FATAL:  "trust" authentication failed', "user and password"),
        ("FATAL:  no such user: waitreg", "user and password"),
        ("FATAL:  no such database: registry", "database's name"),
        ("FATAL:  SSL required", "sslmode"),
        ("FATAL:  unsupported startup parameter: options", "options= and the like out"),
        ("fe_sendauth: no password supplied", "user and password"),
        ('FATAL:  role "waitreg" does not exist', "user and password"),
        ('FATAL:  database "registry" does not exist', "database's name"),
        (
            'FATAL:  no pg_hba.conf entry for host "10.0.0.1", user "waitreg", database "x", no encryption',
            "pg_hba.conf",
        ),
        ("SSL error: certificate verify failed", "sslrootcert"),
        ('server certificate for "db" does not match host name "localhost"', "sslrootcert"),
        ("SSL error: tlsv1 alert unknown ca", "refuses our certificate"),
        ("SSL error: sslv3 alert certificate expired", "refuses our certificate"),
        ("SSL error: tlsv13 alert certificate required", "refuses our certificate"),
        ("FATAL:  connection requires a valid client certificate", "refuses our certificate"),
        ('certificate present, but not private key file "client.key"', "sslkey"),
        ('private key file "client.key" has group or world access', "by its owner"),
        ('could not load private key file "client.key": key values mismatch', "belong to its certificate"),
        ('could not read certificate file "client.pem": no start line', "sslcert"),
        ("server does not support SSL, but SSL was required", "sslmode"),
        ('invalid sslmode value: "never"', "postgres.url"),
    ],
)
def test_a_refusal_comes_with_what_to_do(message: str, fix: str) -> None:
    refusal = refusal_of(f'connection to server at "127.0.0.1", port 5432 failed: {message}')
    assert refusal is not None
    assert fix in refusal.fix
    assert refusal.everywhere


@pytest.mark.parametrize(
    "message",
    [
        "Connection refused",
        "FATAL:  the database system is starting up",
        "FATAL:  sorry, too many clients already",
        "SSL error: unexpected eof while reading",
        "SSL error: tlsv1 alert internal error",
        "connection timeout expired",
        "failed to resolve host 'db'",
        "FATAL:  terminating connection due to administrator command",
    ],
)
def test_what_may_pass_is_no_refusal(message: str) -> None:
    assert refusal_of(message) is None


@pytest.mark.parametrize(
    ("message", "fix"),
    [
        ("FATAL:  sorry, too many clients already", "raise max_connections"),
        ("FATAL:  remaining connection slots are reserved for roles with the SUPERUSER attribute", "pg_stat_activity"),
        ('FATAL:  too many connections for role "sink"', "limit of this role"),
        ("FATAL:  the database system is in recovery mode", "wait until"),
        ("FATAL:  query_wait_timeout", "if it is paused"),
        ("FATAL:  no more connections allowed (max_client_conn)", "max_client_conn"),
        ('FATAL:  database "registry" is disabled', "in the pooler"),
        ("Connection refused", ""),
    ],
)
def test_what_may_pass_has_a_remedy_of_its_own(message: str, fix: str) -> None:
    assert fix in fix_of_passing(message)
    assert bool(fix_of_passing(message)) is bool(fix)


NOWHERE = 'FATAL:  database "registry" does not exist'


def failures(*attempts: tuple[str, str, str]) -> str:
    """Say what psycopg says of several attempts: host, address, failure each."""
    listed = "\n".join(f"- host: {host!r}, port: None, hostaddr: {at!r}: {message}" for host, at, message in attempts)
    return f"{attempts[-1][2]}\nMultiple connection attempts failed. All failures were:\n{listed}"


@pytest.mark.parametrize(
    ("attempts", "everywhere"),
    [
        ([("one", "10.0.0.1", NOWHERE), ("two", "10.0.0.2", NOWHERE)], True),
        ([("one", "10.0.0.1", "Connection refused\n\tIs it running?"), ("two", "10.0.0.2", NOWHERE)], False),
        ([("one", "10.0.0.1", NOWHERE), ("two", "10.0.0.2", "connection timeout expired")], False),
        # One host with two addresses, of which a local server has often but one.
        ([("localhost", "::1", "Connection refused"), ("localhost", "127.0.0.1", NOWHERE)], True),
    ],
)
def test_a_refusal_is_final_only_if_every_host_refuses(attempts: list[tuple[str, str, str]], everywhere: bool) -> None:
    refusal = refusal_of(failures(*attempts))
    assert refusal is not None
    assert refusal.everywhere is everywhere


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://me:hunt%zzer2@db/registry",
        "host=db password=hunt er2",
        "postgresql://me:hunter2@db/registry?no_such_option=1",
        "hunter2",
    ],
)
def test_an_address_that_cannot_be_read_is_refused_and_not_repeated(url: str) -> None:
    with pytest.raises(PostgresRefused, match=r"^postgres\.url can't be read: (missing|invalid) ") as raised:
        connect(PostgresSettings(url=SecretStr(url)))
    assert "hunt" not in str(raised.value)
    assert "er2" not in str(raised.value)
    assert raised.value.__cause__ is None


@pytest.mark.parametrize("host", ["localhost", "db,other"])
def test_the_rest_of_a_password_is_not_taken_for_a_host(host: str) -> None:
    with pytest.raises(PostgresRefused, match="Encode an @ in user or password as %40") as raised:
        connect(PostgresSettings(url=SecretStr(f"postgresql://user:s3cr@etPW@{host}/db"), connect_timeout_s=1))
    assert "etPW" not in str(raised.value)
