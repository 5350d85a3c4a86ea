"""Every command in the pages can be typed: subcommand, options, settings, queries and make targets exist."""

from __future__ import annotations

import re
import shlex

import click
import pytest

from tests.evidence import ROOT
from tests.support.command_line import parsed
from tests.unit.docs.pages import pages
from wait_registry.cli.connect.connector_file import NAMES as CONNECTORS
from wait_registry.postgres.query_file import load_query, query_names
from wait_registry.settings.loading import load_settings
from wait_registry.settings.names import FROM_FILE, FROM_FILE_SUFFIX, find_setting, setting_names

PAGES = pages()
COMMANDS = sorted({(page.name, command) for page in PAGES for command in page.commands("waitreg")})
MAKES = sorted({(page.name, command) for page in PAGES for command in page.commands("make")})
VARIABLE = re.compile(r"\bWAITREG_[A-Z0-9]+(?:__?[A-Z0-9]+)*\b")
# The page of refusals shows names that are wrong on purpose.
RIGHT = [page for page in PAGES if page.name != "docs/refusals.md"]
VARIABLES = sorted({(page.name, name) for page in RIGHT for name in VARIABLE.findall(page.text) if "__" in name})
SECTIONS = "|".join(sorted({name.partition(".")[0] for name in setting_names()}))
SETTING = re.compile(rf"^({SECTIONS})(\.[a-z_.]+[a-z_])(?: *=.*)?$")
SETTINGS = sorted(
    {
        (page.name, "".join(match.groups()))
        for page in RIGHT
        for span in page.spans
        # A connector's name may begin as a section's.
        if (match := SETTING.match(span)) and span not in CONNECTORS
    }
)
# What follows is the shell's: another command, a file, the background, a comment.
SHELL = re.compile(r"\s(?:[|>&]|2>|#).*$")


def words(command: str) -> list[str]:
    """Return the arguments of a command as the shell hands them over; a place to fill in counts as a word."""
    return shlex.split(SHELL.sub("", command).replace("[", "").replace("]", ""))[1:]


@pytest.mark.parametrize(("page", "command"), COMMANDS, ids=[f"{page}: {command}" for page, command in COMMANDS])
def test_waitreg_takes_it(page: str, command: str) -> None:
    arguments = words(command)
    if arguments == ["--version"] or arguments[-1] in ("...", "--help"):
        return
    try:
        path, values, overrides = parsed(arguments)
    except click.UsageError as error:
        pytest.fail(f"{page}: `{command}` can't be typed: {error.message}")
    load_settings(overrides, env={})
    if path == "waitreg query" and not re.fullmatch(r"LIST.*|NAME|\.\.\.", values["name"]):
        query = load_query(values["name"])
        names = {text.partition("=")[0] for text in values["parameters"]}
        assert names <= set(query.parameters), f"{page}: `{command}` gives parameters that the query doesn't have"
        assert set(query.parameters) <= names | set(query.defaults), f"{page}: `{command}` leaves a parameter out"


@pytest.mark.parametrize(("page", "command"), MAKES, ids=[f"{page}: {command}" for page, command in MAKES])
def test_make_has_the_target(page: str, command: str) -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.MULTILINE))
    asked = {word for word in words(command) if "=" not in word}
    assert asked <= targets, f"{page}: `{command}`"


@pytest.mark.parametrize(("page", "variable"), VARIABLES, ids=[f"{page}: {name}" for page, name in VARIABLES])
def test_the_environment_variable_sets_something(page: str, variable: str) -> None:
    dotted = variable.removeprefix("WAITREG_").lower().replace("__", ".")
    known = find_setting(dotted) is not None or dotted.removesuffix(FROM_FILE_SUFFIX) in FROM_FILE
    assert known, f"{page}: {variable}"


@pytest.mark.parametrize(("page", "name"), SETTINGS, ids=[f"{page}: {name}" for page, name in SETTINGS])
def test_the_setting_exists(page: str, name: str) -> None:
    section = any(known.startswith(f"{name}.") for known in setting_names())
    known = section or find_setting(name) is not None or name.removesuffix(FROM_FILE_SUFFIX) in FROM_FILE
    assert known, f"{page}: {name}"


def test_queries_that_pages_name_as_files_are_there() -> None:
    named = {name for page in PAGES for name in re.findall(r"sql/queries/([a-z_]+)\.sql", page.text)}
    assert named <= set(query_names())
