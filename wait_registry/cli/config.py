"""`waitreg config`."""

from __future__ import annotations

import click

from wait_registry.cli.command import Command, Invocation
from wait_registry.settings.names import setting_names
from wait_registry.settings.secrets import describe


@click.command(
    "config",
    cls=Command,
    examples=("waitreg config", "waitreg config --all", "waitreg config --set processor.max_in_flight=20"),
)
@click.option("--all", "listing", is_flag=True, help="List every setting with default, bounds and reason.")
@click.pass_obj
def command(invocation: Invocation, listing: bool) -> int:
    """Print the settings in effect, or list all settings.

    Prints the settings that a service started here would use, with secrets masked. If a name is unknown or a value
    out of bounds, it ends with 2 and says what to write instead.
    """
    if listing:
        _print_reference()
    else:
        print(describe(invocation.settings()))
    return 0


def _print_reference() -> None:
    for setting in setting_names().values():
        print(f"{setting.name} = {setting.default or '(empty)'}")
        notes = "; ".join(filter(None, (setting.kind, setting.bounds, setting.variable)))
        print(f"    {setting.field.description} ({notes})")
