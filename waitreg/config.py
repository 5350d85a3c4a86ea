"""`waitreg config`."""

from __future__ import annotations

import json
import sys

import click

from wait_registry.errors import ConfigurationError
from wait_registry.settings.kafka import kafka_problems
from wait_registry.settings.masking import describe, shown_settings
from wait_registry.settings.names import setting_names, variable_of
from wait_registry.settings.topic_relations import topic_problems
from waitreg.command import Command, Invocation


@click.command(
    "config",
    cls=Command,
    examples=(
        "waitreg config",
        "waitreg config --all",
        "waitreg config --json",
        "waitreg config --set processor.max_in_flight=20",
    ),
)
@click.option("--all", "listing", is_flag=True, help="List every setting with default, bounds and reason.")
@click.option("--json", "as_json", is_flag=True, help="Print the settings in effect as one JSON object.")
@click.pass_obj
def command(invocation: Invocation, listing: bool, as_json: bool) -> int:
    """Print the settings in effect, or list all settings.

    Prints the settings that a service started here would use, with secrets masked. If a name is unknown or a value
    out of bounds, it ends with 2 and says what to write instead. Below the settings, standard error has what each
    service refuses or warns of at its start; `waitreg doctor` checks the rest.
    """
    if listing:
        if as_json:
            raise ConfigurationError("--json prints the settings in effect, and --all lists all: give one of the two")
        _print_reference()
        return 0
    settings = invocation.settings()
    print(json.dumps(shown_settings(settings), ensure_ascii=False, indent=2) if as_json else describe(settings))
    for problem in (*kafka_problems(settings.kafka), *topic_problems(settings)):
        print(f"{problem.severity}: {problem}", file=sys.stderr)
    return 0


def _print_reference() -> None:
    for setting in setting_names().values():
        print(f"{setting.name} = {setting.default or '(empty)'}")
        notes = "; ".join(filter(None, (setting.kind, setting.bounds, variable_of(setting.name))))
        print(f"    {setting.description} ({notes})")
