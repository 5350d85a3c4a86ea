"""When the certificates end that the settings name."""

from __future__ import annotations

import logging
from datetime import datetime
from functools import reduce
from typing import Final

from wait_registry.settings.names import setting_names
from wait_registry.settings.tree import Settings
from wait_registry.telemetry.exposition import MetricsRegistry
from wait_registry.telemetry.metrics import CERTIFICATE_END
from wait_registry.tls import ends_of

log = logging.getLogger(__name__)

_TRUSTED: Final = ".ca"
_SHOWN: Final = ".certificate"


def certificate_ends(settings: Settings) -> dict[str, datetime]:
    """Return by setting when its certificates end.

    A chain that is shown ends with the first of its certificates. Trusted ones end with the last, since an old one
    stays among them while it is replaced.

    Raises:
        ValueError: a certificate can't be read.
    """
    found: dict[str, datetime] = {}
    for name in setting_names():
        if not name.endswith((_TRUSTED, _SHOWN)):
            continue
        text = reduce(getattr, name.split("."), settings)
        if isinstance(text, str) and (ends := ends_of(text)):
            found[name] = (max if name.endswith(_TRUSTED) else min)(ends)
    return found


def expose_certificate_ends(registry: MetricsRegistry, settings: Settings) -> None:
    """Show the ends as a metric; a certificate that can't be read is left to the client that uses it."""
    gauge = registry.gauge(CERTIFICATE_END)
    try:
        ends = certificate_ends(settings)
    except ValueError as error:
        log.warning("the ends of the certificates in the settings aren't known: %s", error)
        return
    for name, end in ends.items():
        gauge.labels(name).set(end.timestamp())
