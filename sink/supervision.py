"""Runs a stream again and again, with pauses, until it is stopped or can't go on."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable

import psycopg

from sink.kafka_query import QueryFailed, SparkGone
from sink.position import PositionTooOld
from sink.stream import SmallerBatches
from sink.telemetry import Cause, SinkTelemetry, StreamState
from wait_registry.errors import ConfigurationError, FencedError, TransientError
from wait_registry.postgres.connection import PostgresUnavailable
from wait_registry.postgres.error_text import error_text
from wait_registry.retry import Backoff

log = logging.getLogger(__name__)

# What broke after so long is no repetition of what broke before.
LONG_RUN_S = 60.0
FATAL = (FencedError, ConfigurationError, PositionTooOld, SparkGone)


class StreamThread:
    """One stream in a thread of its own; ``fatal`` is what ended it for good, ``done`` is set when it ended at all."""

    def __init__(
        self,
        name: str,
        run_once: Callable[[threading.Event], bool],
        state: StreamState,
        telemetry: SinkTelemetry,
        backoff: Backoff,
        ended: threading.Event,
    ) -> None:
        """``run_once`` as `sink.stream.SinkStream.run_once`; ``ended`` is set whenever a thread ends."""
        self.fatal: BaseException | None = None
        self.done = threading.Event()
        self._run_once = run_once
        self._state = state
        self._telemetry = telemetry
        self._backoff = backoff
        self._ended = ended
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"sink-{name}", daemon=True)

    def start(self) -> None:
        """Begin."""
        self._thread.start()

    def request_stop(self) -> None:
        """Ask it to end; does not wait."""
        self._stop.set()

    def join(self) -> None:
        """Wait until it has ended."""
        self._thread.join()

    def _run(self) -> None:
        try:
            while not self._stop.is_set():
                if self._attempt():
                    return
        finally:
            self.done.set()
            self._ended.set()

    def _attempt(self) -> bool:
        """Run the stream once; True when it is over."""
        began = time.monotonic()
        try:
            return self._run_once(self._stop)
        except FATAL as error:
            self.fatal = error
            self._state.broken(str(error))
            return True
        except SmallerBatches as change:
            log.info("%s stream starts again: %s", self._state.stream, change)
            self._backoff.reset()
        except Exception as error:  # noqa: BLE001 - whatever broke it: nothing is lost, it starts again from Postgres
            if self._stop.is_set():
                log.warning("%s stream ended with work in hand: %s", self._state.stream, error_text(error))
                return True
            self._pause(error, time.monotonic() - began)
        return False

    def _pause(self, error: Exception, ran_s: float) -> None:
        if isinstance(error, psycopg.OperationalError | PostgresUnavailable):
            self._telemetry.postgres(up=False)
        if self._state.take_worked() or ran_s > LONG_RUN_S:
            self._backoff.reset()
        pause_s = self._backoff.next_s()
        self._telemetry.restart(self._state.stream, cause_of(error))
        self._state.broken(error_text(error))
        # The trace of an outage or of Spark's own error says nothing, and that of a refusal by Postgres ends with the
        # rows that were refused; that of anything else may be all there is.
        known = isinstance(error, psycopg.Error | TransientError)
        log.warning(
            "%s stream broke (%s); starts again in %.1f s",
            self._state.stream,
            error_text(error),
            pause_s,
            exc_info=None if known else error,
        )
        self._stop.wait(pause_s)


def cause_of(error: Exception) -> Cause:
    """Return where an error that broke a stream came from, as the restarts are counted by it."""
    if isinstance(error, psycopg.Error | PostgresUnavailable):
        return "postgres"
    if isinstance(error, QueryFailed):
        return "spark"
    return "kafka" if isinstance(error, TransientError) else "other"
