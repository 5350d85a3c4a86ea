"""A source gets the certificates that Postgres' address names, as the sinks do in their URL, and refuses a stranger."""

from __future__ import annotations

import urllib.error
from collections.abc import Callable, Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from tests.conftest import SettingsFactory
from tests.integration.connect.exporting import Exporting
from tests.integration.connect.source_family import SourceFamily
from tests.support.certificates import Authority
from tests.support.connect_connectors import Connectors
from tests.support.connect_rest import ConnectRest
from tests.support.naming import Names
from tests.support.stack import Stack
from tests.support.tls_front import TlsFront
from tests.support.topics import Topics
from wait_registry.local.connect_worker import ConnectWorker

pytestmark = pytest.mark.parametrize("source_family", ["debezium"], indirect=True)

Trusting = Callable[[Authority], Exporting]


@pytest.fixture
def ours(tmp_path: Path) -> Authority:
    """Who has signed the certificate of Postgres."""
    return Authority(tmp_path, "ours")


@pytest.fixture
def trusting(
    ours: Authority,
    source_family: SourceFamily,
    connect: ConnectWorker,
    names: Names,
    topics: Topics,
    prepared: SettingsFactory,
    stack: Stack,
) -> Iterator[Trusting]:
    """Makes sources that find Postgres behind TLS and trust one authority."""
    server = urlsplit(stack.postgres_url)
    assert server.port is not None
    with TlsFront(server.port, ours.issue("database", "IP:127.0.0.1")) as front:
        made: list[Exporting] = []

        def make(authority: Authority) -> Exporting:
            checked = f"sslmode=verify-full&sslrootcert={authority.certificate_file}"
            seen = f"postgresql://{server.username}@127.0.0.1:{front.port}{server.path}?{checked}"
            settings = prepared({"connect.settle_s": 0, "connect.postgres_url": seen})
            made.append(Exporting(source_family, Connectors(ConnectRest(connect.url), names), topics, settings))
            return made[-1]

        yield make
        for own in made:
            own.close()


def test_the_authority_that_the_address_names_is_trusted(ours: Authority, trusting: Trusting) -> None:
    exporting = trusting(ours)
    exporting.expire(1, 1)
    exporting.start_source()
    assert exporting.wait_exported(1) == [1]


def test_another_authoritys_certificate_is_refused(tmp_path: Path, trusting: Trusting) -> None:
    exporting = trusting(Authority(tmp_path, "foreign"))
    with pytest.raises(urllib.error.HTTPError) as refused:
        exporting.start_source()
    assert refused.value.code == 400
    assert "SSL" in refused.value.read().decode()
