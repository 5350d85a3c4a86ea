"""Reads the answers of one HTTP/1.1 connection, bytes in and values out (RFC 9112).

llhttp reads the syntax, which is the parser of Node.js, by way of httptools.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final

from httptools import HttpParserError, HttpParserUpgrade, HttpResponseParser

# As aiohttp and most servers: of one line of the head, and of the head, bytes.
_LINE_LIMIT: Final = 8_190
_HEAD_LIMIT: Final = 65_536
_SWITCHING_PROTOCOLS: Final = 101
_SHOWN_CHARACTERS: Final = 200


@dataclass(frozen=True, slots=True)
class Answer:
    """What decides: the status, its reason phrase, and the header Retry-After if there is one."""

    status: int
    reason: str
    retry_after: str | None


class BrokenAnswerError(Exception):
    """What a service sent isn't an answer; the text says why and repeats no more of it than the parser does."""


class AnswerReader:
    """Reads one answer after the other; the body is passed over.

    Attributes:
        reusable: whether the connection may have another request after the last answer.
    """

    def __init__(self) -> None:
        self._parser = HttpResponseParser(self)
        self.reusable = True
        self.begin()

    def begin(self) -> None:
        """Begin with the next answer."""
        self._answer: Answer | None = None
        self._begin_head()

    def _begin_head(self) -> None:
        self._reason = b""
        self._retry_after: str | None = None
        self._in_head = True
        self._head_size = 0
        self._has_length = self._is_chunked = self._is_encoded = False
        self._longest = 0

    def feed(self, data: bytes | memoryview) -> Answer | None:
        """Read what has come, and return the answer if it is whole.

        Raises:
            BrokenAnswerError: it can't be one.
        """
        if self._in_head:
            self._head_size += len(data)
        try:
            self._parser.feed_data(data)
        except HttpParserUpgrade:
            self.reusable = False
        except HttpParserError as error:
            self.reusable = False
            if self._answer is None:
                raise BrokenAnswerError(f"the answer isn't HTTP/1.1: {error!s:.{_SHOWN_CHARACTERS}}") from None
        if self._longest > _LINE_LIMIT or (self._in_head and self._head_size > _HEAD_LIMIT):
            raise BrokenAnswerError(
                f"the head of the answer is too long; expected at most {_LINE_LIMIT:,} bytes in a line and "
                f"{_HEAD_LIMIT:,} in all"
            )
        return self._answer

    def end(self) -> Answer | None:
        """Return the answer that ends with the connection (RFC 9112, section 6.3, rule 8); None if it isn't whole."""
        self.reusable = False
        until_end = not self._is_chunked if self._is_encoded else not self._has_length
        return self._read() if not self._in_head and until_end else None

    def _read(self) -> Answer:
        return Answer(self._parser.get_status_code(), self._reason.decode("latin-1"), self._retry_after)

    # ---- called by the parser

    def on_message_begin(self) -> None:
        """Note bytes behind a whole answer, which no request has asked for."""
        if self._answer is not None:
            self.reusable = False

    def on_status(self, reason: bytes) -> None:
        if self._in_head:
            self._reason += reason  # it may come in parts
            self._longest = max(self._longest, len(self._reason))

    def on_header(self, name: bytes, value: bytes) -> None:
        if not self._in_head:
            return  # a trailer
        self._longest = max(self._longest, len(name) + len(value))
        lower = name.lower()
        if lower == b"content-length":
            self._has_length = True
        elif lower == b"transfer-encoding":
            self._is_encoded = True
            self._is_chunked = value.lower().rpartition(b",")[2].strip() == b"chunked"
        elif lower == b"retry-after":
            self._retry_after = value.decode("latin-1")

    def on_headers_complete(self) -> None:
        self._in_head = False

    def on_message_complete(self) -> None:
        if self._answer is not None:
            return
        status = self._parser.get_status_code()
        if 100 <= status < 200 and status != _SWITCHING_PROTOCOLS:
            # An interim answer: the answer follows.
            self._begin_head()
            return
        self._answer = self._read()
        self.reusable = self.reusable and self._parser.should_keep_alive()
