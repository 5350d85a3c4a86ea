"""A DNS server that knows one name, whose addresses the test chooses."""

from __future__ import annotations

import asyncio
import struct
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from ipaddress import IPv4Address

from wait_registry.local.ports import LOOPBACK

_HEADER = struct.Struct(">6H")
_ANSWERED, _ADDRESS, _INTERNET, _NO_TTL = 0x8180, 1, 1, 0
# The name of an answer is that of the question, which begins behind the header.
_SAME_NAME = 0xC000 | _HEADER.size


class NameServer(asyncio.DatagramProtocol):
    """Answers each question for an IPv4 address with all addresses, and others with none.

    Args:
        addresses: of the name; the test may change them.
    """

    def __init__(self, addresses: Sequence[str]) -> None:
        self.addresses = addresses
        self.port = 0
        self._transport: asyncio.DatagramTransport | None = None

    def connection_made(self, transport: asyncio.DatagramTransport) -> None:  # type: ignore[override]
        self._transport = transport
        self.port = transport.get_extra_info("sockname")[1]

    def datagram_received(self, data: bytes, addr: tuple[str, int]) -> None:
        assert self._transport is not None
        (query, *_) = _HEADER.unpack_from(data)
        end = data.index(b"\0", _HEADER.size) + 5
        (kind,) = struct.unpack_from(">H", data, end - 4)
        addresses = self.addresses if kind == _ADDRESS else ()
        answers = [
            struct.pack(">3HIH", _SAME_NAME, _ADDRESS, _INTERNET, _NO_TTL, 4) + IPv4Address(address).packed
            for address in addresses
        ]
        header = _HEADER.pack(query, _ANSWERED, 1, len(answers), 0, 0)
        self._transport.sendto(header + data[_HEADER.size : end] + b"".join(answers), addr)

    def close(self) -> None:
        """Stop answering."""
        assert self._transport is not None
        self._transport.close()


@asynccontextmanager
async def name_server(addresses: Sequence[str]) -> AsyncIterator[NameServer]:
    """Answer on a free port of loopback until the block ends."""
    loop = asyncio.get_running_loop()
    _, server = await loop.create_datagram_endpoint(lambda: NameServer(addresses), (LOOPBACK, 0))
    try:
        yield server
    finally:
        server.close()
