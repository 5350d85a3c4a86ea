"""`waitreg connect apply`: read the files, refuse what would export twice or too early, and create the sources last."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final

from pydantic import SecretStr

from wait_registry.diagnosis import Severity
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.security import java_security
from wait_registry.settings.kafka import SecuritySettings
from wait_registry.settings.root import Settings
from wait_registry.settings.sink import SinkKind
from waitreg.check_report import shown
from waitreg.connect.caught_up import await_sinks
from waitreg.connect.checks import OurServices, require_no_conflict, require_place
from waitreg.connect.cluster import ConnectCluster, Report, outcome
from waitreg.connect.connector_file import Connector, read_connector
from waitreg.connect.rest import ConnectRest
from waitreg.connect.roles import exports, keeps_tables
from waitreg.connect.variables import variable

# A sink reads, and writes its dead letters; a source writes, and reads its offsets; both create topics.
CLIENTS: Final = ("consumer.override.", "producer.override.", "admin.override.")


def read_connectors(files: Iterable[Path], settings: Settings) -> list[Connector]:
    """Read connectors, fill in their variables, and add the security of their clients.

    Raises:
        ConfigurationError: a file can't be read or filled in.
    """
    return [
        with_client_security(read_connector(file, partial(variable, settings=settings)), settings) for file in files
    ]


def with_client_security(connector: Connector, settings: Settings) -> Connector:
    """Add `kafka.security` to a connector, if `connect.client_security` asks for it.

    The worker must allow it (connector.client.config.override.policy=All). What the file itself sets wins.

    Raises:
        ConfigurationError: a secret is needed, and connect.secrets doesn't say where the worker finds it.
    """
    if not settings.connect.client_security:
        return connector
    properties = java_security(settings.kafka.model_copy(update={"security": _by_reference(settings)}))
    overrides = {f"{client}{name}": value for client in CLIENTS for name, value in properties.items()}
    return replace(connector, config={**overrides, **connector.config})


def _by_reference(settings: Settings) -> SecuritySettings:
    """Return kafka.security with references; a certificate is public anyway, its key and the password aren't."""
    security, secrets = settings.kafka.security, settings.connect.secrets
    instead: dict[str, SecretStr] = {}
    for name, reference in (("password", secrets.kafka_password), ("key", secrets.kafka_key)):
        if getattr(security, name) is None:
            continue
        if not reference:
            raise ConfigurationError(
                f"connect.client_security is on, and connect.secrets.kafka_{name} is empty: set it to where the worker "
                "finds the secret, such as env:NAME"
            )
        instead[name] = SecretStr(f"${{{reference}}}")
    return security.model_copy(update=instead)


def apply_connectors(connectors: Sequence[Connector], settings: Settings, rest: ConnectRest, report: Report) -> bool:
    """Create or change connectors, new sources last, and wait until all run.

    Returns:
        Whether each runs, or is held by an operator.

    Raises:
        ConfigurationError: they contradict the settings, other connectors, or a sink or sweeper of ours that has run.
        WorkerUnavailable: no worker answers; try again.
        SinksBehind: a sink makes no progress, so that no source is created; try again.
    """
    require_place(connectors, settings)
    ours = OurServices(settings)
    if any(exports(connector.config) for connector in connectors):
        ours.require_no_sweeper_at_work()
    if settings.sink.kind is SinkKind.CONNECT and any(
        exports(connector.config) or keeps_tables(connector.config) for connector in connectors
    ):
        ours.require_no_sink_position()
    cluster = ConnectCluster(rest, settings.connect.start_timeout_s, report)
    cluster.require_valid(connectors)
    there = rest.states()
    require_no_conflict(connectors, there)
    # New sources must find tables that are up to date.
    last = [connector for connector in connectors if exports(connector.config) and connector.name not in there]
    ours.require_no_stale_slot(last)
    well = _put(cluster, [connector for connector in connectors if connector not in last])
    if not last:
        return well
    if not well:
        report("not created", ", ".join(connector.name for connector in last), "what they depend on doesn't run")
        return False
    await_sinks(rest.states().values(), settings, ours, report)
    return _put(cluster, last)


def _put(cluster: ConnectCluster, connectors: Sequence[Connector]) -> bool:
    outcomes = [outcome(state) for state in cluster.put(connectors)] if connectors else []
    for line in outcomes:
        print(shown(line), flush=True)
    return all(line.severity is not Severity.ERROR for line in outcomes)
