"""Is a sweeper of ours at work, which would export what a source connector is about to export as well?"""

from __future__ import annotations

from sweeper.health import longest_silence_s
from wait_registry.errors import ConfigurationError, WaitRegistryError
from wait_registry.settings.root import Settings
from waitreg.commands.checks.sweeps import last_sweep_ago_s


def require_no_sweeper_at_work(settings: Settings) -> None:
    """Refuse to go on where a sweeper has swept lately; settings of its own may call it to work.

    Where Postgres doesn't tell us, the setting sweeper.kind must do.

    Raises:
        ConfigurationError: one has.
    """
    import psycopg

    from wait_registry.postgres.connection import connect

    try:
        with connect(settings.postgres, autocommit=True, application_name="waitreg connect") as connection:
            ago_s = last_sweep_ago_s(connection, settings.wait.topic)
    except (WaitRegistryError, psycopg.Error):
        # Whoever applies connectors may have no business in Postgres.
        return
    refusal = refusal_of_sweep(ago_s, longest_silence_s(settings.sweeper.interval_s))
    if refusal is not None:
        raise ConfigurationError(refusal)


def refusal_of_sweep(ago_s: float | None, silent_most_s: float) -> str | None:
    """Judge by how long ago the last sweep began, and how long one at work may be silent, s. Pure."""
    if ago_s is None or ago_s > silent_most_s:
        return None
    return (
        f"a sweeper of ours swept {ago_s:.0f} s ago: beside a source every registration that expires would be exported "
        f"twice. Stop it; once it has been silent for {silent_most_s:.0f} s this is no longer refused"
    )
