"""`waitreg demo`."""

from __future__ import annotations

import click

from waitreg.command import Command, Invocation


@click.command(
    "demo",
    cls=Command,
    extra="local",
    examples=("waitreg demo", "waitreg demo --keep"),
)
@click.option("--keep", is_flag=True, help="Let everything continue after the result, until Ctrl-C.")
@click.pass_obj
def command(_: Invocation, keep: bool) -> int:
    """Compare throughput, kill a processor, and reconcile every record.

    Starts a Kafka broker, Postgres and the three services as processes on this machine. It calls the same service from
    a consumer that commits batches and from processors in the modes eager and deferred. It prints their rates with
    their limits, and which share of the records each registered. Then it kills a processor while handlers run. You see
    its records in Postgres, see them expire, and see each arrive once in the dead letter topic. It ends with the
    reconciliation of every published record. Its console shows the same in a browser: open the address that it prints.
    Takes less than four minutes; Ctrl-C stops everything.
    """
    from waitreg.demo.main import run_demo

    return run_demo(keep=keep)
