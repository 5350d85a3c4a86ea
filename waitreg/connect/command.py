"""`waitreg connect print|check|watch`."""

from __future__ import annotations

import click

from waitreg.command import Entry, Group


@click.group(
    "connect",
    cls=Group,
    package="waitreg.connect",
    entries={
        "Commands": (
            Entry("print", "Print a connector's configuration, filled in from settings.", "query"),
            Entry("check", "Check that connectors may be created now.", "query"),
            Entry("watch", "Run a service that restarts failed connectors.", "query"),
        )
    },
    examples=(
        "waitreg connect print wait.sink.debezium",
        "waitreg connect check wait.sink.debezium --set sink.kind=connect",
        "waitreg connect watch --set telemetry.port=9467",
    ),
)
def command() -> None:
    """Configure and watch Kafka Connect connectors that replace the sink or the sweeper.

    The connectors are those of connect-configs/, or files of your own. Create them with the REST API of Kafka Connect,
    kcctl or Strimzi; connect-configs/README.md has the commands, and says how to change from our sink or sweeper to a
    connector, and back.
    """
