"""Check when certificates end: those of the settings, and those that the brokers show."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Final

from wait_registry.diagnosis import Diagnosis, error, ok, warning
from wait_registry.kafka.broker_question import ask_brokers
from wait_registry.kafka.clients import admin
from wait_registry.settings.tree import Settings
from wait_registry.telemetry.certificate_ends import certificate_ends
from wait_registry.tls import end_of

FIX: Final = "replace it, and start each service that uses it again"
SERVED_FIX: Final = "replace the certificate of that broker"
WARN: Final = timedelta(days=14)


def configured(settings: Settings) -> Iterator[Diagnosis]:
    """Look at each certificate of the settings."""
    try:
        ends = certificate_ends(settings)
    except ValueError as failure:
        yield error(f"a certificate of the settings can't be read: {failure}", "correct its PEM text")
        return
    for name, end in ends.items():
        yield end_line(name, end, datetime.now(UTC), FIX)


def served(settings: Settings) -> Iterator[Diagnosis]:
    """Look at the certificate that each broker shows."""
    for broker in ask_brokers(admin(settings.kafka), settings.kafka):
        if broker.certificate is not None:
            yield end_line(f"broker {broker.address}", end_of(broker.certificate), datetime.now(UTC), SERVED_FIX)


def end_line(name: str, end: datetime, now: datetime, fix: str) -> Diagnosis:
    """Warn two weeks before a certificate ends."""
    left, when = end - now, f"{end:%Y-%m-%dT%H:%M:%SZ}"
    if left <= timedelta():
        return error(f"the certificate of {name} ended at {when}", fix)
    seen = f"the certificate of {name} ends at {when}, in {left.days} days"
    if left > WARN:
        return ok(seen)
    return warning(f"{seen} (fewer than {WARN.days} are a warning)", fix)
