"""Settings of a service that reaches Postgres through a link that can be broken."""

from __future__ import annotations

from urllib.parse import urlsplit, urlunsplit

from tests.support.network import Link
from tests.support.settings import with_postgres
from wait_registry.settings.root import Settings


def link_to_postgres(url: str) -> Link:
    """Return a link to this Postgres, to be entered."""
    parts = urlsplit(url)
    return Link((parts.hostname or "", parts.port or 5432))


def behind_link(settings: Settings, link: Link) -> Settings:
    """Return the settings with the link's address in the place of Postgres'."""
    parts = urlsplit(settings.postgres.url.get_secret_value())
    user, at, _ = parts.netloc.rpartition("@")
    return with_postgres(settings, urlunsplit(parts._replace(netloc=f"{user}{at}{link.address}")))
