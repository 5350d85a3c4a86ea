"""`waitreg connect apply|status|watch|remove`."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Final

from wait_registry.cli.command import Command, Invocation
from wait_registry.cli.service_process import ServiceProcess
from wait_registry.errors import ConfigurationError

if TYPE_CHECKING:
    from wait_registry.cli.connect.apply import Applying
    from wait_registry.cli.connect.asked_of_postgres import Aside
    from wait_registry.cli.connect.connector_file import Connector
    from wait_registry.cli.connect.rest import ConnectRest
    from wait_registry.settings.root import Settings

_FAMILIES: Final = ("debezium", "jdbc")


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=tuple(_ACTIONS), help="what to do, see above")
    parser.add_argument(
        "what", metavar="FILE|NAME", nargs="*", help="with apply: files of your own; with status and remove: connectors"
    )
    parser.add_argument("--sink", choices=_FAMILIES, help="with apply: our files for a sink of this family")
    parser.add_argument("--source", choices=_FAMILIES, help="with apply: our files for a source of this family")
    parser.add_argument("--print", action="store_true", help="with apply: print what would be sent, and send nothing")
    parser.add_argument("--json", action="store_true", help="with status: one JSON object")


def _run(invocation: Invocation) -> int:
    action: str = invocation.arguments.action
    _require_fitting(invocation.arguments)
    return _ACTIONS[action](invocation)


def _require_fitting(given: argparse.Namespace) -> None:
    fitting = {"sink": "apply", "source": "apply", "print": "apply", "json": "status"}
    for option, action in fitting.items():
        if getattr(given, option) and given.action != action:
            raise ConfigurationError(f"--{option} goes with `connect {action}` only")
    if given.action == "watch" and given.what:
        raise ConfigurationError("`connect watch` takes no names: set connect.connectors to what it should watch")


def _apply(invocation: Invocation) -> int:
    from wait_registry.cli.connect.apply import Applying
    from wait_registry.cli.connect.place import require_place
    from wait_registry.cli.connect.rivals import require_no_rivals
    from wait_registry.cli.connect.source_at_work import require_no_source_beside_new_sinks
    from wait_registry.cli.connect.stale_slot import require_no_stale_slot

    settings = invocation.settings()
    connectors = _connectors(invocation.arguments, settings)
    _remark(connectors, settings)
    if invocation.arguments.print:
        return _print(connectors, settings)
    require_place(connectors, settings)
    aside = _Aside()
    _require_nothing_of_ours(connectors, settings, aside)
    applying = Applying(_rest(settings), settings.connect.start_timeout_s, _line)
    applying.require_valid(connectors)
    there = applying.states().values()
    require_no_rivals(connectors, there)
    require_no_source_beside_new_sinks(connectors, there)
    last = applying.new_exporters(connectors)
    if last:
        require_no_stale_slot(last, settings, aside)
        _require_sinks(applying, settings, connectors)
    well = _applied(applying, [connector for connector in connectors if connector not in last])
    if not well and last:
        _line("not created", ", ".join(connector.name for connector in last), "what they rest on doesn't run")
        return 1
    if last:
        _await_sinks(applying, settings, aside)
        well = _applied(applying, last)
    return 0 if well else 1


class _Aside:
    """Tells people what is none of the results, each sentence once."""

    def __init__(self) -> None:
        self._told: set[str] = set()

    def __call__(self, sentence: str) -> None:
        if sentence not in self._told:
            self._told.add(sentence)
            print(sentence, file=sys.stderr)


def _require_nothing_of_ours(connectors: list[Connector], settings: Settings, aside: Aside) -> None:
    from wait_registry.cli.connect.own_position import require_no_position_of_ours
    from wait_registry.cli.connect.own_sweeper import require_no_sweeper_at_work
    from wait_registry.cli.connect.place import exports, keeps_view
    from wait_registry.settings.sink import SinkKind

    exporting = any(exports(connector.config) for connector in connectors)
    if exporting:
        require_no_sweeper_at_work(settings, aside)
    viewing = any(keeps_view(connector.config) for connector in connectors)
    if settings.sink.kind is SinkKind.CONNECT and (viewing or exporting):
        require_no_position_of_ours(settings, aside)


def _remark(connectors: list[Connector], settings: Settings) -> None:
    from wait_registry.cli.connect.chosen import not_looked_at
    from wait_registry.cli.connect.plain_secrets import plain_secrets
    from wait_registry.cli.connect.sink_lag import other_groups

    names = [connector.name for connector in connectors]
    for sentence in (
        *other_groups(connectors, settings.wait.topic, settings.sink.connect_group),
        *plain_secrets(connectors),
        *not_looked_at(names, settings.connect.connectors),
    ):
        print(sentence, file=sys.stderr)


def _print(connectors: list[Connector], settings: Settings) -> int:
    from wait_registry.cli.connect.place import require_place

    print("\n".join(connector.as_json() for connector in connectors))
    try:
        require_place(connectors, settings)
    except ConfigurationError as error:
        print(f"only printed; as the settings are, apply refuses it: {error}", file=sys.stderr)
    return 0


def _applied(applying: Applying, connectors: list[Connector]) -> bool:
    from wait_registry.cli.connect.apply import verdict

    states = applying.apply(connectors) if connectors else []
    verdicts = [(state.name, verdict(state)) for state in states]
    for name, judged in verdicts:
        _line(judged.word, name, judged.details)
    return all(judged.good for _, judged in verdicts)


def _require_sinks(applying: Applying, settings: Settings, connectors: list[Connector]) -> None:
    from wait_registry.settings.sink import SinkKind

    if settings.sink.kind is SinkKind.CONNECT:
        from wait_registry.cli.connect.sinks_at_work import require_sinks_at_work

        require_sinks_at_work(applying.states().values(), settings, [connector.name for connector in connectors])


def _await_sinks(applying: Applying, settings: Settings, aside: Aside) -> None:
    from wait_registry.settings.sink import SinkKind

    if settings.sink.kind is SinkKind.CONNECT:
        from wait_registry.cli.connect.caught_up import CaughtUp, view_sinks

        CaughtUp(settings, _line).wait(view_sinks(applying.states().values(), settings))
    else:
        from wait_registry.cli.connect.own_sink import OwnSinkCaughtUp

        OwnSinkCaughtUp(settings, _line, aside).wait()


def _connectors(given: argparse.Namespace, settings: Settings) -> list[Connector]:
    from wait_registry.cli.connect.client_security import with_client_security
    from wait_registry.cli.connect.connector_file import own_files, read_connector
    from wait_registry.cli.connect.variables import variable
    from wait_registry.settings.connect_relations import require_connect

    files = [Path(file) for file in given.what]
    files += own_files("sink", given.sink) if given.sink else []
    files += own_files("source", given.source) if given.source else []
    if not files:
        raise ConfigurationError(
            "nothing to apply: --sink debezium or --source debezium take this project's files, FILE takes yours"
        )
    require_connect(settings.connect)
    found = [read_connector(file, partial(variable, settings=settings)) for file in files]
    names = [connector.name for connector in found]
    doubled = sorted({name for name in names if names.count(name) > 1})
    if doubled:
        raise ConfigurationError(f"two files are of one name, {', '.join(doubled)}: apply one of them")
    return [with_client_security(connector, settings) for connector in found]


def _status(invocation: Invocation) -> int:
    from wait_registry.cli.connect.chosen import Chosen
    from wait_registry.cli.connect.sink_lag import SinkLags
    from wait_registry.cli.connect.status import as_json, as_lines, is_well

    settings = invocation.settings()
    named = invocation.arguments.what or settings.connect.connectors
    chosen = Chosen.of(_rest(settings).states(), named)
    lags = SinkLags(settings.kafka)
    known = lags.of(chosen.present)
    if invocation.arguments.json:
        print(as_json(chosen, known))
    else:
        print("\n".join(as_lines(chosen, known)))
        if lags.trouble is not None:
            print(lags.trouble, file=sys.stderr)
    return 0 if is_well(chosen) else 1


def _watch(invocation: Invocation) -> int:
    from wait_registry.cli.connect.watch_service import WatchService
    from wait_registry.logs import configure_logging

    settings = invocation.settings()
    configure_logging(settings.log, "connect-watch")
    ServiceProcess(lambda: WatchService(settings)).run()
    return 0


def _remove(invocation: Invocation) -> int:
    from wait_registry.cli.connect.connector_file import NAMES
    from wait_registry.cli.connect.left_behind import left_behind
    from wait_registry.cli.connect.place import exporters_first

    settings = invocation.settings()
    rest = _rest(settings)
    named: list[str] = invocation.arguments.what or list(settings.connect.connectors or NAMES)
    # A source that outlives its sinks reads a view that stands still.
    for name, config in exporters_first({name: rest.config(name) for name in named}):
        if config is not None and rest.delete(name):
            _line("removed", name, left_behind(config))
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


_ACTIONS: Final = {"apply": _apply, "status": _status, "watch": _watch, "remove": _remove}

COMMAND: Final = Command(
    name="connect",
    group="setting up",
    summary="put Kafka Connect in the sink's or the sweeper's place, and keep its connectors running",
    description="""\
Drives the REST API of Kafka Connect workers (connect.url) with the connectors in connect-configs/.

`apply` fills the variables of the files (${wait.topic} and every other setting, ${postgres.jdbc_url}; never a secret:
${connect.secrets.postgres_password} becomes a reference that the worker resolves), has the connectors' classes look at
them, creates or changes what differs, restarts what has failed, and waits until all run: 1 if one doesn't. A sink needs
sink.kind=connect, and once `waitreg rebuild --set sink.kind=connect` where a sink of ours has been; a source
sweeper.kind=connect. A new source comes last, once the sinks have shown what stands in the
log; when one is stopped or has failed, or they don't move, it isn't made: 1, run it again. A second sink of one view,
or a second source of one outbox, is refused, whatever its name; so are connectors beside what a sink or a sweeper of
ours does or has left behind. How to change from the one to the other: connect-configs/README.md.
`status` shows connectors and tasks, where they run, why one failed, and how far a sink is behind: 1 if one has failed.
`watch` is a service: it restarts what fails, after an outage of Postgres say, which Kafka Connect itself never does;
at once, then with growing pauses. Metrics and health are at the telemetry port, as those of the other services. With
sweeper.kind=connect it asks Postgres how long expired registrations have been waiting, too.
`remove` deletes connectors, sources first. Offsets stay: to read them anew could export twice. Rows are mended by
`waitreg rebuild`.

status, watch and remove are about connect.connectors, or about those of this project that are there.""",
    examples=(
        "waitreg connect apply --sink debezium --source debezium --print   # look first",
        "waitreg connect apply --sink debezium --set sink.kind=connect",
        "waitreg connect apply --source debezium --set sweeper.kind=connect",
        "waitreg connect apply my.sink.json --set connect.url=https://connect-1:8083",
        "waitreg connect status",
        "waitreg connect watch --set telemetry.port=9467",
        "waitreg connect remove expired.source expired.tombstones",
    ),
    run=_run,
    configure=_configure,
)
