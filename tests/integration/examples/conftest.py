"""Fixtures that run an example's folder as it stands."""

from __future__ import annotations

import pytest

from tests.integration.examples.running import Example
from tests.support.naming import Names
from tests.support.topics import Topics


@pytest.fixture
def example(topics: Topics, names: Names) -> Example:
    """An example whose topics and group are this test's own."""
    return Example(topics, names)
