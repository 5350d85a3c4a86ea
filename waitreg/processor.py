"""`waitreg processor`."""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path

import click

from processor.service import ProcessorService
from wait_registry.logs import configure_logging
from wait_registry.service.process import ServiceProcess
from waitreg.command import Command, Invocation


@click.command(
    "processor",
    cls=Command,
    examples=(
        "waitreg processor --set processor.group=orders --set processor.topics=orders,refunds \\",
        "    --set processor.handler=shop.orders:handle",
        "WAITREG_PROCESSOR__HANDLER=http://localhost:8080/orders waitreg processor --config orders.toml --once",
    ),
)
@click.option("--once", is_flag=True, help="Stop when every record that is in the topics now is settled.")
@click.pass_obj
def command(invocation: Invocation, once: bool) -> int:
    """Consume the input topics and call your handler for each record.

    Consumes processor.topics as processor.group. By default it registers each record in the wait topic, commits its
    offset, calls the handler for at most processor.max_in_flight records at once, and writes the tombstone. If the
    handler fails, it first writes the record to a retry topic or the dead letter topic. The handler is a Python
    `module:name`, imported from the current directory or PYTHONPATH, an http(s) URL to POST to, or grpc(s)://host:port.

    Needs Kafka and never Postgres. Start as many processors of a group as the input has partitions. On SIGTERM or
    Ctrl-C, running handlers finish (processor.drain_timeout_s). A second signal ends the process at once; the records
    in flight then remain registered.
    """
    settings = invocation.settings()
    configure_logging(settings.log, "processor")
    make_handlers_importable()
    ServiceProcess(lambda: ProcessorService(settings, once=once)).run()
    return 0


def make_handlers_importable() -> None:
    """Put the current directory first on the import path, which the installed script `waitreg` leaves out.

    Our own packages are imported before, so that a file there with the name of one doesn't replace it.
    """
    for package in ("processor", "sink", "sweeper"):
        import_module(package)
    here = str(Path.cwd())
    if here not in sys.path[:1]:
        sys.path.insert(0, here)
