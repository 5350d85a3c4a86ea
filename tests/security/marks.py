"""Marks in payloads and secrets, and where they show in what a system says."""

from __future__ import annotations

import base64
import secrets
from collections.abc import Iterator, Mapping

MARKED = f"telltale{secrets.token_hex(8)}"


def forms(mark: str) -> Iterator[str]:
    """Yield how a text may be written: as it is, in hexadecimal, in base64 wherever it begins within a longer one."""
    raw = mark.encode()
    yield mark
    yield raw.hex()
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + raw).decode().rstrip("=")
        # What depends on its neighbours doesn't count.
        yield encoded[4 if before else 0 : -2]


def shown(marks: Mapping[str, str], places: Mapping[str, str]) -> list[str]:
    """Return where which mark is shown, with the text around it.

    Args:
        marks: a mark's meaning -> the mark.
        places: where something was said -> what was said.
    """
    found: list[str] = []
    for meaning, mark in marks.items():
        for where, text in places.items():
            lower = text.lower()
            at = [lower.find(form.lower()) for form in forms(mark)]
            for place in [place for place in at if place >= 0]:
                found.append(f"{meaning} in {where}: ...{text[max(0, place - 200) : place + 100]}...")
    return found
