"""The HTTP handler: one POST per record."""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime
from importlib.metadata import version
from typing import Final
from urllib.parse import unquote

from aiohttp import BasicAuth
from yarl import URL

from processor.handlers.descriptors import require_descriptors
from processor.handlers.forwarded_headers import ForwardedHeaders
from processor.handlers.http_answer import Answer, BrokenAnswerError
from processor.handlers.http_connections import Connections, Origin
from processor.handlers.open_handler import OpenHandler
from processor.handlers.url_template import url_template
from wait_registry.clock import Clock, SystemClock
from wait_registry.errors import ConfigurationError, PermanentError, TransientError
from wait_registry.handler import Discard, HandlerResult, Record
from wait_registry.settings.http import HttpHandlerSettings
from wait_registry.telemetry.tracing import HttpHeadersSource

# What would end a header (RFC 9110, section 5.5); topic and IDs may come from another program.
_CONTROL: Final = re.compile(r"[\x00-\x08\x0a-\x1f\x7f]")
# Each of the headers with topic and IDs ends with two.
_CONTROLS_OF_ORIGIN: Final = 6
_AUTHORIZATION: Final = "authorization"


@dataclass(eq=False, repr=False)
class HttpHandler(OpenHandler):
    """POSTs the value and decides by the status.

    2xx is done, ``retry_statuses`` and connection errors are tried again (after ``Retry-After`` when given), statuses
    in ``discard_statuses`` discard the record, all others dead-letter it. Redirects aren't followed, so a POST is never
    repeated at another address. The body is read and ignored.

    Args:
        url: where to POST to, with the places of headers in its path.
        settings: statuses, forwarded headers, content type.
        max_in_flight: connections kept at most.
        clock: for ``Retry-After`` dates.
        trace_headers: gives the headers that carry the trace on, if tracing is on; a record's own are then not sent,
            whatever ``forward_headers`` says.

    Raises:
        ConfigurationError: no record could ever be sent to the URL.
    """

    url: str
    settings: HttpHandlerSettings
    max_in_flight: int
    clock: Clock = field(default_factory=SystemClock)
    trace_headers: HttpHeadersSource | None = None

    def __post_init__(self) -> None:
        self.url_of = url_template(self.url)
        url = URL(self.url)
        self._credentials = BasicAuth.from_url(url)
        # The URL's own credentials are sent instead of a record's.
        names = [
            name for name in self.settings.forward_headers if not self._credentials or name.lower() != _AUTHORIZATION
        ]
        self._forwarded = ForwardedHeaders(names, self.trace_headers)
        # In a URL, the % in front of the zone of an IPv6 address is encoded (RFC 6874).
        self._host, self._port = unquote(url.raw_host or ""), url.port or 0
        self._tls = url.scheme == "https"
        self._same_headers = self._headers_of_all(url)
        self._connections: Connections | None = None

    async def open(self) -> None:
        """Get ready to connect.

        Raises:
            ConfigurationError: the process may not have as many connections as calls.
        """
        require_descriptors(self.max_in_flight)
        tls = ssl.create_default_context() if self._tls else None
        self._connections = Connections(Origin(self._host, self._port, tls), self.max_in_flight)

    async def close(self) -> None:
        """Close the connections."""
        if self._connections is not None:
            self._connections.close()

    async def call(self, record: Record) -> HandlerResult:
        """Send one record; what it raises is what the handler contract says about retrying.

        Raises:
            TransientError: no connection, or a status to try again.
            PermanentError: any other status, a redirect among them, or a record whose topic no header can carry.
            MalformedError: the URL takes a header that the record lacks.
        """
        if self._connections is None:
            raise ConfigurationError("the HTTP handler was called before it was opened")
        value = record.value or b""
        head = self.head_of(record, len(value))
        try:
            answer = await self._connections.exchange(head, value)
        except ssl.SSLCertVerificationError as error:
            raise TransientError(self._refused(error)) from error
        except (BrokenAnswerError, OSError) as error:
            # Neither has the URL, password and all, in its text, which goes into every dead letter.
            raise TransientError(f"POST failed: {type(error).__name__}: {error}") from error
        return self._result_of(answer)

    def _headers_of_all(self, url: URL) -> str:
        """Return the headers that all requests have in common."""
        # Without the zone of an IPv6 address, which is this host's own (RFC 6874, section 1).
        host = re.sub(r"%[^\]]*", "", url.host_port_subcomponent or "")
        lines = [
            f"Host: {host}",
            "Accept: */*",
            f"User-Agent: wait-registry/{version('wait-registry')}",
            f"Content-Type: {self.settings.content_type}",
        ]
        if self._credentials is not None:
            lines.append(f"Authorization: {self._credentials.encode()}")
        return "".join(f"{line}\r\n" for line in lines)

    def head_of(self, record: Record, length: int) -> bytes:
        """Return what a request begins with; its body has ``length`` bytes.

        Raises:
            PermanentError: a header would have a control character.
            MalformedError: the URL takes a header that the record lacks.
        """
        origin = (
            f"Idempotency-Key: {record.idempotency_key}\r\n"
            f"X-Waitreg-Wait-Id: {record.wait_id}\r\n"
            f"X-Waitreg-Topic: {record.topic}\r\n"
        )
        if len(_CONTROL.findall(origin)) > _CONTROLS_OF_ORIGIN:
            raise PermanentError("the record's topic or ID has a control character, which an HTTP header can't have")
        forwarded = "".join([f"{name}: {value}\r\n" for name, value in self._forwarded.of(record)])
        return (
            f"POST {self.url_of(record).raw_path_qs} HTTP/1.1\r\n{self._same_headers}{origin}"
            f"X-Waitreg-Partition: {record.partition}\r\n"
            f"X-Waitreg-Offset: {record.offset}\r\n"
            f"X-Waitreg-Delivery: {record.delivery}\r\n"
            f"{forwarded}Content-Length: {length}\r\n\r\n"
        ).encode()

    def _result_of(self, answer: Answer) -> HandlerResult:
        status = answer.status
        if 200 <= status < 300:
            return None
        seen = f"the service answered {status} {answer.reason}".rstrip()
        if status in self.settings.discard_statuses:
            return Discard(seen)
        if status in self.settings.retry_statuses:
            raise TransientError(seen, retry_after_s=self._retry_after_s(answer.retry_after))
        if 300 <= status < 400:
            raise PermanentError(f"{seen}, a redirect; redirects are not followed: set processor.handler to its target")
        raise PermanentError(seen)

    def _retry_after_s(self, text: str | None) -> float | None:
        """Read seconds or an HTTP date (RFC 9110, section 10.2.3); None when it is neither."""
        if text is None:
            return None
        if text.strip().isdecimal():
            return float(text)
        try:
            return max(0.0, parsedate_to_datetime(text).timestamp() - self.clock.now_ms() / 1000)
        except (ValueError, OverflowError):
            return None

    def _refused(self, error: ssl.SSLCertVerificationError) -> str:
        return (
            f"POST failed: the certificate that {self._host}:{self._port} shows is refused: {error.verify_message}. It "
            "must name this host, be in date, and be signed by an authority of the system's store (or of the file that "
            "SSL_CERT_FILE names). Fix that, or the address in processor.handler"
        )
