"""Kafka Connect: the worker's address, what its connectors get, and how `waitreg connect watch` restarts them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final

from pydantic import Field, SecretStr

from wait_registry.diagnosis import Diagnosis, error, refuse_errors
from wait_registry.settings import Section
from wait_registry.settings.contradictions import more_than, server_problems, tls_problems


class ConnectSecretSettings(Section):
    """Where the worker finds secrets: ``provider:[path:]key`` of its config.providers, never the secret itself."""

    postgres_password: str = "env:POSTGRES_PASSWORD"
    """password of the role in connect.postgres_url; empty for none"""


class ConnectSettings(Section):
    """Kafka Connect instead of our sink or sweeper."""

    url: str = "http://localhost:8083"
    """REST API, http(s)://host:port of any worker; several with commas are tried in turn"""
    username: str | None = None
    """user of the REST API (basic authentication)"""
    password: SecretStr | None = None
    """password of that user"""
    ca: str | None = Field(None, repr=False)
    """trusted certificates for https, PEM text; by default the system's store"""
    request_timeout_s: float = Field(30.0, gt=0, le=300)
    """limit of one request, s"""
    connectors: tuple[str, ...] = ()
    """connectors that `watch` watches; by default all of ours that exist"""
    postgres_url: str = ""
    """Postgres as the worker reaches it, without a password; by default from postgres.url"""
    secrets: ConnectSecretSettings = ConnectSecretSettings()
    """where the worker finds secrets"""
    settle_s: float = Field(60.0, ge=0)
    """alongside a Connect sink, a source exports a row this long after its expiry and first sight, s; longer than that
    sink is ever behind, and than it reads again after a restart
    """
    watch_interval_s: float = Field(10.0, ge=0.1, le=300)
    """pause between two checks of `watch`, s"""
    restart_backoff_s: float = Field(5.0, gt=0)
    """first pause between two restarts, s; doubles each time"""
    restart_backoff_max_s: float = Field(180.0, gt=0, le=180)
    """longest such pause, s; an alert counts the restarts of half an hour"""

    @property
    def urls(self) -> list[str]:
        """The addresses in ``url``."""
        return [url.strip().rstrip("/") for url in self.url.split(",") if url.strip()]


# What Kafka's ConfigTransformer takes between `${` and `}`: a provider, perhaps a path, a key.
_REFERENCE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*:[^{}$\s]+")
_PASSWORD: Final = re.compile(r"://[^/@]*:[^/@]*@|\bpassword\s*=", re.IGNORECASE)


def require_connect(settings: ConnectSettings) -> None:
    """Refuse settings of Kafka Connect that contradict each other.

    Raises:
        ConfigurationError: names every contradiction and the fix, and no secret.
    """
    refuse_errors(connect_problems(settings))


def connect_problems(settings: ConnectSettings) -> list[Diagnosis]:
    """List the contradictions within the section."""
    return [*_access_problems(settings), *_secret_problems(settings), *_restart_problems(settings)]


def _access_problems(settings: ConnectSettings) -> Iterator[Diagnosis]:
    yield from server_problems("connect", settings.url, settings.username, settings.password)
    without_tls = all(url.startswith("http://") for url in settings.urls)
    unused = "connect.url is http://, which doesn't use it: make it https://, or remove the CA" if without_tls else ""
    yield from tls_problems("connect", unused, settings.ca)


def _secret_problems(settings: ConnectSettings) -> Iterator[Diagnosis]:
    for name in ConnectSecretSettings.model_fields:
        reference = getattr(settings.secrets, name)
        # The value isn't shown: it may be the secret itself.
        if reference and _REFERENCE.fullmatch(reference) is None:
            yield error(
                f"connect.secrets.{name} isn't a reference to a secret: expected provider:key or "
                "provider:path:key of the worker's config.providers, without ${}: env:POSTGRES_PASSWORD, "
                "file:/run/secrets/connect.properties:password, dir:/run/secrets:password"
            )
    if _PASSWORD.search(settings.postgres_url):
        yield error(
            "connect.postgres_url holds a password, which anyone could read in the connectors' configurations: "
            "remove it, and set connect.secrets.postgres_password to a reference that the worker resolves"
        )


def _restart_problems(settings: ConnectSettings) -> Iterator[Diagnosis]:
    if settings.restart_backoff_s > settings.restart_backoff_max_s:
        first_s, longest_s = settings.restart_backoff_s, settings.restart_backoff_max_s
        yield more_than("connect.restart_backoff_s", first_s, "connect.restart_backoff_max_s", longest_s, unit=" s")
