"""The brokers: asked at every start, and refused where they lack what the settings need."""

from __future__ import annotations

import logging
from collections.abc import Iterator

from wait_registry.diagnosis import Diagnosis, Severity, log_warnings, refuse_errors
from wait_registry.errors import ConfigurationError
from wait_registry.kafka.broker_question import AskedBroker, ask_brokers
from wait_registry.kafka.broker_rules import PROTOCOLS, group_protocol_problem, share_problem, version_lines
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.clients import admin as open_admin
from wait_registry.kafka.errors import cause_of, is_access_problem
from wait_registry.kafka.topics import broker_config
from wait_registry.settings.processor import GroupProtocol, ProcessorSettings, SourceKind
from wait_registry.settings.tree import Settings

log = logging.getLogger(__name__)


def check_brokers(settings: Settings, processor: bool) -> list[Diagnosis]:
    """Ask each live broker what it supports.

    Args:
        settings: how to connect, and what a processor needs.
        processor: whether a processor is checked, which needs more than the other services.

    Raises:
        WaitRegistryError: the live brokers can't be listed, or refuse us.
    """
    client = open_admin(settings.kafka)
    asked = ask_brokers(client, settings.kafka)
    needed = _needed(client, asked, settings.processor) if processor else ()
    return [*version_lines(asked), *needed]


def require_brokers(settings: Settings, processor: bool = False) -> None:
    """Log what the brokers are, and refuse brokers that lack what a processor needs.

    Raises:
        ConfigurationError: the message says what to set instead.
        WaitRegistryError: as `check_brokers`.
    """
    found = check_brokers(settings, processor)
    for line in found:
        if line.severity is Severity.OK:
            log.info("%s", line)
    log_warnings(found, log)
    refuse_errors(found)


def _needed(client: Admin, asked: list[AskedBroker], processor: ProcessorSettings) -> Iterator[Diagnosis]:
    problem = None
    if processor.source is SourceKind.SHARE:
        problem = share_problem(asked)
    elif processor.group_protocol is GroupProtocol.CONSUMER:
        problem = group_protocol_problem(asked, _protocols(client))
    if problem is not None:
        yield problem


def _protocols(client: Admin) -> str | None:
    """Return which group protocols a broker has switched on, None if it doesn't say so."""
    try:
        return broker_config(client).get(PROTOCOLS)
    except ConfigurationError as refusal:
        cause = cause_of(refusal)
        if cause is None or not is_access_problem(cause):
            raise
        log.info("%s can't be read with this user's permissions (DESCRIBE_CONFIGS on the cluster)", PROTOCOLS)
        return None
