"""`waitreg config`."""

from __future__ import annotations

import argparse
from typing import Final

from wait_registry.cli.command import Command, Invocation


def _configure(parser: argparse.ArgumentParser) -> None:
    what = parser.add_mutually_exclusive_group()
    what.add_argument("--all", action="store_true", help="list every setting with its default, bounds and reason")
    what.add_argument("--markdown", action="store_true", help="the same list as docs/configuration.md")


def _run(invocation: Invocation) -> int:
    if invocation.arguments.markdown:
        from wait_registry.cli.configuration_page import configuration_page

        print(configuration_page(), end="")
    elif invocation.arguments.all:
        _print_reference()
    else:
        from wait_registry.settings.loading import describe

        print(describe(invocation.settings()))
    return 0


def _print_reference() -> None:
    from wait_registry.cli.settings_reference import settings_reference

    for setting in settings_reference():
        bounds = f"; {setting.bounds}" if setting.bounds else ""
        print(f"{setting.name} = {setting.default or '(empty)'}")
        print(f"    {setting.description} ({setting.kind}{bounds}; {setting.variable})")


COMMAND: Final = Command(
    name="config",
    group="setting up",
    summary="print the settings in effect, or list all there are",
    description="""\
Prints the settings that a service started here, now, would use, secrets masked; an unknown name or a value out of
bounds ends with 2 and says what to write instead. `--all` lists every setting there is.""",
    examples=("waitreg config", "waitreg config --all", "waitreg config --set processor.max_in_flight=20"),
    run=_run,
    configure=_configure,
    exit_codes=(0, 2),
)
