"""Kafka Connect: the worker's address, what its connectors get, and how `waitreg connect watch` restarts them."""

from __future__ import annotations

from pydantic import Field, SecretStr

from wait_registry.settings import Section


class ConnectSecretSettings(Section):
    """Where the worker finds secrets: ``provider:[path:]key`` of its config.providers, never the secret itself."""

    postgres_password: str = Field(
        "env:POSTGRES_PASSWORD", description="password of the role in connect.postgres_url; empty for none"
    )
    kafka_password: str = Field("env:KAFKA_PASSWORD", description="SASL password, with connect.client_security")
    kafka_key: str = Field("env:KAFKA_KEY", description="client key (PEM), with connect.client_security")


class ConnectSettings(Section):
    """Kafka Connect instead of our sink or sweeper, managed by `waitreg connect apply` and the like."""

    url: str = Field(
        "http://localhost:8083",
        description="REST API, http(s)://host:port of any worker; several with commas are tried in turn",
    )
    username: str | None = Field(None, description="user of the REST API (basic authentication)")
    password: SecretStr | None = Field(None, description="password of that user")
    ca: str | None = Field(
        None, repr=False, description="trusted certificates for https, PEM text; by default the system's store"
    )
    request_timeout_s: float = Field(30.0, gt=0, le=300, description="limit of one request, s")
    start_timeout_s: float = Field(60.0, gt=0, description="how long `apply` waits for connectors to run, s")
    connectors: tuple[str, ...] = Field(
        (), description="connectors of `status`, `watch` and `remove`; by default all of ours that exist"
    )
    postgres_url: str = Field(
        "", description="Postgres as the worker reaches it, without a password; by default from postgres.url"
    )
    client_security: bool = Field(
        False, description="give connectors' own clients kafka.security; false leaves them the worker's"
    )
    secrets: ConnectSecretSettings = Field(ConnectSecretSettings(), description="where the worker finds secrets")
    settle_s: float = Field(
        60.0,
        ge=0,
        description="alongside a Connect sink, a source exports a row this long after its expiry and first sight, s; "
        "longer than that sink is ever behind, and than it reads again after a restart",
    )
    watch_interval_s: float = Field(10.0, ge=0.1, le=300, description="pause between two checks of `watch`, s")
    restart_backoff_s: float = Field(5.0, gt=0, description="first pause between two restarts, s; doubles each time")
    restart_backoff_max_s: float = Field(60.0, gt=0, description="longest such pause, s")
    restart_limit: int = Field(10, ge=1, le=1000, description="restarts in a window that raise an alarm")
    restart_window_s: float = Field(
        1800.0, gt=0, description="that window, s; at the limit restarts are window / limit apart"
    )

    @property
    def urls(self) -> list[str]:
        """The addresses in ``url``."""
        return [url.strip().rstrip("/") for url in self.url.split(",") if url.strip()]
