"""A tracer whose spans are read in the test."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.support.traces import Traced


@pytest.fixture
def traced() -> Iterator[Traced]:
    """Spans in memory."""
    own = Traced()
    yield own
    own.close()
