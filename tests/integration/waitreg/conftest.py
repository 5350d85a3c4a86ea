"""Fixtures of the commands' tests."""

from __future__ import annotations

from tests.integration.processor.conftest import calls, processor_scenario, processor_settings, processors
from tests.refusals.conftest import here

__all__ = ["calls", "here", "processor_scenario", "processor_settings", "processors"]
