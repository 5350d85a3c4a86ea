"""`waitreg connect apply|status|watch|remove`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from wait_registry.errors import ConfigurationError
from wait_registry.service.process import ServiceProcess
from waitreg.command import Command, Group, Invocation

if TYPE_CHECKING:
    from waitreg.connect.connector_file import Family

_FAMILY: Final = click.Choice(("debezium", "jdbc"))
_EXAMPLES: Final = (
    "waitreg connect apply --sink debezium --source debezium --print   # look first",
    "waitreg connect apply --sink debezium --set sink.kind=connect",
    "waitreg connect apply --source debezium --set sweeper.kind=connect",
    "waitreg connect apply my.sink.json --set connect.url=https://connect-1:8083",
    "waitreg connect status",
    "waitreg connect watch --set telemetry.port=9467",
    "waitreg connect remove expired.source expired.tombstones",
)


@click.group("connect", cls=Group, examples=_EXAMPLES)
def command() -> None:
    """Manage the Kafka Connect connectors that replace the sink or the sweeper.

    Calls the REST API of Kafka Connect workers (connect.url). The connectors are those of connect-configs/, or files of
    your own. connect-configs/README.md says how to change from our sink or sweeper to a connector, and back.
    """


@command.command("apply", cls=Command, extra="query", examples=_EXAMPLES[:4])
@click.argument("files", metavar="[FILE]...", nargs=-1, type=click.Path(path_type=Path))
@click.option("--sink", type=_FAMILY, help="This project's files for a sink of this family.")
@click.option("--source", type=_FAMILY, help="This project's files for a source of this family.")
@click.option("--print", "only_print", is_flag=True, help="Print the connectors, and send nothing.")
@click.pass_obj
def apply(
    invocation: Invocation, files: tuple[Path, ...], sink: Family | None, source: Family | None, only_print: bool
) -> int:
    """Create or change connectors, and wait until all of them run.

    Fills the variables of the files: ${wait.topic} and every other setting, and ${postgres.jdbc_url}. It never sends a
    secret; ${connect.secrets.postgres_password} becomes a reference that the worker resolves. The connectors' classes
    validate them. Then it creates or changes the connectors that differ and restarts those that have failed. Ends with
    1 if a connector doesn't run.

    A sink needs sink.kind=connect. If a sink of ours ran before, run `waitreg rebuild --set sink.kind=connect` once. A
    source needs sweeper.kind=connect. A new source is created last, when the sinks have read the wait topic to its end.
    If a sink makes no progress, the source isn't created; fix the sink, then run the command again.

    It refuses a second sink for the same tables, a second source for the same outbox, whatever its name, and connectors
    alongside a running sink or sweeper of ours or the state that one has left.
    """
    from waitreg.connect.apply import apply_connectors, read_connectors
    from waitreg.connect.connector_file import own_files, plain_secrets
    from waitreg.connect.rest import ConnectRest

    settings = invocation.settings()
    rest = ConnectRest(settings.connect)  # refuses, before anything is printed, what would show a secret
    chosen = [*files, *(own_files("sink", sink) if sink else ()), *(own_files("source", source) if source else ())]
    if not chosen:
        raise ConfigurationError(
            "nothing to apply: --sink debezium or --source debezium take this project's files, FILE takes yours"
        )
    connectors = read_connectors(chosen, settings)
    for sentence in plain_secrets(connectors):
        print(sentence, file=sys.stderr)
    if not only_print:
        return 0 if apply_connectors(connectors, settings, rest, _line) else 1
    print("\n".join(connector.as_json() for connector in connectors))
    return 0


@command.command("status", cls=Command, examples=_EXAMPLES[4:5])
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--json", "json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def status(invocation: Invocation, names: tuple[str, ...], json: bool) -> int:
    """Show connectors and tasks, and how far each sink is behind.

    Shows where they run and why one failed. Ends with 1 if one has failed. Without names, shows connect.connectors, or
    the connectors of this project that the workers have.
    """
    from waitreg.connect.lag import sink_lags
    from waitreg.connect.rest import ConnectRest
    from waitreg.connect.state import as_json, as_lines, choose

    settings = invocation.settings()
    present, missing = choose(ConnectRest(settings.connect).states(), names or settings.connect.connectors)
    lags, trouble = sink_lags(settings.kafka, present)
    if json:
        print(as_json(present, missing, lags))
    else:
        print("\n".join(as_lines(present, missing, lags)))
        if trouble is not None:
            print(trouble, file=sys.stderr)
    return 1 if missing or any(state.failed for state in present) else 0


@command.command("watch", cls=Command, extra="query", examples=_EXAMPLES[5:6])
@click.pass_obj
def watch(invocation: Invocation) -> int:
    """Run a service that restarts failed connectors.

    Kafka Connect itself never restarts a failed task, for instance after an outage of Postgres. The watch restarts it
    at once, then after growing pauses. Metrics and health are at the telemetry port, as for the other services. With
    sweeper.kind=connect it also reads from Postgres how long expired registrations have been waiting. Watches
    connect.connectors, or the connectors of this project that the workers have.
    """
    from wait_registry.logs import configure_logging
    from waitreg.connect.watch import WatchService

    settings = invocation.settings()
    configure_logging(settings.log, "connect-watch")
    ServiceProcess(lambda: WatchService(settings)).run()
    return 0


@command.command("remove", cls=Command, examples=_EXAMPLES[6:])
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.pass_obj
def remove(invocation: Invocation, names: tuple[str, ...]) -> int:
    """Delete connectors, sources first.

    The offsets remain, because reading the outbox again could export a row twice. To repair rows, run `waitreg
    rebuild`. Without names, removes connect.connectors, or the connectors of this project that the workers have.
    """
    from waitreg.connect.connector_file import NAMES
    from waitreg.connect.rest import ConnectRest
    from waitreg.connect.roles import exporters_first, what_remains

    settings = invocation.settings()
    rest = ConnectRest(settings.connect)
    named = names or settings.connect.connectors or NAMES
    there = rest.states()
    configs = {name: there[name].config if name in there else {} for name in named}
    # Without its sinks a source would read tables that no longer change.
    for name in exporters_first(configs):
        if rest.delete(name):
            _line("removed", name, what_remains(configs[name]))
        else:
            _line("not there", name, "")
    return 0


def _line(word: str, name: str, details: str) -> None:
    print(f"{word:<12} {name:<20} {details}".rstrip(), flush=True)
