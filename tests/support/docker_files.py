"""The Dockerfile as a list of stages, and the variables of docker-compose.yml as .env gives them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
DOCKERFILE = ROOT / "Dockerfile"
COMPOSE_FILE = ROOT / "docker-compose.yml"


@dataclass(slots=True)
class Stage:
    """One stage: its name, what it is made from (a stage or an image), and its (instruction, arguments)."""

    name: str
    base: str
    instructions: list[tuple[str, str]] = field(default_factory=list)

    def arguments(self, instruction: str) -> list[str]:
        return [arguments for name, arguments in self.instructions if name == instruction]


def stages() -> dict[str, Stage]:
    """Return all stages by name, in order."""
    found: dict[str, Stage] = {}
    for instruction, arguments in _instructions():
        if instruction == "FROM":
            made = re.fullmatch(r"(\S+) AS (\S+)", arguments)
            assert made is not None, f"a stage without a name: FROM {arguments}"
            found[made[2]] = Stage(made[2], made[1])
        elif found:
            next(reversed(found.values())).instructions.append((instruction, arguments))
    return found


def image_defaults() -> dict[str, str]:
    """Return the defaults of the arguments before the first stage."""
    before = []
    for instruction, arguments in _instructions():
        if instruction == "FROM":
            break
        before.append(arguments.partition("="))
    return {name: value for name, _, value in before}


def lineage(name: str) -> list[Stage]:
    """Return a stage and those it is made from, itself first."""
    known = stages()
    chain = []
    while name in known:
        chain.append(known[name])
        name = known[name].base
    return chain


def _instructions() -> list[tuple[str, str]]:
    lines = [line for line in DOCKERFILE.read_text("utf-8").splitlines() if not line.lstrip().startswith("#")]
    joined = re.sub(r"\\\n\s*", " ", "\n".join(lines))
    split = [line.split(maxsplit=1) for line in joined.splitlines() if line.strip()]
    return [(instruction.upper(), arguments) for instruction, arguments in split]


def given_variables() -> dict[str, str]:
    lines = (ROOT / ".env").read_text("utf-8").splitlines()
    return dict(line.split("=", maxsplit=1) for line in lines if line and not line.startswith("#"))


def used_variables() -> set[str]:
    """Return the names that docker-compose.yml uses; `$$NAME` is left to a container's shell."""
    return set(re.findall(r"(?<!\$)\$\{([A-Z_]+)\}", COMPOSE_FILE.read_text("utf-8")))


def filled(text: str) -> str:
    """Return a text of docker-compose.yml with the variables' values in it."""
    given = given_variables()
    return re.sub(r"(?<!\$)\$\{(\w+)\}", lambda found: given[found[1]], text).replace("$$", "$")
