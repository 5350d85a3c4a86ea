"""The command `waitreg`: finds the subcommand, runs it and turns its error into an exit code."""

from __future__ import annotations

import argparse
import os
import sys
import traceback
from collections.abc import Iterable, Sequence
from pathlib import Path

from wait_registry.cli.catalogue import COMMANDS
from wait_registry.cli.command import EXIT_CODES, Command, Invocation
from wait_registry.errors import WaitRegistryError

_ABOUT = """\
The wait registry: at-least-once processing of Kafka records that call slow or flaky services, without the slow ones
holding up the rest and without losing one.

Before the work on a record starts, the record itself is written to a durable wait topic; then its offset may be
committed. When the work ends, however it ends, a tombstone removes it. What has no tombstone when its time is up was
lost in a crash, and is exported to the dead letter topic with everything it came with. Three services do this:
the processor (consumes and calls your handler), the sink (wait topic -> Postgres, the view for people) and the
sweeper (exports what expired).
"""
_SETTINGS = """\
settings, strongest first: --set NAME=VALUE, environment (WAITREG_PROCESSOR__GROUP=orders), .env, waitreg.toml,
default. `waitreg config --all` lists them all.
"""


class _Formatter(argparse.RawDescriptionHelpFormatter):
    def __init__(self, prog: str) -> None:
        super().__init__(prog, max_help_position=28, width=120)


def main(argv: Sequence[str] | None = None) -> int:
    """Run `waitreg` with these arguments (default: the process's own) and return its exit code."""
    arguments = build_parser().parse_args(argv)
    command: Command = arguments.command
    try:
        return command.run(_invocation(arguments))
    except WaitRegistryError as error:
        print(f"waitreg {command.name}: {_one_line(error)}", file=sys.stderr)
        return error.exit_code
    except KeyboardInterrupt:
        print(f"waitreg {command.name}: interrupted", file=sys.stderr)
        return 130
    except BrokenPipeError:
        # The reader of our output has gone (`waitreg query ... | head`): there is nobody left to tell.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except Exception:  # noqa: BLE001 - the last resort of the process: everything unforeseen is shown in full
        traceback.print_exc()
        return 1


def build_parser() -> argparse.ArgumentParser:
    """Build the parser of the whole command from the catalogue of subcommands."""
    parser = argparse.ArgumentParser(
        prog="waitreg",
        usage="waitreg [--config FILE] [--set NAME=VALUE]... COMMAND ...",
        description=f"{_ABOUT}\n{_overview()}",
        epilog=f"`waitreg COMMAND --help` says more.\n\n{_SETTINGS}\n{_exit_codes(EXIT_CODES)}",
        formatter_class=_Formatter,
        allow_abbrev=False,
    )
    parser.add_argument("--version", action=_Version, nargs=0, help="print the version and end")
    _add_settings_options(parser, "before")
    subparsers = parser.add_subparsers(prog="waitreg", metavar="COMMAND", required=True, help=argparse.SUPPRESS)
    for command in COMMANDS:
        subparser = subparsers.add_parser(
            command.name,
            description=command.description,
            epilog=_examples(command),
            formatter_class=_Formatter,
            allow_abbrev=False,
        )
        command.configure(subparser)
        _add_settings_options(subparser, "after")
        subparser.set_defaults(command=command)
    return parser


def _add_settings_options(parser: argparse.ArgumentParser, place: str) -> None:
    # Two destinations, because argparse lets a subcommand's option replace the one given before it.
    parser.add_argument(
        "--config", metavar="FILE", type=Path, dest=f"config_{place}", help="settings file instead of ./waitreg.toml"
    )
    parser.add_argument(
        "--set",
        metavar="NAME=VALUE",
        type=_assignment,
        action="append",
        default=[],
        dest=f"set_{place}",
        help="set one setting, e.g. processor.max_in_flight=20; may be repeated",
    )


def _assignment(text: str) -> tuple[str, str]:
    name, separator, value = text.partition("=")
    if not separator or not name.strip():
        raise argparse.ArgumentTypeError(f"{text!r} is no NAME=VALUE, e.g. processor.max_in_flight=20")
    return name.strip(), value


def _invocation(arguments: argparse.Namespace) -> Invocation:
    config_file: Path | None = arguments.config_after or arguments.config_before
    return Invocation(arguments, dict([*arguments.set_before, *arguments.set_after]), config_file)


def _overview() -> str:
    width = max(len(command.name) for command in COMMANDS)
    lines: list[str] = []
    for group in dict.fromkeys(command.group for command in COMMANDS):
        lines.append(f"{group}:")
        lines += [f"  {c.name:<{width}}  {c.summary}" for c in COMMANDS if c.group == group]
    return "\n".join(lines)


def _examples(command: Command) -> str:
    examples = "\n".join(f"  {example}" for example in command.examples)
    return f"examples:\n{examples}\n\n{_exit_codes(command.exit_codes)}"


def _exit_codes(codes: Iterable[int]) -> str:
    return "exit codes: " + ", ".join(f"{code} {EXIT_CODES[code]}" for code in codes)


def _one_line(error: BaseException) -> str:
    # The cause is often the only place where the client library says what it saw.
    text = str(error) or type(error).__name__
    cause = error.__cause__
    if cause is None or not str(cause) or str(cause) in text:
        return text
    return f"{text} (because: {type(cause).__name__}: {str(cause).strip()})"


class _Version(argparse.Action):
    def __call__(self, parser: argparse.ArgumentParser, *_: object, **__: object) -> None:
        from importlib.metadata import version

        print(f"waitreg {version('wait-registry')}")
        parser.exit()


if __name__ == "__main__":
    sys.exit(main())
