"""`waitreg config`; with --markdown it prints docs/configuration.md."""

from __future__ import annotations

from itertools import groupby

import click

from wait_registry.cli.command import Command, Invocation, exclusive
from wait_registry.settings.names import FROM_FILE, SettingName, setting_names
from wait_registry.settings.root import Settings
from wait_registry.settings.secrets import describe

_HEAD = """\
# Configuration

<!-- Generated: `waitreg config --markdown > docs/configuration.md`. Edit the models in wait_registry/settings/. -->

Every setting has one name, `section.name`, and can be given in five places. The first that has it wins:

1. the command line: `--set processor.max_in_flight=20`, repeatable, before or after the subcommand;
2. the environment: `WAITREG_PROCESSOR__MAX_IN_FLIGHT=20` (prefix `WAITREG_`, two underscores between the levels);
3. a file `.env` in the current directory, same names as the environment;
4. the file `waitreg.toml` in the current directory, or the one given with `--config`;
5. the default below.

Outside of TOML a list is written with commas (`--set processor.topics=orders,refunds`) or as JSON, a table key by key
(`--set kafka.librdkafka.socket.timeout.ms=10000`) or as JSON. A setting marked *file* can be in a file of its own:
its name with `_file` takes the path (`WAITREG_KAFKA__SECURITY__PASSWORD_FILE=/run/secrets/kafka`). A secret is refused
on the command line, which everybody on the host can read.

An unknown name is refused wherever it is, with the nearest known one; so is a value out of bounds, and so are
settings that contradict each other (a TTL too short for the handler's timeouts, say). `waitreg config` prints what is
in effect, with secrets masked; `waitreg doctor` checks it against Kafka and Postgres.

```toml
# waitreg.toml
[kafka]
bootstrap_servers = "kafka-1:9092,kafka-2:9092"

[processor]
group = "orders"
topics = ["orders"]
handler = "shop.orders:handle"
max_in_flight = 50
```
"""
_TABLE_HEAD = "| setting | default | type and bounds | what it is |\n|---|---|---|---|"


@click.command(
    "config",
    cls=Command,
    examples=("waitreg config", "waitreg config --all", "waitreg config --set processor.max_in_flight=20"),
    exit_codes=(0, 2),
)
@click.option("--all", "listing", is_flag=True, help="List every setting with default, bounds and reason.")
@click.option("--markdown", is_flag=True, help="Print that list as docs/configuration.md.")
@click.pass_obj
def command(invocation: Invocation, listing: bool, markdown: bool) -> int:
    """Print the settings in effect, or list all settings.

    Prints the settings that a service started here would use, with secrets masked. If a name is unknown or a value
    out of bounds, it ends with 2 and says what to write instead.
    """
    exclusive({"--all": listing, "--markdown": markdown})
    if markdown:
        print(configuration_page(), end="")
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


def configuration_page() -> str:
    """Return the whole page."""
    parts = [_HEAD]
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
