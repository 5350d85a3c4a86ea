"""Kafka Connect's REST API as a test needs it; shares nothing with the product's client."""

from __future__ import annotations

import json
import urllib.error
import urllib.request
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any

from tests.support.waiting import wait_until

REQUEST_S = 30.0


class ConnectRest:
    """One worker's API; an address without a listener answers nothing."""

    def __init__(self, url: str) -> None:
        self.url = url

    def put(self, name: str, config: Mapping[str, str]) -> None:
        """Create a connector, or change it."""
        self._ask("PUT", f"/connectors/{name}/config", dict(config))

    def remove(self, name: str) -> None:
        """Delete a connector, again where a group between two leaders can't write it down, until its state is gone."""

        def deleted() -> bool:
            try:
                self._ask("DELETE", f"/connectors/{name}")
            except urllib.error.HTTPError as error:
                if error.code not in (HTTPStatus.CONFLICT, HTTPStatus.INTERNAL_SERVER_ERROR):
                    raise
                return False
            return True

        wait_until(deleted, what=f"the deletion of {name}")
        wait_until(lambda: not self.status(name), what=f"the end of {name}")

    def restart_failed(self, name: str) -> None:
        self._ask("POST", f"/connectors/{name}/restart?includeTasks=true&onlyFailed=true")

    def stop(self, name: str) -> None:
        """Stop a connector: it has no tasks until it is resumed, and its offsets may be forgotten (KIP-875)."""
        self._ask("PUT", f"/connectors/{name}/stop")

    def forget_offsets(self, name: str) -> None:
        self._ask("DELETE", f"/connectors/{name}/offsets")

    def resume(self, name: str) -> None:
        self._ask("PUT", f"/connectors/{name}/resume")

    def status(self, name: str) -> dict[str, Any]:
        """Return a connector's state and its tasks'; empty while it isn't known."""
        try:
            found: dict[str, Any] = self._ask("GET", f"/connectors/{name}/status")
        except urllib.error.HTTPError as error:
            if error.code != HTTPStatus.NOT_FOUND:
                raise
            return {}
        return found

    def states(self, name: str) -> list[str]:
        """Return the states of a connector and its tasks; none while it has no task."""
        status = self.status(name)
        tasks = status.get("tasks", [])
        return [status["connector"]["state"], *(task["state"] for task in tasks)] if tasks else []

    def runs_on(self, name: str) -> str:
        """Return which worker a connector's only task runs on; empty while it runs on none."""
        tasks = self.status(name).get("tasks", [])
        return str(tasks[0]["worker_id"]) if tasks and tasks[0]["state"] == "RUNNING" else ""

    def runs(self, name: str) -> bool:
        """Return whether a connector and its tasks run; AssertionError with the trace when one has failed."""
        status = self.status(name)
        for part in [status.get("connector", {}), *status.get("tasks", [])]:
            assert part.get("state") != "FAILED", f"{name}: {part.get('trace')}"
        return set(self.states(name)) == {"RUNNING"}

    def _ask(self, method: str, path: str, body: Any = None) -> Any:
        data = None if body is None else json.dumps(body).encode()
        request = urllib.request.Request(self.url + path, data, {"Content-Type": "application/json"}, method=method)
        with urllib.request.urlopen(request, timeout=REQUEST_S) as response:
            text = response.read()
        return json.loads(text) if text else None
