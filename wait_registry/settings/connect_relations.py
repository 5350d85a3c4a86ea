"""Relations within the Connect section: an address that can be asked, and secrets that stay where they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Final
from urllib.parse import urlsplit

from wait_registry.diagnosis import Diagnosis, error, refuse_errors
from wait_registry.settings.connect import ConnectSecretSettings, ConnectSettings

# What Kafka's ConfigTransformer takes between `${` and `}`: a provider, perhaps a path, a key.
_REFERENCE: Final = re.compile(r"[A-Za-z][A-Za-z0-9_.-]*:[^{}$\s]+")
_PASSWORD: Final = re.compile(r"://[^/@]*:[^/@]*@|\bpassword\s*=", re.IGNORECASE)


def require_connect(settings: ConnectSettings) -> None:
    """Refuse settings of Kafka Connect that contradict each other.

    Raises:
        ConfigurationError: names every contradiction and what to change; no secret stands in it.
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
    if (settings.username is None) != (settings.password is None):
        there, absent = ("username", "password") if settings.password is None else ("password", "username")
        yield error(f"connect.{there} is set without connect.{absent}: basic authentication needs both")
    if settings.ca is not None and all(one.scheme == "http" for one in addresses):
        yield error("connect.ca is set, but connect.url is http://, which uses none: make it https://, or remove it")
    if settings.ca is not None and "-----BEGIN" not in settings.ca:
        yield error(
            "connect.ca is no PEM text (it has no '-----BEGIN' line): give the text itself, or the path of a file with "
            "it as connect.ca_file"
        )


def _secret_problems(settings: ConnectSettings) -> Iterator[Diagnosis]:
    for name in ConnectSecretSettings.model_fields:
        reference = getattr(settings.secrets, name)
        # The value isn't shown: it may be the secret that it should only point to.
        if reference and _REFERENCE.fullmatch(reference) is None:
            yield error(
                f"connect.secrets.{name} doesn't say where the worker finds the secret: expected provider:key or "
                "provider:path:key of the worker's config.providers, without ${}: env:POSTGRES_PASSWORD, "
                "file:/run/secrets/connect.properties:password, dir:/run/secrets:password"
            )
    if _PASSWORD.search(settings.postgres_url):
        yield error(
            "connect.postgres_url holds a password, which would stand in connectors' configurations for all to read: "
            "remove it, and say in connect.secrets.postgres_password where the worker finds it"
        )


def _restart_problems(settings: ConnectSettings) -> Iterator[Diagnosis]:
    if settings.restart_backoff_s > settings.restart_backoff_max_s:
        yield error(
            f"connect.restart_backoff_s is {settings.restart_backoff_s:g} s, more than connect.restart_backoff_max_s = "
            f"{settings.restart_backoff_max_s:g} s: lower the first or raise the second"
        )
    apart_s = settings.restart_window_s / settings.restart_limit
    # Whatever keeps restarts further apart keeps a window from seeing the limit.
    for name, pause_s in (
        ("restart_backoff_max_s", settings.restart_backoff_max_s),
        ("watch_interval_s", settings.watch_interval_s),
    ):
        if pause_s > apart_s:
            yield error(
                f"connect.{name} is {pause_s:g} s, more than restart_window_s / restart_limit = {apart_s:g} s: the "
                "limit would never be reached, and no alarm raised; lower it, or raise connect.restart_window_s"
            )


def _without_user(url: str) -> str:
    return re.sub(r"//[^/@,]*@", "//", url)
