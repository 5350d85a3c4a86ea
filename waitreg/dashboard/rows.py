"""All rows of the dashboard, from "is it well" to details."""

from __future__ import annotations

from typing import Final

from waitreg.dashboard.connect import CONNECT
from waitreg.dashboard.dead_letters import DEAD_LETTERS
from waitreg.dashboard.health import HEALTH
from waitreg.dashboard.page import Row
from waitreg.dashboard.processor import PROCESSOR
from waitreg.dashboard.registry import REGISTRY
from waitreg.dashboard.sweeper import SWEEPER

ROWS: Final[tuple[Row, ...]] = (HEALTH, PROCESSOR, REGISTRY, SWEEPER, DEAD_LETTERS, CONNECT)
