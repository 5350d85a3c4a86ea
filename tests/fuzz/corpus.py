"""The kept inputs: a text file a target, an input a line in base64, smallest first."""

from __future__ import annotations

from base64 import b64decode, b64encode
from collections.abc import Iterable
from hashlib import sha256
from pathlib import Path

FOLDER = Path(__file__).parent / "corpus"
# What the corpora of all targets may take together is a megabyte.
MAX_FILE_BYTES = 64 * 1024


def corpus_of(name: str) -> list[bytes]:
    """Return a target's kept inputs."""
    path = FOLDER / f"{name}.txt"
    return [b64decode(line) for line in path.read_text("ascii").splitlines()] if path.exists() else []


def keep(name: str, inputs: Iterable[bytes]) -> int:
    """Write a target's inputs, the smallest of them as far as there is room; returns how many."""
    lines: list[str] = []
    room = MAX_FILE_BYTES
    for one in sorted(set(inputs), key=lambda data: (len(data), data)):
        line = b64encode(one).decode()
        room -= len(line) + 1
        if room < 0:
            break
        lines.append(line)
    (FOLDER / f"{name}.txt").write_text("".join(f"{line}\n" for line in lines), "ascii")
    return len(lines)


def unpack(inputs: Iterable[bytes], folder: Path) -> None:
    """Write inputs as a file each, named by their hash, as libFuzzer reads them."""
    folder.mkdir(parents=True, exist_ok=True)
    for one in inputs:
        (folder / sha256(one).hexdigest()[:16]).write_bytes(one)
