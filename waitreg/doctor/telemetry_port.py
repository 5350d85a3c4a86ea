"""Check that the telemetry port is free or used by a service of ours."""

from __future__ import annotations

import errno
import http.client
import re
import socket
from collections.abc import Iterator, Sequence
from typing import Final

from wait_registry.diagnosis import Diagnosis, error, ok, warning
from wait_registry.settings.root import Settings
from waitreg.doctor.check import Concerned

_ANSWER_S: Final = 3.0
_READY: Final = re.compile(r'^waitreg_ready\{[^}]*service="(\w+)"[^}]*\} (\S+)', re.MULTILINE)
_GROUP: Final = re.compile(r'^waitreg_processor_info\{[^}]*consumer_group="([^"]+)"', re.MULTILINE)
_MOST_BYTES: Final = 4 << 20


def telemetry_port(services: Sequence[Concerned], settings: Settings) -> Iterator[Diagnosis]:
    """Try to listen; if the port is taken, ask by which service."""
    host, port = settings.telemetry.host, settings.telemetry.port
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        # With SO_REUSEADDR, as the service does, so that lingering connections of an earlier run don't matter.
        socket.create_server((host, port), family=family).close()
        yield ok(f"{host}:{port} is free" if port else f"any free one of {host}")
    except OSError as failure:
        if failure.errno == errno.EADDRINUSE:
            yield _taken(host, port, services, settings.processor.group)
        else:
            fix = "set telemetry.host to an address of this host, telemetry.port to one that this user may take"
            yield error(f"can't listen on {host}:{port}: {failure.strerror or failure}", fix)


def _taken(host: str, port: int, services: Sequence[Concerned], group: str) -> Diagnosis:
    """Judge who listens: a service of ours that isn't being checked is only a warning.

    On a host with several services, each may be started with its own port, which these settings needn't have.
    """
    metrics = _metrics({"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host), port)
    ready, grouped = _READY.search(metrics), _GROUP.search(metrics)
    if ready is None:
        seen = f"{host}:{port} is taken by something that isn't a service of wait-registry"
        return error(seen, "set telemetry.port to a free one (0 takes any)")
    listener = f"running {ready[1]}{f' of the group {grouped[1]}' if grouped else ''}"
    if ready[1] not in services or (grouped and grouped[1] != group):
        fix = "give each service of a host its own telemetry.port when it starts (0 takes any free one)"
        return warning(f"{host}:{port} is taken by a {listener}", fix)
    return ok(f"{host}:{port} is in use by a {listener}, {'ready' if float(ready[2]) else 'not ready'}")


def _metrics(host: str, port: int) -> str:
    connection = http.client.HTTPConnection(host, port, timeout=_ANSWER_S)
    try:
        connection.request("GET", "/metrics")
        return connection.getresponse().read(_MOST_BYTES).decode("utf-8", "replace")
    except (OSError, http.client.HTTPException):
        return ""
    finally:
        connection.close()
