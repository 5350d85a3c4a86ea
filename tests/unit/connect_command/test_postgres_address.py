"""The address of Postgres for a Java client: every form of libpq, except what Java can't use."""

from __future__ import annotations

import pytest

from wait_registry.cli.connect.postgres_address import postgres_part
from wait_registry.errors import ConfigurationError
from wait_registry.settings.loading import load_settings


def part(name: str, url: str, seen_by_worker: str = "") -> str | None:
    return postgres_part(name, load_settings({"postgres.url": url, "connect.postgres_url": seen_by_worker}, env={}))


@pytest.mark.parametrize(
    ("url", "jdbc"),
    [
        ("postgresql://u:secret@db/shop", "jdbc:postgresql://db:5432/shop?sslmode=prefer"),
        ("host=db port=6000 dbname=shop user=u password=secret", "jdbc:postgresql://db:6000/shop?sslmode=prefer"),
        ("postgresql://u@[::1]:5433/shop", "jdbc:postgresql://[::1]:5433/shop?sslmode=prefer"),
        ("postgresql://u@a,b:6000/shop", "jdbc:postgresql://a:5432,b:6000/shop?sslmode=prefer"),
        ("host=a,b port=6000 dbname=shop user=u", "jdbc:postgresql://a:6000,b:6000/shop?sslmode=prefer"),
        ("postgresql://u@db/my%20%2Fshop", "jdbc:postgresql://db:5432/my%20%2Fshop?sslmode=prefer"),
        (
            "postgresql://u@db/shop?sslmode=verify-full&sslrootcert=/etc/ca.pem&target_session_attrs=read-write",
            "jdbc:postgresql://db:5432/shop?sslmode=verify-full&sslrootcert=%2Fetc%2Fca.pem&targetServerType=primary",
        ),
    ],
)
def test_the_jdbc_url_has_the_parts_of_libpqs(url: str, jdbc: str) -> None:
    assert part("jdbc_url", url) == f"{jdbc}&logServerErrorDetail=false"


def test_the_options_of_the_address_name_the_files_of_the_worker() -> None:
    url = "postgresql://u@db/shop?sslmode=verify-full&sslrootcert=/etc/ca.pem&sslkey=/etc/key.pk8"
    files = [part(name, url) for name in ("sslrootcert", "sslcert", "sslkey")]
    assert files == ["/etc/ca.pem", None, "/etc/key.pk8"]


def test_the_worker_may_have_another_address_and_role() -> None:
    urls = "postgresql://waitreg:secret@localhost:15432/shop", "postgresql://connect@postgres/shop"
    found = [part(name, *urls) for name in ("host", "port", "user", "database")]
    assert found == ["postgres", "5432", "connect", "shop"]


@pytest.mark.parametrize(
    ("url", "missing"),
    [
        ("postgresql://db/shop", "postgres.url names no user"),
        ("postgresql://u@db", "postgres.url names no database"),
        ("postgresql://u@/shop", "postgres.url names no host"),
        ("host=/run/postgresql dbname=shop user=u", "no Unix sockets"),
        ("postgresql://u:hunter2@db:port/shop", "can't be read"),
        ("postgresql://u:x@hunter2@db/shop", "can't be read"),
        ("host=a,b port=1,2,3 dbname=shop user=u password=hunter2", "can't be read"),
        ("nonsense hunter2", "can't be read"),
    ],
)
def test_an_address_that_java_cannot_use_is_refused_without_it(url: str, missing: str) -> None:
    with pytest.raises(ConfigurationError) as refused:
        part("jdbc_url", url)
    assert missing in str(refused.value)
    assert "hunter2" not in str(refused.value)


def test_several_hosts_are_refused_for_a_connector_that_takes_one() -> None:
    with pytest.raises(ConfigurationError, match="names 2 hosts, and this connector takes one"):
        part("host", "postgresql://u@a,b/shop")
