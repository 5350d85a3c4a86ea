"""What the tests of permissions use of other tests' fixtures."""

from __future__ import annotations

from tests.integration.processor.conftest import processors
from tests.refusals.conftest import secured_settings

__all__ = ["processors", "secured_settings"]
