"""A group that handles redriven records as a test says."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

from tests.integration.processor.running import Processors, RunningProcessor
from tests.integration.redrive.scenario import Scenario
from tests.support.settings import changed
from wait_registry.errors import PermanentError
from wait_registry.handler import Record
from wait_registry.records.wait_record import RegistrationMode


class Handling:
    """Its handler refuses the values that are named, and holds others until it is asked to end."""

    def __init__(self, at: Scenario, processors: Processors) -> None:
        self.refused: set[bytes] = set()
        self.held: set[bytes] = set()
        self.calls: list[Record] = []
        self.ended = threading.Event()
        self._at = at
        self._processors = processors

    async def handle(self, record: Record) -> None:
        """Handle a record."""
        self.calls.append(record)
        if record.value in self.held:
            await asyncio.to_thread(self.ended.wait, 120)
        if record.value in self.refused:
            raise PermanentError("not this one")

    def start(self, **changes: Any) -> RunningProcessor:
        """Start a member, which registers each record before its call."""
        own = {"handler": self._processors.handler(self.handle), "registration": RegistrationMode.EAGER, **changes}
        return self._processors.start(changed(self._at.settings, "processor", **own)).wait_joined()
