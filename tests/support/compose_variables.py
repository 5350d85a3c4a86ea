"""The variables of docker-compose.yml, as .env gives them."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
COMPOSE_FILE = ROOT / "docker-compose.yml"


def given_variables() -> dict[str, str]:
    """Return what .env says."""
    lines = (ROOT / ".env").read_text("utf-8").splitlines()
    return dict(line.split("=", maxsplit=1) for line in lines if line and not line.startswith("#"))


def used_variables() -> set[str]:
    """Return the names that docker-compose.yml uses; `$$NAME` is left to a container's shell."""
    return set(re.findall(r"(?<!\$)\$\{([A-Z_]+)\}", COMPOSE_FILE.read_text("utf-8")))


def filled(text: str) -> str:
    """Return a text of docker-compose.yml with the variables' values in it."""
    given = given_variables()
    return re.sub(r"(?<!\$)\$\{(\w+)\}", lambda found: given[found[1]], text).replace("$$", "$")
