"""Vectors of the wait id and of the tombstone."""

from __future__ import annotations

import hashlib

from tests.vectors.generating.vector import Json, listed, vector


def reference_wait_id(cluster: str, topic: str, partition: int, offset: int, group: str, timestamp_ms: int) -> str:
    """Build the id as the contract words it, as a text of 128 bits."""
    text = "waitreg1\n" + cluster + "\n" + topic + "\n" + str(partition) + "\n" + str(offset) + "\n" + group
    hashed = "".join(format(byte, "08b") for byte in hashlib.sha256(text.encode("utf-8")).digest())
    time = format(min(max(timestamp_ms, 0), 2**48 - 1), "048b")
    bits = time + "1000" + hashed[0:12] + "10" + hashed[12:74]
    digits = "".join(format(int(bits[at : at + 4], 2), "x") for at in range(0, 128, 4))
    return "-".join((digits[0:8], digits[8:12], digits[12:16], digits[16:20], digits[20:32]))


def wait_id_vectors() -> list[Json]:
    cluster = "MkU3OEVBNTcwNTJENDM2Qg"
    cases: dict[str, tuple[str, str, int, int, str, int]] = {
        "an ordinary record": (cluster, "orders", 3, 1234567, "billing", 1795227600123),
        "the next offset": (cluster, "orders", 3, 1234568, "billing", 1795227600123),
        "another group": (cluster, "orders", 3, 1234567, "shipping", 1795227600123),
        "another cluster": ("other", "orders", 3, 1234567, "billing", 1795227600123),
        "no timestamp (-1) counts as 0": ("c", "t", 0, 0, "g", -1),
        "a negative timestamp counts as 0": ("c", "t", 0, 0, "g", -(2**63)),
        "the epoch": ("c", "t", 0, 0, "g", 0),
        "the last timestamp of 48 bits": ("c", "t", 0, 0, "g", 2**48 - 1),
        "a timestamp beyond 48 bits counts as the last": ("c", "t", 0, 0, "g", 2**48),
        "the largest numbers": ("c", "t", 2**31 - 1, 2**63 - 1, "g", 2**63 - 1),
        "a group beyond ASCII": ("c", "t", 1, 2, "gr\u00fcppe-\U0001f600", 1),
    }
    keys = ("cluster_id", "topic", "partition", "offset", "group", "timestamp_ms")
    return [
        vector(name, "wait_id", dict(zip(keys, case, strict=True)), reference_wait_id(*case))
        for name, case in cases.items()
    ]


def tombstone_vectors() -> list[Json]:
    outcomes = ("done", "retried", "dead_lettered", "discarded", "expired", "redelivered")
    vectors = [vector(word, "encode", word, listed([("WAIT_OUTCOME", word.encode())])) for word in outcomes]
    vectors += [vector(word, "decode", listed([("WAIT_OUTCOME", word.encode())]), word) for word in outcomes]
    silent: dict[str, list[tuple[str, bytes | None]]] = {
        "no headers": [],
        "other headers only": [("a", b"done")],
        "an unknown word": [("WAIT_OUTCOME", b"lost")],
        "capitals": [("WAIT_OUTCOME", b"DONE")],
        "a null": [("WAIT_OUTCOME", None)],
        "nothing": [("WAIT_OUTCOME", b"")],
        "not UTF-8": [("WAIT_OUTCOME", b"\xff")],
    }
    vectors += [vector(name, "decode", listed(headers), None) for name, headers in silent.items()]
    twice: list[tuple[str, bytes | None]] = [("WAIT_OUTCOME", b"done"), ("a", b""), ("WAIT_OUTCOME", b"expired")]
    return [*vectors, vector("of two the last counts", "decode", listed(twice), "expired")]
