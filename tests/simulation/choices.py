"""Each answer that a random generator could give, in turn: so a step that asks it becomes all that may happen."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from random import Random
from typing import Any

# A range counts from its lower end up to so many more; the small worlds have no more records.
MOST = 2


class Choices(Random):
    """Answers from a script, and then always the first; remembers how many answers each question had."""

    def __init__(self) -> None:
        super().__init__(0)
        self._script: list[int] = []
        self._asked: list[tuple[int, int]] = []

    def __reduce__(self) -> str:  # type: ignore[override]
        return "CHOICES"

    def scripts(self) -> Iterator[None]:
        """Play each script once: between two items, the same questions must be asked as far as the answers agree."""
        self._script = []
        while True:
            self._asked = []
            yield
            while self._asked and self._asked[-1][0] == self._asked[-1][1] - 1:
                self._asked.pop()
            if not self._asked:
                return
            self._script = [answer for answer, _ in self._asked]
            self._script[-1] += 1

    def _answer(self, count: int) -> int:
        at = len(self._asked)
        answer = self._script[at] if at < len(self._script) else 0
        self._asked.append((answer, count))
        return answer

    def random(self) -> float:
        """Return no, then yes, to the question whether something happens."""
        return (1.0, 0.0)[self._answer(2)]

    def randint(self, a: int, b: int) -> int:
        """Return each number of a range."""
        return a + self._answer(min(b - a, MOST) + 1)

    def choice(self, seq: Sequence[Any]) -> Any:  # type: ignore[override]
        """Return each item."""
        return seq[self._answer(len(seq))]


# The one that simulated processes ask; snapshots of them name it.
CHOICES = Choices()
