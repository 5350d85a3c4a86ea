"""The executors of this console: each runs one job in a thread, a few at once; jobs of one group run one by one."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Final

from wait_registry.errors import WaitRegistryError
from wait_registry.records.operation import Requested
from wait_registry.settings.tree import Settings
from waitreg.console.access.permission import Permission
from waitreg.console.refusals import Busy
from waitreg.redrive.executor import Executor
from waitreg.redrive.progress import Progress, begun

log = logging.getLogger(__name__)

MOST: Final = 4
# What has ended is known for longer than a form can start it.
_KNOWN_S: Final = 3600.0
# The longest wait for clicks before this one, s.
_LOCK_S: Final = 5.0


class Run(threading.Thread):
    """One executor in its thread. Its own thread writes what pages show of it, each value whole.

    Attributes:
        progress: how far the job has come in this console.
        error: what ended the executor before the job ended.
    """

    def __init__(self, settings: Settings, progress: Progress, after: Run | None = None) -> None:
        """Do nothing yet; ``after`` is the job of its group that runs before."""
        super().__init__(name=f"job {progress.requested.job}", daemon=True)
        self.job = progress.requested
        self.progress = progress
        self.error = ""
        self.ended_s = time.monotonic()
        self.stop = threading.Event()
        self._after = after
        self._settings = settings

    @property
    def waits_for(self) -> str:
        """Return the job of its group that runs before; "" if it waits for none."""
        after = self._after
        return after.job.job if after else ""

    def run(self) -> None:
        """Run the job, after the one before it."""
        try:
            if not self._is_blocked():
                executor = Executor(self._settings, self.job, self.stop, self._report, resumes=False)
                self._report(executor.run())
                log.info("job %s is %s", self.job.job, self.progress.state.value)
        except WaitRegistryError as error:
            self.error = str(error)
            log.warning("job %s has no executor any more: %s", self.job.job, error)
        except Exception:
            self.error = "an unexpected error, which the console's log has"
            log.exception("job %s has no executor any more", self.job.job)
        finally:
            self.ended_s = time.monotonic()

    def _is_blocked(self) -> bool:
        """Wait for the job of the group that was begun before, and return whether it was stopped before its end."""
        if (before := self._after) is None:
            return False
        before.join()
        self._after = None
        if before.error:
            self.error = f"job {before.job.job} of its group was stopped before it had ended"
        return bool(before.error)

    def _report(self, progress: Progress) -> None:
        self.progress = progress


class Executors:
    """The jobs that run or ran in this console.

    Args:
        settings: of the cluster, the tables and the limits.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._lock = threading.Lock()
        self._runs: dict[str, Run] = {}
        self._stopped = False

    def start(self, permission: Permission, ask: Callable[[], None]) -> None:
        """Start a new job, or have it await its approval; one that is here, as by a second click, stays as it is.

        Args:
            permission: the job, with who asks for it.
            ask: writes that it is asked for; called if it waits for its approval, or for another job of its group.

        Raises:
            Busy: too many jobs run or wait here.
        """
        job = permission.job
        with self._locked():
            if job.job in self._runs:
                return
            if job.approval:
                ask()
                self._keep(Run(self._settings, begun(job)))
                return
            self._require_room()
            if self._last_of(job.group) is not None:
                ask()
            self._begin(job)

    def resume(self, permission: Permission, ask: Callable[[], None]) -> None:
        """Continue a job that was stopped, paused or abandoned, if it doesn't run here.

        Args:
            permission: the job, with who may run it.
            ask: records who resumes it; called when the job can begin or wait, or runs already.

        Raises:
            Busy: too many jobs run or wait here.
        """
        with self._locked():
            run = self._runs.get(permission.job.job)
            if run is not None and run.is_alive():
                ask()
                return
            self._require_room()
            ask()
            self._begin(permission.job)

    def shown(self, job: str) -> Run | None:
        """Return a job, if it runs or ran here."""
        return self._runs.get(job)

    def close(self, timeout_s: float) -> None:
        """Pause all jobs, as Ctrl-C does, and wait for that.

        Args:
            timeout_s: longest wait, seconds. A job that isn't paused by then continues where it is when it is resumed.
        """
        with self._lock:
            self._stopped = True
            runs = [run for run in self._runs.values() if run.is_alive()]
        for run in runs:
            run.stop.set()
        end_s = time.monotonic() + timeout_s
        for run in runs:
            run.join(max(0.0, end_s - time.monotonic()))
            if run.is_alive():
                log.warning("job %s could not be paused in time: resume it", run.job.job)

    @contextmanager
    def _locked(self) -> Iterator[None]:
        """Wait for those who ask Kafka at the moment, but not for long: other pages need the threads."""
        if not self._lock.acquire(timeout=_LOCK_S):
            raise Busy("Kafka hasn't answered to the clicks before this one. Try again in some seconds.")
        try:
            yield
        finally:
            self._lock.release()

    def _require_room(self) -> None:
        if self._stopped:
            raise Busy("The console is stopping.")
        if len([run for run in self._runs.values() if run.is_alive()]) >= MOST:
            raise Busy(f"{MOST} jobs run or wait in this console. Wait for the end of one, then try again.")

    def _last_of(self, group: str) -> Run | None:
        """Return the job of a group that was begun last, if it hasn't ended."""
        alive = [run for run in self._runs.values() if run.is_alive() and run.job.group == group]
        return alive[-1] if alive else None

    def _begin(self, job: Requested) -> None:
        run = Run(self._settings, begun(job), self._last_of(job.group))
        self._keep(run)
        run.start()

    def _keep(self, run: Run) -> None:
        now_s = time.monotonic()
        kept = {name: one for name, one in self._runs.items() if one.is_alive() or now_s - one.ended_s < _KNOWN_S}
        # A job that is resumed is the last one again.
        kept.pop(run.job.job, None)
        self._runs = {**kept, run.job.job: run}
