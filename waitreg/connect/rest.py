"""What this project asks of the REST API of Kafka Connect workers, and what their refusals mean."""

from __future__ import annotations

import base64
import contextlib
import http.client
import json
import logging
import ssl
import urllib.error
import urllib.request
from http import HTTPStatus
from typing import Any, Final
from urllib.parse import quote

from wait_registry.errors import ConfigurationError, TransientError
from wait_registry.settings.connect import ConnectSettings, require_connect
from waitreg.connect.state import ConnectorState

log = logging.getLogger(__name__)

_MAX_ANSWER_CHARS: Final = 500


class WorkerUnavailable(TransientError):
    """The worker doesn't answer, or can't at the moment: try again."""


class ConnectRest:
    """A cluster of workers: any of them answers for all, and the next is asked if one doesn't answer.

    Every method raises `WorkerUnavailable` if no answer comes or the worker reports that it can't, and
    ConfigurationError if it refuses us: the message says what to fix.
    """

    def __init__(self, settings: ConnectSettings) -> None:
        """Ask nothing yet.

        Args:
            settings: addresses and credentials of the workers.

        Raises:
            ConfigurationError: settings contradict each other.
        """
        require_connect(settings)
        self._urls = settings.urls
        self._timeout_s = settings.request_timeout_s
        self._headers = {"Accept": "application/json"}
        if settings.username is not None and settings.password is not None:
            pair = f"{settings.username}:{settings.password.get_secret_value()}"
            self._headers["Authorization"] = f"Basic {base64.b64encode(pair.encode()).decode()}"
        # Workers are in the same network: the proxy in this host's environment, for the internet, isn't used.
        handlers: list[urllib.request.BaseHandler] = [urllib.request.ProxyHandler({})]
        if any(url.startswith("https://") for url in self._urls):
            handlers.append(urllib.request.HTTPSHandler(context=_trusting(settings.ca)))
        self._opener = urllib.request.build_opener(*handlers)

    def require_healthy(self) -> None:
        """Raise WorkerUnavailable unless the worker is in its group and reads its topics (KIP-1017, Kafka 3.9)."""
        self._ask("GET", "/health")  # an older worker has no such path, and answers

    def states(self) -> dict[str, ConnectorState]:
        """Return all connectors of the cluster, by name."""
        path = "/connectors?expand=status&expand=info"  # a worker answers it in a rebalance too, from what it has read
        answer: dict[str, Any] | None = self._ask("GET", path)
        if answer is None:
            raise _no_worker(f"{self._urls[0]}{path} doesn't exist (404)")
        # A connector that is being created or deleted may have only one of the two.
        whole = {name: entry for name, entry in answer.items() if "status" in entry and "info" in entry}
        return {name: ConnectorState.of(entry["status"], entry["info"]) for name, entry in whole.items()}

    def restart_failed(self, name: str) -> None:
        """Restart a connector and its tasks, if they are FAILED (KIP-745); one that is gone isn't restarted."""
        self._ask("POST", f"/connectors/{quote(name, safe='')}/restart?includeTasks=true&onlyFailed=true")

    def _ask(self, method: str, path: str) -> Any:
        """Return the answer's JSON, an empty object if it has none, or None if the path doesn't exist."""
        for _ in self._urls[1:]:
            try:
                return self._ask_one(method, path)
            except WorkerUnavailable as error:
                self._urls = [*self._urls[1:], self._urls[0]]
                log.info("%s; the next one is asked, %s", error, self._urls[0])
        return self._ask_one(method, path)

    def _ask_one(self, method: str, path: str) -> Any:
        url = self._urls[0]
        request = urllib.request.Request(f"{url}{path}", headers=self._headers, method=method)
        try:
            with self._opener.open(request, timeout=self._timeout_s) as answer:
                return _json(answer.read(), url)
        except urllib.error.HTTPError as refused:
            with refused:
                if refused.code == HTTPStatus.NOT_FOUND:
                    return None
                raise _refusal(url, refused.code, refused.read()) from None
        except (OSError, http.client.HTTPException) as error:
            raise _silence(url, error) from None  # its reason is in the error


def _refusal(url: str, status: int, body: bytes) -> WorkerUnavailable | ConfigurationError:
    where, by_worker, said = f"the Kafka Connect worker at {url}", *_error(body)
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        return ConfigurationError(
            f"{where} refuses this user ({status}): correct connect.username and connect.password"
        )
    # A worker in a rebalance answers 409.
    if status == HTTPStatus.CONFLICT or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return WorkerUnavailable(f"{where} can't at the moment ({status}): {said}")
    if not by_worker:
        reason = said.removeprefix(f"{status}:").strip() or "no text"
        return _no_worker(f"{url} doesn't answer as a Kafka Connect worker does ({status}: {reason})")
    return ConfigurationError(f"{where} refuses it ({status}): {said}")


def _silence(url: str, error: Exception) -> WorkerUnavailable | ConfigurationError:
    reason = getattr(error, "reason", error)
    if isinstance(reason, ssl.SSLCertVerificationError):
        return ConfigurationError(
            f"the certificate of {url} isn't trusted ({reason.verify_message}): set connect.ca_file to the "
            "certificate of its authority, and connect.url to a name that is in it"
        )
    return WorkerUnavailable(f"no Kafka Connect worker answers at {url} ({reason}): start it, or correct connect.url")


def _trusting(ca: str | None) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cadata=ca)
    except ssl.SSLError as error:
        raise ConfigurationError(f"connect.ca holds no certificate that can be read ({error.reason})") from error


def _json(body: bytes, url: str) -> Any:
    try:
        return json.loads(body) if body.strip() else {}
    except ValueError as error:
        raise _no_worker(f"{url} answers with something else than JSON") from error


def _no_worker(seen: str) -> ConfigurationError:
    return ConfigurationError(f"{seen}: is connect.url the address of a worker?")


def _error(body: bytes) -> tuple[bool, str]:
    """Return whether a worker made this answer, and its message."""
    by_worker, text = False, body.decode("utf-8", "replace").strip()
    with contextlib.suppress(ValueError, KeyError, TypeError):
        answer = json.loads(text)
        by_worker = "error_code" in answer
        text = str(answer["message"])
    return by_worker, text if len(text) <= _MAX_ANSWER_CHARS else f"{text[: _MAX_ANSWER_CHARS - 1]}…"
