"""The command `waitreg`: find the subcommand, run it, and turn its error into an exit code."""

from __future__ import annotations

import os
import sys
import traceback
from collections.abc import Mapping, Sequence
from typing import Final

import click

from wait_registry.errors import WaitRegistryError
from waitreg.command import EXIT_CODES, Entry, Group, Invocation

COMMANDS: Final[Mapping[str, Sequence[Entry]]] = {
    "Services": (
        Entry("processor", "Consume the input topics and call your handler for each record."),
        Entry("sink", "Copy the wait topic and the dead letter topics into Postgres.", "sink"),
        Entry("sweeper", "Export expired registrations to the dead letter topic.", "sweeper"),
    ),
    "Setup": (
        Entry("topics", "Create or check the wait topic, the dead letter topics, and the group's own topics."),
        Entry("db", "Create, migrate or check the Postgres schema."),
        Entry("jars", "Fetch or verify the jars of Spark's Kafka source, the local broker and Kafka Connect."),
        Entry("connect", "Configure and watch Kafka Connect connectors that replace the sink or the sweeper."),
        Entry("doctor", "Check settings, Kafka, Postgres and services, and print a fix for each problem."),
        Entry("config", "Print the settings in effect, or list all settings."),
    ),
    "Inspect and repair": (
        Entry("query", "Run a ready-made incident query."),
        Entry("dlq", "Find dead letters, look at them, and have them handled again."),
        Entry("console", "Serve web pages of what waits and what failed."),
        Entry("history", "Write how each record was settled to Parquet files.", "sink"),
        Entry("rebuild", "Rebuild the Postgres tables from the wait topic and the operations topic.", "sink"),
        Entry("rewind", "Move the committed offsets of a group."),
        Entry("replay", "Handle a range of the input topics again."),
    ),
    "Try it": (
        Entry("demo", "Compare throughput, kill a processor, and reconcile every record.", "local"),
        Entry("stack", "Run a Kafka broker and Postgres on this machine without Docker."),
        Entry("load", "Publish realistic or hostile records to a topic."),
        Entry("downstream", "Run an HTTP service with the latencies and failures you choose."),
        Entry("reconcile", "Judge from outside where every published record ended.", "query"),
    ),
}
_COMPLETION: Final = "_WAITREG_COMPLETE"
_CONTEXT: Final = {"help_option_names": ["--help", "-h"], "max_content_width": 120}


class _Root(Group):
    """All subcommands; the help ends with the settings and the exit codes."""

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        formatter.write_paragraph()
        formatter.write_text(
            "Settings, strongest first: --set NAME=VALUE, environment (WAITREG_PROCESSOR__GROUP=orders), .env, "
            "waitreg.toml, default. `waitreg config --all` lists them all."
        )
        formatter.write_paragraph()
        formatter.write_text(f"Exit codes: {', '.join(f'{code} {means}' for code, means in EXIT_CODES.items())}.")


@click.command(cls=_Root, package="waitreg", entries=COMMANDS, context_settings=_CONTEXT)
@click.version_option(package_name="wait-registry", message="waitreg %(version)s")
def waitreg() -> None:
    """At-least-once Kafka processing for handlers that call slow or flaky services.

    One slow call doesn't block the partition, and a crash doesn't lose a record.

    By default, the processor writes a copy of each record to a durable wait topic before it calls the handler; then it
    may commit the record's offset. When the handler ends, a tombstone removes the copy. If a copy has no tombstone by
    its deadline, its process has died. The sweeper then writes the record to the dead letter topic, unchanged. The sink
    copies the wait topic into Postgres, where you and the sweeper can query it.
    """


def main(argv: Sequence[str] | None = None) -> int:
    """Run `waitreg` with these arguments (default: those of the process) and return its exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if _COMPLETION in os.environ:
        waitreg.main(arguments, "waitreg")  # a shell asks how a line continues; Click answers and ends the process
    invocation = Invocation()
    try:
        code = _run(arguments, invocation)
        sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        print(f"{invocation.path}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of the output has ended (`waitreg query ... | head`), so nothing can be reported.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception as error:  # noqa: BLE001 - the last resort of the process: everything unforeseen is shown in full
        if (known := _known(error)) is None:
            traceback.print_exc()
            return 1
        print(f"{invocation.path}: {_one_line(known)}", file=sys.stderr)
        return known.exit_code


def _run(arguments: list[str], invocation: Invocation) -> int:
    try:
        with waitreg.make_context("waitreg", arguments, obj=invocation) as context:
            code: int = waitreg.invoke(context)
            return code
    except click.exceptions.Exit as ended:
        sys.stdout.flush()
        return ended.exit_code
    except click.ClickException as error:
        error.show()
        return error.exit_code


def _known(error: Exception) -> WaitRegistryError | None:
    """Return an error of the tree: itself, or what an interrupted query to Postgres means; None if it is unforeseen."""
    if isinstance(error, WaitRegistryError):
        return error
    psycopg = sys.modules.get("psycopg")  # commands that don't need it don't import it
    if psycopg is None or not isinstance(error, psycopg.OperationalError):
        return None
    from wait_registry.postgres.connection import interrupted  # it needs psycopg, an extra

    return interrupted(error)


def _one_line(error: BaseException) -> str:
    # The cause is often the only place where the client library says what it saw.
    text = str(error) or type(error).__name__
    if fix := getattr(error, "fix", ""):
        text = f"{text}. Fix: {fix}"
    cause = error.__cause__
    said = (isinstance(cause, OSError) and cause.strerror) or str(cause or "")
    if not said or said in text:
        return text
    return f"{text} (because: {type(cause).__name__}: {str(cause).strip()})"


if __name__ == "__main__":
    sys.exit(main())
