"""One server on this machine: a guarded child process with a data folder, started, stopped, killed and restarted."""

from __future__ import annotations

import http.client
import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Self

from wait_registry.errors import WaitRegistryError
from wait_registry.java.jars import JarKind, jar_directory, java_command
from waitreg.local.account import Account
from waitreg.local.child import GuardedChild, Program, log_tail
from waitreg.local.ports import LOOPBACK

POLL_S = 0.05
HTTP_TIMEOUT_S = 3.0


class ServerError(WaitRegistryError):
    """A server ended by itself or didn't serve in time: the message has the end of its log."""


class EmbeddedServer(ABC):
    """A server; `start` after `stop` or `kill` finds the same data on the same port."""

    name: str
    state: str = ""  # what it said last of why it doesn't serve, if it says so
    start_timeout_s: float = 90.0
    stop_signal = signal.SIGTERM
    grace_s: float = 15.0  # how long `stop` waits
    account: Account | None = None
    environment: Mapping[str, str] = {}

    def __init__(self, directory: Path, *, temporary: bool = False) -> None:
        """Describe a server that isn't started yet.

        Args:
            directory: its own folder for data, configuration and log.
            temporary: whether its guard removes the folder when this process is killed.
        """
        self.directory = directory
        self.temporary = temporary
        self.stopped_with: int | None = None  # the exit status after `stop`
        self._child: GuardedChild | None = None

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    @property
    def log(self) -> Path:
        """The file with everything the server prints."""
        return self.directory / "server.log"

    @property
    def pid(self) -> int:
        """The server's own process id (not the guard's); RuntimeError when it isn't running."""
        return self._running_child().pid

    @property
    def running(self) -> bool:
        """Whether the process exists (it may be paused)."""
        return self._child is not None and self._child.exit_status is None

    def start(self) -> None:
        """Start it and wait until it serves; nothing happens when it runs.

        Raises:
            ServerError: it ended or didn't serve in time; the message has the end of its log.
        """
        if self.running:
            return
        self.launch()
        try:
            self.wait_ready()
        except BaseException:
            self.kill()
            raise

    def launch(self) -> None:
        """Start it; it doesn't serve yet."""
        self.directory.mkdir(parents=True, exist_ok=True)
        self._prepare()
        self._child = GuardedChild(
            Program(
                command=self._command(),
                log=self.log,
                cwd=self.directory,
                environment=self.environment,
                account=self.account,
                stop_signal=self.stop_signal,
                grace_s=self.grace_s,
                remove_when_orphaned=self.directory if self.temporary else None,
            )
        )

    def wait_ready(self, deadline_s: float | None = None) -> None:
        """Wait until it serves; raise ServerError if it ends instead or takes longer."""
        limit_s = self.start_timeout_s if deadline_s is None else deadline_s
        deadline = time.monotonic() + limit_s
        while not self._serving():
            self.require_running()
            if time.monotonic() > deadline:
                raise ServerError(
                    f"the {self.name} did not serve within {limit_s:.0f} s{self.state}; {self._end_of_log()}"
                )
            time.sleep(POLL_S)

    def require_running(self) -> None:
        """Raise ServerError if it has ended by itself, or if its folder was removed."""
        if self._child is not None and not self.log.is_file():
            raise ServerError(
                f"the folder {self.directory} of the {self.name} is gone, removed perhaps with other old temporary "
                "files. Start it again, in a folder that is not cleaned up (`waitreg stack up --data-dir`)"
            )
        if self._child is not None and (status := self._child.exit_status) is not None:
            raise ServerError(f"the {self.name} ended with status {status}; {self._end_of_log()}")

    def stop(self) -> None:
        """Stop it gracefully; its data stays."""
        if self._child is not None:
            self._child.stop()
            self.stopped_with = self._child.exit_status
            self._child = None

    def kill(self) -> None:
        """Crash it (SIGKILL to all its processes); its data stays."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def pause(self) -> None:
        """Freeze it: connections stay open and nothing answers."""
        self._running_child().pause()

    def resume(self) -> None:
        """Continue it after `pause`."""
        self._running_child().resume()

    @abstractmethod
    def _prepare(self) -> None:
        """Write configuration, and format the data folder when it is new."""

    @abstractmethod
    def _command(self) -> list[str]:
        """Return the command line to run."""

    @abstractmethod
    def _serving(self) -> bool:
        """Return whether clients are served; called again and again, must not block for long."""

    def _running_child(self) -> GuardedChild:
        if self._child is None:
            raise RuntimeError(f"the {self.name} isn't running")
        return self._child

    def _end_of_log(self) -> str:
        return f"the end of {self.log}:\n{log_tail(self.log)}"


def http_get(port: int, path: str) -> tuple[int, bytes]:
    """Return status and body of a GET to a port of this host; status 0 without an answer."""
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=HTTP_TIMEOUT_S)
    try:
        connection.request("GET", path)
        response = connection.getresponse()
        return response.status, response.read()
    except (OSError, http.client.HTTPException):
        return 0, b""
    finally:
        connection.close()


class JvmServer(EmbeddedServer):
    """A server that runs from the jars of one kind, with a file of properties."""

    jars: JarKind
    main_class: str
    jvm_options: tuple[str, ...] = ()
    heap = "512m"  # the JVM's -Xmx
    _java = ""
    _class_path = ""

    def __init__(self, directory: Path, properties: Mapping[str, str] | None, *, temporary: bool) -> None:
        """Take further properties, which win over ours."""
        super().__init__(directory, temporary=temporary)
        self._further = properties or {}

    @property
    def properties_file(self) -> Path:
        """The file that is written at every start."""
        return self.directory / "server.properties"

    @abstractmethod
    def _properties(self) -> Mapping[str, str]:
        """Return our own properties."""

    def _prepare(self) -> None:
        if not self._java:
            self._java = java_command()
            self._class_path = f"{jar_directory(self.jars)}/*"
        log4j = resources.files("wait_registry_jvm").joinpath(f"{self.jars}-log4j2.properties").read_text("utf-8")
        (self.directory / "log4j2.properties").write_text(log4j, "utf-8")
        lines = (f"{name}={_escaped(value)}\n" for name, value in {**self._properties(), **self._further}.items())
        self.properties_file.touch(mode=0o600)  # further properties may be secret
        self.properties_file.write_text("".join(lines), "utf-8")

    def _java_call(self, *options: str) -> list[str]:
        """Return the call of java up to the main class."""
        configuration = f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}"
        return [self._java, *options, configuration, f"-Dwaitreg.log={self.log}", "-cp", self._class_path]

    def _command(self) -> list[str]:
        return [*self._java_call(f"-Xmx{self.heap}", *self.jvm_options), self.main_class, str(self.properties_file)]


def _escaped(value: str) -> str:
    # java.util.Properties: a backslash begins an escape, a line break ends the value.
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r")
