"""A request that gets no page, because it isn't known who sends it. Its own file: all of console/http raises it."""

from __future__ import annotations

from collections.abc import Mapping


class Refused(Exception):
    """It is not known who looks; the message says what to do."""

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = headers or {}
