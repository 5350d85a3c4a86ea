"""A Postgres that asks who one is: TLS, certificates of servers and clients, passwords by SCRAM.

Where a Postgres with TLS is installed it is that one, with `ssl=on`. The embedded one is built without: there a front
does TLS and looks at the clients' certificates, and the server asks for the passwords; libpq sees no difference.
"""

from __future__ import annotations

import os
import secrets
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from urllib.parse import quote

import psycopg
from psycopg import sql

from tests.support.certificates import Authority, Certificate
from tests.support.tls_front import TlsFront
from tests.support.waiting import wait_until
from wait_registry.local.ports import LOOPBACK, free_ports
from wait_registry.local.postgres import DATABASE, EmbeddedPostgres

# The operator comes in as they like; all others by TLS with a password, and who is named so with a certificate too.
CERTIFIED = "certified"
_ACCESS = f"""
host    all postgres       {LOOPBACK}/32 trust
hostssl all +{CERTIFIED}   {LOOPBACK}/32 scram-sha-256 clientcert=verify-full
hostssl all all            {LOOPBACK}/32 scram-sha-256
"""
_ACCESS_BEHIND_A_FRONT = f"""
host    all postgres       {LOOPBACK}/32 trust
host    all all            {LOOPBACK}/32 scram-sha-256
"""


class SecuredPostgres:
    """One server; a context manager.

    Args:
        directory: folder for certificates and data; when we are root, one that the server's account can reach.
    """

    def __init__(self, directory: Path) -> None:
        self.authority = Authority(directory, "postgres-authority")
        self._directory = directory
        self._programs = programs_with_tls()
        settings = {"fsync": "off", "password_encryption": "scram-sha-256"}
        self._server = EmbeddedPostgres(
            directory / "postgres", free_ports(1)[0], settings=settings, programs=self._programs
        )
        self._front: TlsFront | None = None
        self._open = ExitStack()

    def __enter__(self) -> SecuredPostgres:
        certificate = self.authority.issue("postgres", f"IP:{LOOPBACK}")
        self._open.callback(self._end)
        self._server.start()
        with psycopg.connect(self.administrator, autocommit=True) as connection:
            connection.execute(f"create role {CERTIFIED} nologin".encode())
            if self._programs is None:
                front = TlsFront(self._server.port, certificate, self.authority)
                self._front = self._open.enter_context(front)
                self._admit(connection, _ACCESS_BEHIND_A_FRONT)
            else:
                self._switch_tls_on(connection, certificate)
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        self._open.close()

    @property
    def administrator(self) -> str:
        """The address without authentication, where everything is allowed."""
        return self._server.url

    @property
    def port(self) -> int:
        """Where those come in who are asked."""
        return self._server.port if self._front is None else self._front.port

    def add_login(self, name: str, member_of: str, *, certified: bool = False) -> str:
        """Make a login role, a member of another, and return its password.

        Args:
            name: the role.
            member_of: what it is a member of.
            certified: whether it has to show a certificate of its name too.
        """
        password = f"pg-{secrets.token_hex(8)}"
        groups = [member_of, CERTIFIED] if certified else [member_of]
        with psycopg.connect(self.administrator, autocommit=True) as connection:
            connection.execute(
                sql.SQL("create role {} login password {} in role {}").format(
                    sql.Identifier(name), sql.Literal(password), sql.SQL(", ").join(map(sql.Identifier, groups))
                )
            )
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

    def _switch_tls_on(self, connection: psycopg.Connection[tuple[object, ...]], certificate: Certificate) -> None:
        data, owner = self._server.data, self._server.data.stat()
        files = {
            "server.crt": certificate.certificate_file,
            "server.key": certificate.key_file,
            "clients.crt": self.authority.certificate_file,
        }
        for name, source in files.items():
            shutil.copyfile(source, data / name)
            (data / name).chmod(0o600)
            os.chown(data / name, owner.st_uid, owner.st_gid)
        connection.execute("alter system set ssl_ca_file = 'clients.crt'")
        connection.execute("alter system set ssl = on")
        self._admit(connection, _ACCESS)
        wait_until(self._speaks_tls, what="TLS in Postgres")

    def _admit(self, connection: psycopg.Connection[tuple[object, ...]], access: str) -> None:
        (self._server.data / "pg_hba.conf").write_text(access, "ascii")
        connection.execute("select pg_reload_conf()")

    def _speaks_tls(self) -> bool:
        with psycopg.connect(self.administrator) as connection:
            return connection.execute("show ssl").fetchone() == ("on",)

    def _end(self) -> None:
        self._server.kill()
        shutil.rmtree(self._server.directory, ignore_errors=True)


@cache
def programs_with_tls() -> Path | None:
    """Return the folder of a Postgres on this host that is built with TLS, None when there is none."""
    for folder in _installed():
        told = subprocess.run([folder / "pg_config", "--configure"], capture_output=True, text=True, check=False)
        if "--with-openssl" in told.stdout or "--with-ssl=openssl" in told.stdout:
            return folder
    return None


def _installed() -> Iterator[Path]:
    on_path = shutil.which("postgres")
    folders = [Path(on_path).resolve().parent] if on_path else []
    for folder in [*folders, *sorted(Path("/usr/lib/postgresql").glob("*/bin"), reverse=True)]:
        if all((folder / program).is_file() for program in ("postgres", "initdb", "pg_config")):
            yield folder
