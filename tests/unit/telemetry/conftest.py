"""A tracer whose spans are read in the test."""

from __future__ import annotations

from tests.support.traces import traced

__all__ = ["traced"]
