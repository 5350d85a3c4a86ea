"""A mutant: one small change that breaks a promise, and the test that must notice."""

from __future__ import annotations

import tomllib
from dataclasses import dataclass
from pathlib import Path

LIST = Path(__file__).with_name("mutants.toml")


@dataclass(frozen=True, slots=True)
class Mutant:
    """One planted fault: the ``old`` text of ``file`` (it stands there once) becomes ``new``; ``test`` must fail.

    ``promise`` is one of P1 to P8, or several with a space between; ``breaks`` says in a sentence what goes wrong.
    """

    name: str
    promise: str
    breaks: str
    file: str
    old: str
    new: str
    test: str

    def plant(self, root: Path) -> str | None:
        """Change the file below ``root``; return what is wrong with the list's entry, or None."""
        path = root / self.file
        if not path.is_file():
            return f"there is no file {self.file}"
        text = path.read_text(encoding="utf-8")
        if (seen := text.count(self.old)) != 1:
            return f"the text to change stands {seen} times in {self.file}, expected once: {self.old!r}"
        path.write_text(text.replace(self.old, self.new), encoding="utf-8")
        return None


def load_mutants(source: Path = LIST) -> list[Mutant]:
    """Return the committed list; a missing or unknown field is a TypeError."""
    return [Mutant(**entry) for entry in tomllib.loads(source.read_text(encoding="utf-8"))["mutant"]]
