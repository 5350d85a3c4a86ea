"""The request of the Kafka protocol that asks a broker what it supports (ApiVersions), as bytes.

librdkafka sends it too, and passes on nothing of the answer. Version 3 (KIP-511, KIP-584) is answered by brokers since
2.4, before any authentication. See `ApiVersionsRequest.json` and `ApiVersionsResponse.json` of Kafka.
"""

from __future__ import annotations

import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from wait_registry.errors import PermanentError

API_VERSIONS: Final = 18
CONSUMER_GROUP_HEARTBEAT: Final = 68  # KIP-848
SHARE_GROUP_HEARTBEAT: Final = 76  # KIP-932

_VERSION: Final = 3
# Tags of the answer's optional fields.
_SUPPORTED: Final = 0
_FINALIZED: Final = 2


@dataclass(frozen=True, slots=True)
class BrokerSupport:
    """What a broker supports.

    Args:
        apis: the keys of the requests that it answers.
        supported: by the name of a feature, the highest level that this broker could have. A broker leaves out features
            that may be off, except ``metadata.version``.
        finalized: by the name of a feature, the level that the cluster has. A feature that is off is missing.
    """

    apis: frozenset[int]
    supported: Mapping[str, int] = field(default_factory=dict)
    finalized: Mapping[str, int] = field(default_factory=dict)


def _question() -> bytes:
    name = b"\x08waitreg"  # compact: the length plus one
    header = struct.pack(">hhi", API_VERSIONS, _VERSION, 0) + struct.pack(">h", 7) + b"waitreg" + b"\0"
    request = header + name + b"\x020" + b"\0"
    return struct.pack(">i", len(request)) + request


QUESTION: Final = _question()


def read_answer(answer: bytes) -> BrokerSupport:
    """Read the answer to `QUESTION`, without the length in front of it.

    Raises:
        PermanentError: the broker refuses the request, or the answer is none to this request.
    """
    try:
        return _Reader(answer).broker_support()
    except (struct.error, IndexError, UnicodeDecodeError) as error:
        raise PermanentError(f"the answer to ApiVersions can't be read: {error}; {len(answer)} bytes") from error


class _Reader:
    """Reads the fields of one answer, one after the other."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def broker_support(self) -> BrokerSupport:
        _, code = self._numbers(">ih")
        if code:
            raise PermanentError(f"the broker refuses ApiVersions version {_VERSION} with error {code}")
        apis = frozenset([self._api() for _ in range(self._length())])
        self._numbers(">i")  # throttle time
        features: dict[int, dict[str, int]] = {}
        for _ in range(self._varint()):
            tag, size = self._varint(), self._varint()
            end = self._at + size
            if tag in (_SUPPORTED, _FINALIZED):
                # Supported ones have the lowest level first, finalized ones the highest.
                features[tag] = dict(self._feature(tag == _SUPPORTED) for _ in range(self._length()))
            self._at = end
        if self._at > len(self._data):
            raise IndexError("it ends too early")
        return BrokerSupport(apis, features.get(_SUPPORTED, {}), features.get(_FINALIZED, {}))

    def _api(self) -> int:
        key, _, _ = self._numbers(">hhh")
        self._skip_tags()
        return key

    def _feature(self, lowest_first: bool) -> tuple[str, int]:
        size = self._length()
        name = self._data[self._at : self._at + size].decode()
        self._at += size
        first, second = self._numbers(">hh")
        self._skip_tags()
        return name, second if lowest_first else first

    def _numbers(self, layout: str) -> tuple[int, ...]:
        found = struct.unpack_from(layout, self._data, self._at)
        self._at += struct.calcsize(layout)
        return found

    def _length(self) -> int:
        """Return the length of a compact string or array; none counts as empty."""
        return max(0, self._varint() - 1)

    def _varint(self) -> int:
        number = shift = 0
        while True:
            byte = self._data[self._at]
            self._at += 1
            number |= (byte & 0x7F) << shift
            if byte < 0x80:
                return number
            shift += 7

    def _skip_tags(self) -> None:
        for _ in range(self._varint()):
            self._varint()  # the tag
            size = self._varint()
            self._at += size
