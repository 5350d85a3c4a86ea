"""What a share group's own configuration says, and whether the processor's settings fit it."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from typing import Final

from confluent_kafka.admin import AdminClient, ConfigResource, ResourceType

from wait_registry.diagnosis import Diagnosis, error, log_warnings, refuse_errors, warning
from wait_registry.kafka.requests import answer, timeout_of
from wait_registry.settings.processor import ProcessorSettings

log = logging.getLogger(__name__)

LOCK: Final = "share.record.lock.duration.ms"
ISOLATION: Final = "share.isolation.level"
FIRST: Final = "share.auto.offset.reset"


def require_share_group(admin: AdminClient, processor: ProcessorSettings) -> None:
    """Read the group's configuration, log it, and refuse a lease that is shorter than a record's longest work.

    Raises:
        ConfigurationError: the lease is too short, or the broker has no share groups.
        WaitRegistryError: the broker doesn't answer, or refuses the request.
    """
    log.warning("processor.source is share, which is experimental: P1, O1 and D1 of docs/guarantees.md aren't promised")
    resource = ConfigResource(ResourceType.GROUP, processor.group)
    (future,) = admin.describe_configs([resource], request_timeout=timeout_of(admin)).values()
    entries = answer(admin, future, f"reading the configuration of group {processor.group}")
    config = {name: str(entry.value) for name, entry in entries.items() if name.startswith("share.")}
    log.info("share group %s: %s", processor.group, ", ".join(f"{name}={config[name]}" for name in sorted(config)))
    problems = list(share_group_problems(processor, config))
    log_warnings(problems, log)
    refuse_errors(problems)


def longest_work_s(processor: ProcessorSettings) -> float:
    """Return how long all attempts of one record take at most, with the pauses that a service may ask for, s."""
    attempts = processor.max_attempts
    return attempts * processor.handler_timeout_s + (attempts - 1) * processor.backoff_max_s


def share_group_problems(processor: ProcessorSettings, config: Mapping[str, str]) -> Iterator[Diagnosis]:
    """Yield what is wrong or unwise.

    Args:
        processor: attempts and their limits.
        config: the group's configuration, with the broker's defaults.
    """
    if LOCK not in config:
        yield error("the broker has no share groups: processor.source = share needs Kafka 4.2 or newer")
        return
    lock_s, work_s = int(config[LOCK]) / 1000, longest_work_s(processor)
    if work_s >= lock_s:
        yield error(
            f"one record may be in progress for {work_s:g} s, but group {processor.group} leases records for "
            f"{lock_s:g} s ({LOCK}). Raise it, or lower handler_timeout_s, max_attempts or backoff_max_s"
        )
    if config.get(ISOLATION) != "read_committed":
        yield warning(
            f"{ISOLATION} of group {processor.group} is {config.get(ISOLATION)}: records of aborted transactions are "
            "handled too. Set it to read_committed"
        )
    if config.get(FIRST) == "latest":
        yield warning(
            f"{FIRST} of group {processor.group} is latest: records from before the group's first poll are never "
            "handled. Set it to earliest if they count"
        )
