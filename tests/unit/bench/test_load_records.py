"""What the benchmark's topics are filled with."""

from __future__ import annotations

from collections import Counter
from random import Random
from zlib import compress

from bench.contenders.load import SEED, VALUE_BYTES, Share, call_lengths, fillers
from bench.contenders.payload import HEAD_BYTES
from bench.contenders.wait_log import pool_piece

MIXTURE = (Share(10, 1000), Share(90, 200))


def test_calls_take_so_long_in_exact_shares_and_in_the_same_order_each_time() -> None:
    lengths = call_lengths(MIXTURE)
    assert Counter(lengths) == {1000: 1000, 200: 9000}
    again = [1000] * 1000 + [200] * 9000
    Random(SEED).shuffle(again)
    assert list(lengths) == again


def test_values_have_their_size_exactly() -> None:
    for size in (VALUE_BYTES, 2000, HEAD_BYTES + 1, HEAD_BYTES):
        assert {len(filler) + HEAD_BYTES for filler in fillers(size)} == {size}


def test_large_values_hardly_compress() -> None:
    size = 20_000
    values = b"".join(pool_piece(index, size) for index in range(20))
    assert len(values) == 20 * size
    # Hexadecimal digits: half of each byte, which zlib finds and lz4 doesn't.
    assert len(compress(values)) > 0.5 * len(values)
