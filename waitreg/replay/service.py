"""A replay as a service: the group's settings and handler, without registrations and commits."""

from __future__ import annotations

import logging
from collections.abc import Mapping

from processor.intake.replay_progress import ReplayProgress, Window
from processor.service import ProcessorService
from wait_registry.errors import TransientError
from wait_registry.records.topics import TopicPartition
from wait_registry.records.wait_record import RegistrationMode
from wait_registry.settings.processor import GroupProtocol, SourceKind
from wait_registry.settings.tree import Settings

log = logging.getLogger(__name__)


class ReplayService:
    """Handles ranges of the input topics again.

    It registers nothing: a wait ID belongs to a record and its group, so a tombstone of the replay would end the
    registration of the running group, and the other way round.

    Args:
        settings: of the group.
        ranges: offsets by partition, in the log.
        window: the timestamps of the records that are handled; all by default.
    """

    def __init__(
        self, settings: Settings, ranges: Mapping[TopicPartition, range], window: Window | None = None
    ) -> None:
        self._progress = ReplayProgress(ranges, window)
        self.processor = ProcessorService(replay_settings(settings), replay=self._progress)

    def run(self) -> None:
        """Work until every record of the ranges is settled, or until `request_stop`.

        Raises:
            TransientError: it was stopped before; the message has the command for the rest.
            Exception: as a processor; the command for the rest is logged.
        """
        try:
            self.processor.run()
        except Exception:
            log.error("handle the rest with: %s", self._progress.rest())  # noqa: TRY400
            raise
        if self._progress.left():
            raise TransientError(f"stopped before the end. Handle the rest with: {self._progress.rest()}")

    def request_stop(self) -> None:
        """Request that `run` ends soon; from any thread."""
        self.processor.request_stop()

    def summary(self) -> str:
        """Return how many records ended how."""
        settled = self.processor.stats.settled
        by_outcome = ", ".join(f"{count} {outcome}" for outcome, count in sorted(settled.items()) if count)
        return f"settled {sum(settled.values())} records{f': {by_outcome}' if by_outcome else ''}"


def replay_settings(settings: Settings) -> Settings:
    """Return a group's settings for a replay, which runs on a host of the group, too: no fixed port, another name."""
    changed = {
        "registration": RegistrationMode.OFF,
        "group_protocol": GroupProtocol.CLASSIC,
        "source": SourceKind.GROUP,
        "instance": "",
    }
    return settings.model_copy(
        update={
            "processor": settings.processor.model_copy(update=changed),
            "telemetry": settings.telemetry.model_copy(update={"port": 0}),
        }
    )
