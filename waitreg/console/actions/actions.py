"""What the console does for people: dry runs, a few at once, its own jobs, and changes of jobs that run elsewhere."""

from __future__ import annotations

import logging
import threading
from functools import partial
from typing import Final

from wait_registry.records.operation import Replacement, State
from wait_registry.settings.tree import Settings
from waitreg.console.access.permission import Permission, Reveal, Selection, asker
from waitreg.console.actions.executors import Executors
from waitreg.console.actions.tokens import JobTokens, RevealTokens
from waitreg.console.refusals import Busy
from waitreg.console.signing import signing_key
from waitreg.redrive import operator_events
from waitreg.redrive.dry_run import DryRun, dry_run
from waitreg.redrive.edit import most_edit_bytes
from waitreg.redrive.progress import Progress
from waitreg.redrive.request import Options, open_job, require_rate

log = logging.getLogger(__name__)

# The other pages' threads stay free while Kafka doesn't answer.
_DRY_RUNS: Final = 3


class Actions:
    """Acts with the Kafka credentials of the console; a console that only reads has none.

    Args:
        settings: of the cluster, the tables and the limits.
    """

    def __init__(self, settings: Settings) -> None:
        key = signing_key(settings.console)
        self.job_tokens, self.reveal_tokens = JobTokens(key), RevealTokens(key)
        self.executors = Executors(settings)
        self.edits = settings.console.edit
        self.most_edit_bytes = most_edit_bytes(settings)
        self._settings = settings
        self._free = threading.BoundedSemaphore(_DRY_RUNS)

    def dry_run(self, selected: Selection, options: Options, replacement: Replacement | None = None) -> DryRun:
        """Return what a new job would do with a person's selection.

        Args:
            selected: the dead letters.
            options: how.
            replacement: the edited record that is sent in place of the only dead letter's own.

        Raises:
            Busy: too many dry runs at once.
            ConfigurationError: the job isn't possible.
            TransientError, psycopg.Error: Kafka or Postgres is unavailable; retry.
        """
        if not self._free.acquire(blocking=False):
            raise Busy("Too many dry runs at once. Try again in some seconds.")
        try:
            return dry_run(self._settings, selected.kind, selected.chosen, options, asker(selected.person), replacement)
        finally:
            self._free.release()

    def start(self, permission: Permission) -> None:
        """Start a job, or have it await its approval; a second start of it changes nothing.

        Raises:
            Busy: too many jobs run or wait here.
            TransientError: Kafka is unavailable; retry.
        """
        job = permission.job
        self.executors.start(permission, partial(operator_events.write_request, self._settings, job))
        what = "asked for" if job.approval else "started"
        log.info("job %s: %s for group %s %s by %s", job.job, job.kind.value, job.group, what, job.by)

    def job(self, name: str) -> Progress:
        """Return a job that hasn't ended, as the operations topic has it; errors as `open_job`."""
        return open_job(self._settings, name)

    def approve(self, permission: Permission, reason: str) -> None:
        """Approve a job that awaits it, and run it here.

        Args:
            permission: the job, with who approves it.
            reason: why.

        Raises:
            Busy: too many jobs run or wait here.
            TransientError: Kafka is unavailable; retry.
        """
        name, approver = permission.job.job, asker(permission.person)
        self.executors.resume(permission, partial(operator_events.approve, self._settings, name, approver, reason))
        log.info("job %s: approved by %s", name, approver.by)

    def change_rate(self, permission: Permission, rate: float) -> None:
        """Ask for another rate of a job, records per second.

        Raises:
            ConfigurationError: the rate isn't possible.
            TransientError: Kafka is unavailable; retry.
        """
        name, person = permission.job.job, asker(permission.person)
        operator_events.change_rate(
            self._settings, name, require_rate(self._settings, rate), person, "asked for in the console"
        )
        log.info("job %s: %g per second asked for by %s", name, rate, person.by)

    def change(self, permission: Permission, state: State, reason: str) -> None:
        """Ask that a job be paused, cancelled or, if it runs nowhere, continued here.

        Args:
            permission: the job, with who asks.
            state: the new state.
            reason: why.

        Raises:
            Busy: too many jobs run or wait here.
            TransientError: Kafka is unavailable; retry.
        """
        name, person = permission.job.job, asker(permission.person)
        ask = partial(operator_events.change, self._settings, name, state, person, reason)
        if state is State.RUNNING:
            self.executors.resume(permission, ask)
        else:
            ask()
        log.info("job %s: %s asked for by %s", name, state.value, person.by)

    def reveal(self, reveal: Reveal, reason: str) -> str:
        """Record that a person is shown what is hidden of a dead letter; then return the proof, with which it is.

        Args:
            reveal: who may be shown which dead letter.
            reason: why.

        Raises:
            ConfigurationError, TransientError: it can't be recorded, so nothing is shown.
        """
        operator_events.record_reveal(self._settings, reveal.place, reveal.group, asker(reveal.person), reason)
        log.info("what is hidden of %s: shown to %s from now on", reveal.place, reveal.person.name)
        return self.reveal_tokens.sign(reveal)

    def close(self) -> None:
        """Pause the jobs of this console."""
        self.executors.close(self._settings.redrive.transaction_timeout_ms / 1000)
