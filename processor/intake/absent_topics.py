"""Looks for redelivery topics that were absent at the start, and has the consumer consume them without a restart.

The group's own subscription can't wait for them: a client that subscribes to a missing topic reports an error, and
under KIP-848 the coordinator refuses a member that names a topic that it may not describe (docs/decisions/0034).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Final

from processor.intake.consumed_topics import ConsumedTopics
from wait_registry.daemon_threads import in_daemon_thread
from wait_registry.errors import WaitRegistryError

log = logging.getLogger(__name__)

LOOK_EVERY_S: Final = 15.0


@dataclass(slots=True)
class AbsentTopics:
    """Looks for topics as long as one is absent.

    Two looks must find the same topic. The broker that answered the first may be the only one yet that knows a new
    topic, and the consumer may ask another one.

    Args:
        look: returns the IDs of those of some topics that exist and may be read; asks the broker, in another thread.
        consumed: knows which topics are absent.
        subscribe: has the consumer consume these topics, and no others, from now on.
    """

    look: Callable[[Iterable[str]], Mapping[str, str]]
    consumed: ConsumedTopics
    subscribe: Callable[[Iterable[str]], None]
    _seen: Mapping[str, str] = field(default_factory=dict, init=False)

    def warn(self) -> None:
        """Log which topics are absent."""
        log.warning(
            "not consumed while missing, or without READ for this user: %s. Redrives need it: `waitreg topics "
            "create` or kafka-acls. This process looks every %g s and then consumes it without a restart",
            ", ".join(self.consumed.absent),
            LOOK_EVERY_S,
        )

    async def run_once(self) -> None:
        """Look once; a broker that doesn't answer, or refuses to, is asked again the next time."""
        if not self.consumed.absent:
            return
        try:
            found = await in_daemon_thread("absent-topics", self.look, self.consumed.absent)
        except WaitRegistryError as error:
            log.info("absent redelivery topics will be looked for later: %s", error)
            return
        lasting = {topic: topic_id for topic, topic_id in found.items() if self._seen.get(topic) == topic_id}
        self._seen = found
        if not lasting:
            return
        self.consumed.appeared(lasting)
        log.warning("consumed from now on, because it exists and may be read: %s", ", ".join(sorted(lasting)))
        self.subscribe(self.consumed.names)
