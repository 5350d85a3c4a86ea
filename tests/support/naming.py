"""Names that no other test and no other run uses."""

from __future__ import annotations

import uuid


class Names:
    """Hands out names with one prefix a test; the same word gives the same name again."""

    def __init__(self) -> None:
        self.prefix = f"t{uuid.uuid4().hex[:10]}"

    def __call__(self, word: str) -> str:
        """Return a topic, group or other Kafka name."""
        return f"{self.prefix}.{word}"

    @property
    def schema(self) -> str:
        return self.prefix
