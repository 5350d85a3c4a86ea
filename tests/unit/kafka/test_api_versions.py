"""The answer of a broker to ApiVersions, as real brokers gave it."""

from __future__ import annotations

from pathlib import Path

import pytest

from wait_registry.errors import PermanentError
from wait_registry.kafka.api_versions import CONSUMER_GROUP_HEARTBEAT, SHARE_GROUP_HEARTBEAT, read_answer

ANSWERS = Path(__file__).parent / "api_versions"


def answer_of(version: str) -> bytes:
    return bytes.fromhex((ANSWERS / f"kafka-{version}.hex").read_text("ascii"))


@pytest.mark.parametrize(
    ("version", "level", "shares", "finalized"),
    [
        ("3.9.1", 21, False, {"kraft.version": 1, "metadata.version": 21}),
        (
            "4.2.1",
            29,
            True,
            {
                "eligible.leader.replicas.version": 1,
                "group.version": 1,
                "kraft.version": 1,
                "metadata.version": 29,
                "share.version": 1,
                "streams.version": 1,
                "transaction.version": 2,
            },
        ),
    ],
)
def test_requests_and_features_of_a_broker_are_read(
    version: str, level: int, shares: bool, finalized: dict[str, int]
) -> None:
    support = read_answer(answer_of(version))
    assert support.supported == {"metadata.version": level}
    assert support.finalized == finalized
    assert CONSUMER_GROUP_HEARTBEAT in support.apis, "3.9 lists it without the feature"
    assert (SHARE_GROUP_HEARTBEAT in support.apis) is shares


def test_an_answer_that_is_cut_anywhere_is_refused() -> None:
    whole = answer_of("4.2.1")
    for size in range(len(whole)):
        with pytest.raises(PermanentError, match="ApiVersions"):
            read_answer(whole[:size])


def test_a_refusal_is_named_with_its_code() -> None:
    with pytest.raises(PermanentError, match="refuses ApiVersions version 3 with error 35"):
        read_answer(b"\0\0\0\0\0\x23\0\0\0\0")
