"""`waitreg config`; with --markdown it prints the tables of docs/configuration.md."""

from __future__ import annotations

from itertools import groupby

import click

from wait_registry.cli.command import Command, Invocation, exclusive
from wait_registry.settings.names import FROM_FILE, SettingName, setting_names
from wait_registry.settings.root import Settings
from wait_registry.settings.secrets import describe

_TABLE_HEAD = "| setting | default | type and bounds | what it is |\n|---|---|---|---|"


@click.command(
    "config",
    cls=Command,
    examples=("waitreg config", "waitreg config --all", "waitreg config --set processor.max_in_flight=20"),
    exit_codes=(0, 2),
)
@click.option("--all", "listing", is_flag=True, help="List every setting with default, bounds and reason.")
@click.option("--markdown", is_flag=True, help="Print that list as the tables of docs/configuration.md.")
@click.pass_obj
def command(invocation: Invocation, listing: bool, markdown: bool) -> int:
    """Print the settings in effect, or list all settings.

    Prints the settings that a service started here would use, with secrets masked. If a name is unknown or a value
    out of bounds, it ends with 2 and says what to write instead.
    """
    exclusive({"--all": listing, "--markdown": markdown})
    if markdown:
        print(configuration_tables(), end="")
    elif listing:
        _print_reference()
    else:
        print(describe(invocation.settings()))
    return 0


def _print_reference() -> None:
    for setting in setting_names().values():
        print(f"{setting.name} = {setting.default or '(empty)'}")
        notes = "; ".join(filter(None, (setting.kind, setting.bounds, setting.variable)))
        print(f"    {setting.field.description} ({notes})")


def configuration_tables() -> str:
    """Return the tables of the page, a section for each of the settings."""
    parts = []
    for section, settings in groupby(setting_names().values(), key=lambda setting: setting.name.partition(".")[0]):
        title = (Settings.model_fields[section].annotation.__doc__ or "").splitlines()[0].replace("``", "`")
        rows = "\n".join(map(_row, settings))
        parts.append(f"## {section}\n\n{title}\n\n{_TABLE_HEAD}\n{rows}\n")
    return "\n".join(parts)


def _row(setting: SettingName) -> str:
    default = f"`{setting.default}`" if setting.default else ""
    from_file = "*file*" if setting.name in FROM_FILE else ""
    bounds = ", ".join(filter(None, (setting.kind, setting.bounds, from_file)))
    cells = (f"`{setting.name}`", default, bounds, setting.field.description or "")
    return "| " + " | ".join(cell.replace("|", "\\|") for cell in cells) + " |"
