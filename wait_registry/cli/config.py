"""`waitreg config`."""

from __future__ import annotations

import click

from wait_registry.cli.command import Command, Invocation


@click.command(
    "config",
    cls=Command,
    examples=("waitreg config", "waitreg config --all", "waitreg config --set processor.max_in_flight=20"),
    exit_codes=(0, 2),
)
@click.option("--all", "listing", flag_value="all", help="List every setting with default, bounds and reason.")
@click.option("--markdown", "listing", flag_value="markdown", help="Print that list as docs/configuration.md.")
@click.pass_obj
def command(invocation: Invocation, listing: str | None) -> int:
    """Print the settings in effect, or list all settings.

    Prints the settings that a service started here would use, with secrets masked. If a name is unknown or a value
    out of bounds, it ends with 2 and says what to write instead.
    """
    if listing == "markdown":
        from wait_registry.cli.configuration_page import configuration_page

        print(configuration_page(), end="")
    elif listing == "all":
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
