"""One server on this machine: a guarded child process with a data folder, started, stopped, killed and restarted."""

from __future__ import annotations

import signal
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import resources
from pathlib import Path
from typing import Self

from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.jvm import JarKind, jar_directory, java_command
from wait_registry.local.account import Account
from wait_registry.local.child import GuardedChild, Program, log_tail

POLL_S = 0.05


class PortTakenError(TransientError):
    """Another process took the port first; start again on another port."""


class EmbeddedServer(ABC):
    """A server; `start` after `stop` or `kill` finds the same data on the same port."""

    name: str
    start_timeout_s: float = 90.0
    stop_signal = signal.SIGTERM
    account: Account | None = None
    environment: Mapping[str, str] = {}

    def __init__(self, directory: Path, *, temporary: bool = False, inherited_fds: tuple[int, ...] = ()) -> None:
        """Describe a server that isn't started yet.

        Args:
            directory: its own folder for data, configuration and log.
            temporary: whether its guard removes the folder when this process is killed.
            inherited_fds: open files that its guard holds (the lock of the stack's folder).
        """
        self.directory = directory
        self.temporary = temporary
        self._inherited_fds = inherited_fds
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

    @property
    def exit_status(self) -> int | None:
        """The status it ended with by itself (128 + signal number); None while it runs, and once stopped."""
        return None if self._child is None else self._child.exit_status

    def start(self) -> None:
        """Start it and wait until it serves; nothing happens when it runs.

        Raises:
            PortTakenError: its port was taken by another process.
            ConfigurationError: it ended or didn't serve in time; the message has the end of its log.
        """
        if self.running:
            return
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
                remove_when_orphaned=self.directory if self.temporary else None,
                inherited_fds=self._inherited_fds,
            )
        )
        try:
            self._wait_until_serving()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Stop it gracefully; its data stays."""
        if self._child is not None:
            self._child.stop()
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
            raise RuntimeError(f"the embedded {self.name} isn't running")
        return self._child

    def _wait_until_serving(self) -> None:
        child = self._running_child()
        deadline = time.monotonic() + self.start_timeout_s
        while not self._serving():
            end_of_log = f"the end of {self.log}:\n{log_tail(self.log)}"
            if (status := child.exit_status) is not None:
                if "address already in use" in end_of_log.lower():
                    raise PortTakenError(f"the embedded {self.name} found its port taken; {end_of_log}")
                raise ConfigurationError(
                    f"the embedded {self.name} ended with status {status} while starting; {end_of_log}"
                )
            if time.monotonic() > deadline:
                raise ConfigurationError(
                    f"the embedded {self.name} did not serve within {self.start_timeout_s:.0f} s; {end_of_log}"
                )
            time.sleep(POLL_S)


class JvmServer(EmbeddedServer):
    """A server that runs from the jars of one kind."""

    jars: JarKind
    log4j_file: str
    _java = ""
    _class_path = ""

    def _prepare(self) -> None:
        if not self._java:
            self._java = java_command()
            self._class_path = f"{jar_directory(self.jars)}/*"
        log4j = resources.files("wait_registry_jvm").joinpath(self.log4j_file).read_text("utf-8")
        (self.directory / "log4j2.properties").write_text(log4j, "utf-8")

    def _java_call(self, *options: str) -> list[str]:
        """Return the call of java up to the main class."""
        configuration = f"-Dlog4j2.configurationFile={self.directory / 'log4j2.properties'}"
        return [self._java, *options, configuration, f"-Dwaitreg.log={self.log}", "-cp", self._class_path]
