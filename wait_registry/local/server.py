"""One server of the stack: a guarded child process with a data folder, started, stopped, crashed and started again."""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from abc import ABC, abstractmethod
from pathlib import Path

from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.local.child import GuardedChild, Program, log_tail

POLL_S = 0.05


class PortTakenError(TransientError):
    """Another process took the port first: start again on another port."""


class EmbeddedServer(ABC):
    """What broker and Postgres share; `start` after `stop` or `kill` finds the same data on the same port."""

    name: str
    start_timeout_s: float = 90.0

    def __init__(self, directory: Path, *, temporary: bool, inherited_fds: tuple[int, ...] = ()) -> None:
        """Describe a server that isn't started yet.

        Args:
            directory: its own folder for data, configuration and log.
            temporary: whether the folder goes when we are killed and can't remove it ourselves.
            inherited_fds: open files that its guard shall hold (the lock of the stack's folder).
        """
        self.directory = directory
        self.temporary = temporary
        self._inherited_fds = inherited_fds
        self._child: GuardedChild | None = None
        self._abandoned = threading.Event()

    @property
    def log(self) -> Path:
        """The file with everything the server prints."""
        return self.directory / "server.log"

    @property
    def pid(self) -> int:
        """The server's own process id (not the guard's).

        Raises:
            RuntimeError: it isn't running.
        """
        return self._running_child().pid

    @property
    def running(self) -> bool:
        """Whether the process is there (it may be paused)."""
        return self._child is not None and self._child.exit_status is None

    @property
    def exit_status(self) -> int | None:
        """How it ended by itself, as a shell shows it (128 + signal number); None while it runs, and once stopped."""
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
        self._child = GuardedChild(self._program())
        try:
            self._wait_until_serving()
        except BaseException:
            self.kill()
            raise

    def stop(self) -> None:
        """Stop it in order; its data stays."""
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

    def abandon(self) -> None:
        """Have a `start` that runs in another thread give up."""
        self._abandoned.set()

    def remove_data(self) -> None:
        """Remove its folder; it must not be running."""
        with contextlib.suppress(FileNotFoundError):
            shutil.rmtree(self.directory)

    @abstractmethod
    def _prepare(self) -> None:
        """Write configuration, and format the data folder when it is new."""

    @abstractmethod
    def _program(self) -> Program:
        """Return what to run."""

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
            if child.exit_status is not None:
                tail = log_tail(self.log)
                if "address already in use" in tail.lower():
                    raise PortTakenError(f"the embedded {self.name} found its port taken:\n{tail}")
                raise ConfigurationError(
                    f"the embedded {self.name} ended with status {child.exit_status} while starting; "
                    f"the end of {self.log}:\n{tail}"
                )
            if self._abandoned.is_set() or time.monotonic() > deadline:
                raise ConfigurationError(
                    f"the embedded {self.name} did not serve within {self.start_timeout_s:.0f} s; "
                    f"the end of {self.log}:\n{log_tail(self.log)}"
                )
            time.sleep(POLL_S)
