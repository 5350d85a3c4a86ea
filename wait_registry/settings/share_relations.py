"""What `processor.source = share` can't be combined with."""

from __future__ import annotations

from collections.abc import Iterator

from wait_registry.diagnosis import Diagnosis, error
from wait_registry.settings.processor import GroupProtocol, ProcessorSettings, RegistrationMode, SourceKind


def share_problems(processor: ProcessorSettings) -> Iterator[Diagnosis]:
    """Yield the settings that rely on offsets, which a share group doesn't have."""
    if processor.source is not SourceKind.SHARE:
        return
    mode = processor.registration
    if mode is not RegistrationMode.OFF:
        yield _refused("registration", mode.value, "the broker keeps a record until it is acknowledged", "off")
    if processor.ordered:
        why = "the broker leases records of one key to several members"
        yield _refused("ordering", processor.ordering.value, why, "unordered")
    if processor.retry.delays:
        why = "a record that isn't due can't be put back"
        yield _refused("retry.delays", ", ".join(processor.retry.delays), why, "[]")
    if processor.delay_s:
        yield _refused("delay_s", f"{processor.delay_s:g}", "a record that isn't due can't be put back", "0")
    if processor.group_protocol is not GroupProtocol.CLASSIC:
        why = "a share group has a protocol of its own"
        yield _refused("group_protocol", processor.group_protocol.value, why, "classic")


def _refused(name: str, value: str, why: str, allowed: str) -> Diagnosis:
    return error(f"processor.{name} is {value}, but with processor.source = share {why}. Set it to {allowed}")
