"""`waitreg connect print`."""

from __future__ import annotations

import click

from waitreg.command import Command, Invocation
from waitreg.connect.connector_file import fill_in


@click.command(
    "print",
    cls=Command,
    examples=("waitreg connect print wait.sink.debezium", "waitreg connect print my.sink.json"),
)
@click.argument("connector", metavar="CONNECTOR")
@click.pass_obj
def command(invocation: Invocation, connector: str) -> int:
    """Print a connector's configuration, filled in from settings.

    CONNECTOR is one of this project's, such as wait.sink.debezium, or a file of yours. The output is what PUT
    /connectors/NAME/config of Kafka Connect's REST API takes.

    Fills the variables of the file: ${wait.topic} and every other setting, and ${postgres.jdbc_url}. It never prints a
    secret; ${connect.secrets.postgres_password} becomes a reference that the worker resolves.
    """
    (filled,) = fill_in([connector], invocation.settings())
    print(filled.as_json())
    return 0
