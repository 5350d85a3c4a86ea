"""A Postgres that asks who one is: TLS, certificates of servers and clients, passwords by SCRAM.

The embedded one is built without TLS. A front does it and looks at the clients' certificates, and the server asks for
the passwords; libpq sees no difference.
"""

from __future__ import annotations

import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from tests.support.certificates import Authority, Certificate
from tests.support.own_postgres import own_postgres
from tests.support.tls_front import TlsFront
from waitreg.local.ports import LOOPBACK
from waitreg.local.postgres import DATABASE

# The operator comes in as they like, all others with a password.
_ACCESS = f"""
host    all postgres       {LOOPBACK}/32 trust
host    all all            {LOOPBACK}/32 scram-sha-256
"""


@dataclass(frozen=True, slots=True)
class SecuredPostgres:
    """One running server."""

    authority: Authority
    administrator: str
    """The address without authentication, where everything is allowed."""
    port: int
    """Where those come in who are asked."""

    def add_login(self, name: str, member_of: str) -> str:
        """Make a login role, a member of another, and return its password."""
        password = f"pg-{secrets.token_hex(8)}"
        make = sql.SQL("create role {} login password {} in role {}")
        with psycopg.connect(self.administrator, autocommit=True) as connection:
            connection.execute(make.format(sql.Identifier(name), sql.Literal(password), sql.Identifier(member_of)))
        return password

    def url(
        self,
        user: str,
        password: str,
        certificate: Certificate | None = None,
        *,
        host: str = LOOPBACK,
        authority: Authority | None = None,
        database: str = DATABASE,
    ) -> str:
        """Return an address with sslmode=verify-full.

        Args:
            user, password: who one is.
            certificate: shown to the server.
            host: another name than the one that the server's certificate is for.
            authority: trusted in place of ours.
            database: to connect to.
        """
        options = {"sslmode": "verify-full", "sslrootcert": str((authority or self.authority).certificate_file)}
        if certificate is not None:
            options |= {"sslcert": str(certificate.certificate_file), "sslkey": str(certificate.key_file)}
        query = "&".join(f"{name}={quote(value, safe='')}" for name, value in options.items())
        return f"postgresql://{user}:{password}@{host}:{self.port}/{database}?{query}"


@contextmanager
def secured_postgres_in(folder: Path) -> Iterator[SecuredPostgres]:
    """Run one in a folder that the server's account can reach when we are root; its certificates go there too."""
    authority = Authority(folder, "postgres-authority")
    certificate = authority.issue("postgres", f"IP:{LOOPBACK}")
    with own_postgres(folder) as server, TlsFront(server.port, certificate, authority) as front:
        (server.data / "pg_hba.conf").write_text(_ACCESS, "ascii")
        with psycopg.connect(server.url, autocommit=True) as connection:
            connection.execute("select pg_reload_conf()")
        yield SecuredPostgres(authority, server.url, front.port)
