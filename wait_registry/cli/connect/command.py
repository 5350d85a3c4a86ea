"""`waitreg connect apply|status|watch|remove`."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from wait_registry.cli.command import Command, Group, Invocation
from wait_registry.cli.service_process import ServiceProcess
from wait_registry.errors import ConfigurationError

if TYPE_CHECKING:
    from wait_registry.cli.connect.connector_file import Family
    from wait_registry.cli.connect.rest import ConnectRest
    from wait_registry.settings.root import Settings

_FAMILY: Final = click.Choice(("debezium", "jdbc"))
_APPLY_EXAMPLES: Final = (
    "waitreg connect apply --sink debezium --source debezium --print   # look first",
    "waitreg connect apply --sink debezium --set sink.kind=connect",
    "waitreg connect apply --source debezium --set sweeper.kind=connect",
    "waitreg connect apply my.sink.json --set connect.url=https://connect-1:8083",
)
_STATUS_EXAMPLES: Final = ("waitreg connect status",)
_WATCH_EXAMPLES: Final = ("waitreg connect watch --set telemetry.port=9467",)
_REMOVE_EXAMPLES: Final = ("waitreg connect remove expired.source expired.tombstones",)


@click.group("connect", cls=Group, examples=(*_APPLY_EXAMPLES, *_STATUS_EXAMPLES, *_WATCH_EXAMPLES, *_REMOVE_EXAMPLES))
def command() -> None:
    """Manage the Kafka Connect connectors that replace the sink or the sweeper.

    Calls the REST API of Kafka Connect workers (connect.url). The connectors are those of connect-configs/, or files of
    your own. connect-configs/README.md says how to change from our sink or sweeper to a connector, and back.
    """


@command.command("apply", cls=Command, extra="query", examples=_APPLY_EXAMPLES)
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
    If a sink has stopped or failed, or makes no progress, the source isn't created; run the command again.

    It refuses a second sink for the same tables, a second source for the same outbox, whatever its name, and connectors
    alongside a running sink or sweeper of ours or the state that one has left.
    """
    from wait_registry.cli.connect.apply import apply_connectors, read_connectors, remarks
    from wait_registry.cli.connect.checks import require_place
    from wait_registry.cli.connect.connector_file import own_files

    settings = invocation.settings()
    rest = _rest(settings)
    chosen = [*files, *(own_files("sink", sink) if sink else ()), *(own_files("source", source) if source else ())]
    if not chosen:
        raise ConfigurationError(
            "nothing to apply: --sink debezium or --source debezium take this project's files, FILE takes yours"
        )
    connectors = read_connectors(chosen, settings)
    for sentence in remarks(connectors, settings):
        print(sentence, file=sys.stderr)
    if not only_print:
        return 0 if apply_connectors(connectors, settings, rest, _line) else 1
    print("\n".join(connector.as_json() for connector in connectors))
    try:
        require_place(connectors, settings)
    except ConfigurationError as error:
        print(f"only printed; with these settings, apply refuses it: {error}", file=sys.stderr)
    return 0


@command.command("status", cls=Command, examples=_STATUS_EXAMPLES)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.option("--json", "json", is_flag=True, help="Print one JSON object.")
@click.pass_obj
def status(invocation: Invocation, names: tuple[str, ...], json: bool) -> int:
    """Show connectors and tasks, and how far each sink is behind.

    Shows where they run and why one failed. Ends with 1 if one has failed. Without names, shows connect.connectors, or
    the connectors of this project that the workers have.
    """
    from wait_registry.cli.connect.lag import SinkLags
    from wait_registry.cli.connect.state import Chosen, as_json, as_lines, is_well

    settings = invocation.settings()
    named = names or settings.connect.connectors
    chosen = Chosen.of(_rest(settings).states(), named)
    lags = SinkLags(settings.kafka)
    known = lags.of(chosen.present)
    if json:
        print(as_json(chosen, known))
    else:
        print("\n".join(as_lines(chosen, known)))
        if lags.trouble is not None:
            print(lags.trouble, file=sys.stderr)
    return 0 if is_well(chosen) else 1


@command.command("watch", cls=Command, extra="query", examples=_WATCH_EXAMPLES)
@click.pass_obj
def watch(invocation: Invocation) -> int:
    """Run a service that restarts failed connectors.

    Kafka Connect itself never restarts a failed task, for instance after an outage of Postgres. The watch restarts it
    at once, then after growing pauses. Metrics and health are at the telemetry port, as for the other services. With
    sweeper.kind=connect it also reads from Postgres how long expired registrations have been waiting. Watches
    connect.connectors, or the connectors of this project that the workers have.
    """
    from wait_registry.cli.connect.watch_service import WatchService
    from wait_registry.logs import configure_logging

    settings = invocation.settings()
    configure_logging(settings.log, "connect-watch")
    ServiceProcess(lambda: WatchService(settings)).run()
    return 0


@command.command("remove", cls=Command, examples=_REMOVE_EXAMPLES)
@click.argument("names", metavar="[NAME]...", nargs=-1)
@click.pass_obj
def remove(invocation: Invocation, names: tuple[str, ...]) -> int:
    """Delete connectors, sources first.

    The offsets remain, because reading the outbox again could export a row twice. To repair rows, run `waitreg
    rebuild`. Without names, removes connect.connectors, or the connectors of this project that the workers have.
    """
    from wait_registry.cli.connect.connector_file import NAMES
    from wait_registry.cli.connect.roles import exporters_first, what_remains

    settings = invocation.settings()
    rest = _rest(settings)
    named = list(names or settings.connect.connectors or NAMES)
    # Without its sinks a source would read tables that no longer change.
    for name, config in exporters_first({name: rest.config(name) for name in named}):
        if config is not None and rest.delete(name):
            _line("removed", name, what_remains(config))
        else:
            _line("not there", name, "")
    return 0


def _rest(settings: Settings) -> ConnectRest:
    from wait_registry.cli.connect.rest import ConnectRest
    from wait_registry.settings.connect_relations import require_connect

    require_connect(settings.connect)
    return ConnectRest(settings.connect)


def _line(word: str, name: str, details: str) -> None:
    print(f"{word:<12} {name:<20} {details}".rstrip(), flush=True)
