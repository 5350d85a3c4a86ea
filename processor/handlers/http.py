"""The HTTP handler: one POST per record."""

from __future__ import annotations

from dataclasses import dataclass, field
from email.utils import parsedate_to_datetime

import aiohttp
from aiohttp import ClientResponse, ClientSession, ClientTimeout, DummyCookieJar, TCPConnector

from processor.handlers.descriptors import require_descriptors
from processor.handlers.forwarded_headers import ForwardedHeaders
from processor.handlers.open_handler import OpenHandler
from processor.handlers.url_template import url_template
from wait_registry.clock import Clock, SystemClock
from wait_registry.errors import ConfigurationError, PermanentError, TransientError
from wait_registry.handler import Discard, HandlerResult, Record
from wait_registry.settings.processor import HttpHandlerSettings
from wait_registry.telemetry.tracing import HttpHeadersSource

_RETRY_AFTER = "Retry-After"
# Of what a service sent in place of an answer.
_SHOWN_CHARACTERS = 200


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
        self._forwarded = ForwardedHeaders(self.settings.forward_headers, self.trace_headers)
        self._session: ClientSession | None = None

    async def open(self) -> None:
        """Open the connection pool.

        Raises:
            ConfigurationError: the process may not have as many connections as calls.
        """
        require_descriptors(self.max_in_flight)
        connector = TCPConnector(limit=self.max_in_flight, limit_per_host=self.max_in_flight)
        # The worker's deadline ends an attempt; the client's own would be a second, different one.
        self._session = ClientSession(
            connector=connector,
            timeout=ClientTimeout(total=None),
            auto_decompress=False,
            # The cookies of one record's answer must not go to the next request.
            cookie_jar=DummyCookieJar(),
        )

    async def close(self) -> None:
        """Close the connections."""
        if self._session is not None:
            await self._session.close()

    async def call(self, record: Record) -> HandlerResult:
        """Send one record; what it raises is what the handler contract says about retrying.

        Raises:
            TransientError: no connection, or a status to try again.
            PermanentError: any other status, a redirect among them.
            MalformedError: the URL takes a header that the record lacks.
        """
        if self._session is None:
            raise ConfigurationError("the HTTP handler was called before it was opened")
        try:
            async with self._session.post(
                self.url_of(record), data=record.value or b"", headers=self._headers(record), allow_redirects=False
            ) as response:
                await _drain(response)
                return self._result_of(response)
        except aiohttp.InvalidURL:
            # Its text is the URL, password and all, and would go into every dead letter.
            raise PermanentError("POST failed: processor.handler is not a URL that can be called") from None
        except aiohttp.ClientConnectorCertificateError as error:
            raise TransientError(_refused(error)) from error
        except aiohttp.ClientResponseError as error:
            # As above; `from None` keeps it out of the stack trace, too.
            seen = f"{error.status}, {error.message:.{_SHOWN_CHARACTERS}}"
            raise TransientError(f"POST failed: {type(error).__name__}: {seen}") from None
        except aiohttp.ClientError as error:
            raise TransientError(f"POST failed: {type(error).__name__}: {error}") from error

    def _headers(self, record: Record) -> list[tuple[str, str]]:
        return [
            ("Content-Type", self.settings.content_type),
            ("Idempotency-Key", record.idempotency_key),
            ("X-Waitreg-Wait-Id", record.wait_id),
            ("X-Waitreg-Topic", record.topic),
            ("X-Waitreg-Partition", str(record.partition)),
            ("X-Waitreg-Offset", str(record.offset)),
            ("X-Waitreg-Delivery", str(record.delivery)),
            *self._forwarded.of(record),
        ]

    def _result_of(self, response: ClientResponse) -> HandlerResult:
        status = response.status
        seen = f"the service answered {status} {response.reason or ''}".rstrip()
        if 200 <= status < 300:
            return None
        if status in self.settings.discard_statuses:
            return Discard(seen)
        if status in self.settings.retry_statuses:
            raise TransientError(seen, retry_after_s=self._retry_after_s(response.headers.get(_RETRY_AFTER)))
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


def _refused(error: aiohttp.ClientConnectorCertificateError) -> str:
    seen = getattr(error.certificate_error, "verify_message", "") or str(error.certificate_error)
    return (
        f"POST failed: the certificate that {error.host}:{error.port} shows is refused: {seen}. It must name this "
        "host, be in date, and be signed by an authority of the system's store (or of the file that SSL_CERT_FILE "
        "names). Fix that, or the address in processor.handler"
    )


async def _drain(response: ClientResponse) -> None:
    # A connection is reused only after its answer has been read.
    async for _ in response.content.iter_chunked(65_536):
        pass
