"""P7, P8: what `make fuzz` has found worth keeping, and the golden vectors, are read again as it reads them."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.fuzz.inputs import CORPUS, MAX_FILE_BYTES, corpus_of
from tests.fuzz.targets import TARGETS

MEASURED_ONE_IN = 8
BOMB_BYTES = 512 * 1024


def bombs() -> Iterator[tuple[str, bytes]]:
    """Yield headers JSON that is small to send and large to read, each of about the same size."""
    size = BOMB_BYTES
    yield "lists", b"[" + b"[]," * (size // 3) + b"[]]"
    yield "objects", b"[" + b"{}," * (size // 3) + b"{}]"
    yield "numbers", b"[" + b"999," * (size // 4) + b"1]"
    yield "floats", b"[" + b"1.5," * (size // 4) + b"1]"
    yield "a million headers' worth", b"[" + b'["",null],' * (size // 10) + b'["",null]]'
    yield "members", b"{" + b",".join(b'"%x":""' % number for number in range(size // 9)) + b"}"
    yield "one member again and again", b"{" + b'"":[],' * (size // 6) + b'"":""}'
    yield "depth", b"[" * (size // 2) + b"]" * (size // 2)
    yield "depth that the parser takes", b"[" + (b"[" * 1000 + b"]" * 1000 + b",") * (size // 2001) + b"1]"
    yield "a large integer", b"[" + b"9" * size + b"]"
    yield "a long fraction", b"[0." + b"9" * size + b"]"
    yield "base64", b'[["name","' + b"A" * size + b'"]]'
    yield "escapes", b'[["' + b"\\u0000" * (size // 6) + b'",null]]'
    yield "blanks", b" " * size + b"[]"


@pytest.mark.parametrize("name", TARGETS)
def test_every_kept_input_is_read_as_it_must_be(name: str) -> None:
    target = TARGETS[name]
    inputs = [*target.seeds(), *corpus_of(name)]
    assert inputs
    for number, data in enumerate(inputs):
        try:
            target.check(data)
            if number % MEASURED_ONE_IN == 0:
                target.require_bounded(data)
        except Exception as error:
            error.add_note(f"target {name}, input {data!r}")
            raise


@pytest.mark.guarantee("P7.12")
@pytest.mark.parametrize("data", [pytest.param(data, id=kind) for kind, data in bombs()])
def test_a_bomb_of_headers_takes_memory_and_time_in_proportion(data: bytes) -> None:
    TARGETS["headers_json"].require_bounded(data)


def test_the_corpora_stay_small_and_belong_to_a_target() -> None:
    assert {path.stem for path in CORPUS.iterdir()} <= TARGETS.keys()
    assert all(path.stat().st_size <= MAX_FILE_BYTES for path in CORPUS.iterdir())
