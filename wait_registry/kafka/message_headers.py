"""The headers of a consumed message, which the client can't always read."""

from __future__ import annotations

from collections.abc import Callable
from operator import methodcaller
from typing import Final

from confluent_kafka import Message

from wait_registry.records.headers import Headers

# What confluent-kafka 2.16 raises for a name that isn't UTF-8. It must not be asked again then: the list that it would
# return holds a null pointer as the name.
UNREADABLE: Final = (SystemError, UnicodeDecodeError)

# Not `message.headers()`: once CPython (3.11 on) has specialised that call, it doesn't check any more that a result
# comes without an exception: the list with the null pointer would get through, and the exception at some later line.
headers_of: Final[Callable[[Message], Headers | None]] = methodcaller("headers")
