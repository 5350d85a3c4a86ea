"""Fixtures of the commands' tests."""

from __future__ import annotations

from tests.integration.processor.conftest import calls, processor_scenario, processor_settings, processors

__all__ = ["calls", "processor_scenario", "processor_settings", "processors"]
