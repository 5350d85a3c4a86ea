"""Check that the telemetry port is free or used by a service of ours."""

from __future__ import annotations

import errno
import http.client
import json
import re
import socket
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from wait_registry.cli.checks.check import Concerned
from wait_registry.diagnosis import Diagnosis, error, ok, warning
from wait_registry.settings.root import Settings

_ANSWER_S: Final = 3.0
_SERVICE: Final = re.compile(r'^waitreg_ready\{[^}]*service="(\w+)"', re.MULTILINE)
_GROUP: Final = re.compile(r'^waitreg_processor_info\{[^}]*consumer_group="([^"]+)"', re.MULTILINE)
_MOST_BYTES: Final = 4 << 20


class Listener(NamedTuple):
    """A service of ours that listens: why it isn't ready, its name and consumer group.

    Each is empty if its metrics don't have it. They never have the cluster.
    """

    service: str
    reasons: tuple[str, ...]
    group: str = ""

    def __str__(self) -> str:
        group = f" of the group {self.group}" if self.group else ""
        state = f"not ready: {'; '.join(self.reasons)}" if self.reasons else "ready"
        return f"running {self.service or 'service'}{group}, {state}"


def telemetry_port(services: Sequence[Concerned], settings: Settings) -> Iterator[Diagnosis]:
    """Try to listen; if the port is taken, ask by which service."""
    host, port = settings.telemetry.host, settings.telemetry.port
    where = f"{host}:{port}"
    failure = _bind(host, port)
    if failure is None:
        yield ok(f"{where} is free" if port else f"any free one of {host}")
    elif failure.errno == errno.EADDRINUSE:
        yield taken(where, _who(host, port), services, settings.processor.group)
    else:
        fix = "set telemetry.host to an address of this host, telemetry.port to one that this user may take"
        yield error(f"can't listen on {where}: {failure.strerror or failure}", fix)


def taken(where: str, listener: Listener | None, services: Sequence[Concerned], group: str) -> Diagnosis:
    """Judge that a port is taken by this listener, None for another program.

    A service of ours that isn't being checked is only a warning: on a host with several services, each may be started
    with its own port, which these settings needn't have.
    """
    if listener is None:
        seen = f"{where} is taken by something that isn't a service of wait-registry"
        return error(seen, "set telemetry.port to a free one (0 takes any)")
    another = listener.service and listener.service not in services
    if another or (listener.group and listener.group != group):
        fix = "give each service of a host its own telemetry.port when it starts (0 takes any free one)"
        return warning(f"{where} is taken by a {listener}", fix)
    return ok(f"{where} is in use by a {listener}")


def _bind(host: str, port: int) -> OSError | None:
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        with socket.socket(family, kind, protocol) as probe:
            # As the service does, so that lingering connections of an earlier run don't matter.
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            probe.bind(address)
    except OSError as error:
        return error
    return None


def _who(host: str, port: int) -> Listener | None:
    reachable = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    try:
        health = json.loads(_get(reachable, port, "/health/ready"))
        if not isinstance(health["ok"], bool):
            return None
        metrics = _get(reachable, port, "/metrics")
        service, group = (named.group(1) if (named := name.search(metrics)) else "" for name in (_SERVICE, _GROUP))
        return Listener(service, tuple(map(str, health["reasons"])), group)
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError):
        return None


def _get(host: str, port: int, path: str) -> str:
    connection = http.client.HTTPConnection(host, port, timeout=_ANSWER_S)
    try:
        connection.request("GET", path)
        return connection.getresponse().read(_MOST_BYTES).decode("utf-8", "replace")
    finally:
        connection.close()
