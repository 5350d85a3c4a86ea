"""Relations within the Connect section: usable addresses, and secrets that the worker resolves."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from wait_registry.diagnosis import Diagnosis, error, refuse_errors
from wait_registry.settings.connect import ConnectSecretSettings, ConnectSettings
from wait_registry.settings.kafka_relations import more_than, pair_problems, pem_problems

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
    addresses = [urlsplit(url) for url in settings.urls]
    if not addresses or not all(one.scheme in ("http", "https") and one.hostname for one in addresses):
        yield error(
            f"connect.url is {_without_user(settings.url)!r}: expected the http(s) address of a worker's REST API, "
            "such as http://localhost:8083, or several with commas"
        )
    if any("@" in one.netloc for one in addresses):
        yield error("connect.url names a user: give connect.username and connect.password instead")
    yield from pair_problems("connect", "basic authentication", username=settings.username, password=settings.password)
    if settings.ca is not None and all(one.scheme == "http" for one in addresses):
        yield error(
            "connect.ca is set, but connect.url is http://, which doesn't use it: make it https://, or remove the CA"
        )
    yield from pem_problems("connect.ca", settings.ca)


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
    apart_s = settings.restart_window_s / settings.restart_limit
    # If restarts are further apart, no window reaches the limit.
    for name, pause_s in (
        ("restart_backoff_max_s", settings.restart_backoff_max_s),
        ("watch_interval_s", settings.watch_interval_s),
    ):
        if pause_s > apart_s:
            yield error(
                f"connect.{name} is {pause_s:g} s, more than restart_window_s / restart_limit = {apart_s:g} s: the "
                "limit would never be reached and raise no alarm; lower it, or raise connect.restart_window_s"
            )


def _without_user(url: str) -> str:
    return re.sub(r"//[^/@,]*@", "//", url)
