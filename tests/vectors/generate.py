"""Write the golden vectors that hold binary data: `python -m tests.vectors.generate` in the project's root.

Neither this nor `generating` uses anything of the project, so that the vectors can't agree with it by habit.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Final

from tests.vectors.generating.expired import expired_vectors
from tests.vectors.generating.headers_json import headers_json_vectors
from tests.vectors.generating.identity import tombstone_vectors, wait_id_vectors
from tests.vectors.generating.lineage import lineage_vectors
from tests.vectors.generating.republished import dead_letter_vectors, redelivery_vectors
from tests.vectors.generating.vector import Json
from tests.vectors.generating.wait_record import legacy_vectors, wait_record_vectors

FOLDER: Final = Path(__file__).parent


def golden_files() -> dict[str, str]:
    """Return the text of each vector file that isn't written by hand, by its name."""
    files: dict[str, tuple[str, list[Json]]] = {
        "wait_id": ("The deterministic id of a registration.", wait_id_vectors()),
        "headers_json": ("Original headers in JSON.", headers_json_vectors()),
        "wait_record": ("Records of the wait topic.", wait_record_vectors()),
        "wait_record_legacy": ("Records of the wait topic, legacy format: only read.", legacy_vectors()),
        "tombstone": ("How a registration ended.", tombstone_vectors()),
        "lineage": ("The block behind the headers of republished records.", lineage_vectors()),
        "dead_letter": ("Records of dead letter topics.", dead_letter_vectors()),
        "redelivery": ("Redelivered records, and what a processor makes of what it consumes.", redelivery_vectors()),
        "expired": ("Rows of expired registrations, and what is published for them.", expired_vectors()),
    }
    return {f"{name}.json": _text(about, vectors) for name, (about, vectors) in files.items()}


def _text(about: str, vectors: list[Json]) -> str:
    """One vector a line: a changed one shows as a changed line."""
    lines = ",\n".join("  " + json.dumps(vector) for vector in vectors)
    return f'{{\n "about": {json.dumps(about)},\n "vectors": [\n{lines}\n ]\n}}\n'


if __name__ == "__main__":
    for name, text in golden_files().items():
        (FOLDER / name).write_text(text, encoding="ascii")
