"""All rows of the dashboard, from "is it well" to details."""

from __future__ import annotations

from typing import Final

from wait_registry.cli.dashboard.connect import CONNECT
from wait_registry.cli.dashboard.dead_letters import DEAD_LETTERS
from wait_registry.cli.dashboard.health import HEALTH
from wait_registry.cli.dashboard.page import Row
from wait_registry.cli.dashboard.processor import PROCESSOR
from wait_registry.cli.dashboard.registry import REGISTRY
from wait_registry.cli.dashboard.sweeper import SWEEPER

ROWS: Final[tuple[Row, ...]] = (HEALTH, PROCESSOR, REGISTRY, SWEEPER, DEAD_LETTERS, CONNECT)
