"""Is a sweeper of ours at work, which would export what a source connector is about to export as well?"""

from __future__ import annotations

from sweeper.health import longest_silence_s
from wait_registry.cli.checks.sweeps import last_sweep_ago_s
from wait_registry.cli.connect.asked_of_postgres import Aside, asked_of_postgres
from wait_registry.errors import ConfigurationError
from wait_registry.settings.root import Settings


def require_no_sweeper_at_work(settings: Settings, aside: Aside) -> None:
    """Refuse to go on where a sweeper has swept lately; settings of its own may call it to work.

    Args:
        settings: whose registry it is.
        aside: gets a sentence when Postgres doesn't tell us: the setting sweeper.kind must do then.

    Raises:
        ConfigurationError: one has.
    """
    ago_s = asked_of_postgres(settings, lambda connection: last_sweep_ago_s(connection, settings.wait.topic), aside)
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
