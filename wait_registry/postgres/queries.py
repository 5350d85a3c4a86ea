"""Loads the named blocks of SQL files."""

from __future__ import annotations

import re
from importlib import resources
from typing import LiteralString

RESOURCES = "wait_registry_sql"
NAME_LINE = re.compile(r"^-- name: (\w+)\s*$", re.MULTILINE)


class Queries:
    """The blocks of ``sql/<file>.sql``, each after a line ``-- name: xyz``; ``queries["xyz"]`` is its text."""

    def __init__(self, file: str) -> None:
        text = sql_text(f"{file}.sql")
        parts = NAME_LINE.split(text)
        self._blocks = {name: block.strip() for name, block in zip(parts[1::2], parts[2::2], strict=True)}
        self._file = file
        if len(self._blocks) * 2 != len(parts) - 1:
            raise ValueError(f"sql/{file}.sql has two blocks of one name")

    def __getitem__(self, name: str) -> LiteralString:
        """Return the text of the block ``name``; a KeyError names the file."""
        if name not in self._blocks:
            raise KeyError(f"sql/{self._file}.sql has no block named {name}")
        return self._blocks[name]

    def names(self) -> tuple[str, ...]:
        """Return the names of all blocks, in the file's order."""
        return tuple(self._blocks)


def sql_text(path: str) -> LiteralString:
    """Return the text of a file below ``sql/``."""
    return resources.files(RESOURCES).joinpath(path).read_text(encoding="utf-8")
