"""Fixtures of the fault tests: what other tests make, and wait topics, links and clusters of their own."""

from __future__ import annotations

from tests.faults.several_scenarios import another_scenario
from tests.integration.processor.conftest import processor_settings, processors
from tests.integration.sink.conftest import start_sink
from tests.integration.sweeper.conftest import scenario

__all__ = ["another_scenario", "processor_settings", "processors", "scenario", "start_sink"]
