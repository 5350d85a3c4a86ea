"""Contents that differ by little."""

from __future__ import annotations

from tests.unit.chaos.breaches.planting import Choose
from wait_registry.demo.fingerprint import Fingerprint, fingerprint


def other_content(content: Fingerprint, choose: Choose) -> Fingerprint:
    """Return a content that differs in one part."""
    empty = fingerprint(b"", b"", ())
    return choose(
        [
            Fingerprint(None, content.value, content.headers),
            Fingerprint(empty.key, content.value, content.headers),
            Fingerprint(content.key, None, content.headers),
            Fingerprint(content.key, empty.value, content.headers),
            Fingerprint(content.key, content.value, empty.headers),
        ]
    )
