"""The pages: each command in them can be typed, links, metrics, queries, refusals and the README is right."""

from __future__ import annotations

import re
import shlex
import sys
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType

import click
import pytest

from processor.handlers.loading import load_handler
from processor.handlers.python import ContextualHandler
from tests.evidence import ROOT, all_tests
from tests.reference_pages import MARK, PICTURES
from tests.reference_pages import PAGES as REFERENCES
from tests.support.all_metrics import ALL_METRICS
from tests.support.command_line import parsed
from wait_registry.postgres.query_file import load_query, query_names
from wait_registry.settings.loading import load_settings
from wait_registry.settings.names import FROM_FILE, FROM_FILE_SUFFIX, find_setting, setting_names
from wait_registry.settings.processor import ProcessorSettings
from waitreg.connect.state import NAMES as CONNECTORS

_FENCE = re.compile(r"^( *)(```+)([a-z]*) *\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """One Markdown file; ``name`` is its path from the project's root."""

    name: str
    text: str

    @property
    def prose(self) -> str:
        return _FENCE.sub("", self.text)

    @property
    def blocks(self) -> list[str]:
        return [match[4] for match in _FENCE.finditer(self.text)]

    @property
    def spans(self) -> list[str]:
        return [" ".join(span.split()) for span in _SPAN.findall(self.prose)]

    @property
    def links(self) -> list[str]:
        return _LINK.findall(self.prose)

    @property
    def anchors(self) -> set[str]:
        """Return the anchors of its headings, as GitHub makes them."""
        seen: Counter[str] = Counter()
        found: set[str] = set()
        for heading in _HEADING.findall(self.prose):
            slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
            seen[slug] += 1
        return found

    def commands(self, program: str) -> Iterator[str]:
        """Yield what is to be typed: lines of code blocks and code spans that run ``program``, one line each."""
        runs = re.compile(rf"^\s*(?:[A-Z_]+=\S* )*({program} .*)$")
        for line in [line for block in self.blocks for line in block.replace("\\\n", " ").splitlines()] + self.spans:
            if match := runs.match(line):
                yield match[1]


def pages() -> list[Page]:
    files = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
        *ROOT.glob("deploy/**/*.md"),
        *ROOT.glob("connect-configs/*.md"),
    ]
    return [read(file) for file in sorted(files)]


def read(file: Path) -> Page:
    return Page(str(file.relative_to(ROOT)), file.read_text(encoding="utf-8"))


DOCS = ROOT / "docs"
LINKS = [(page, link) for page in pages() for link in page.links if not link.startswith(("http://", "https://"))]


@pytest.mark.parametrize(("page", "link"), LINKS, ids=[f"{page.name}->{link}" for page, link in LINKS])
def test_a_link_leads_to_a_file_and_a_heading(page: Page, link: str) -> None:
    path, _, anchor = link.partition("#")
    target = (ROOT / page.name).parent / path if path else ROOT / page.name
    assert target.exists(), f"{page.name} links to {path}, which is not there"
    if anchor:
        assert target.suffix == ".md"
        assert anchor in read(target.resolve()).anchors, f"{path or page.name} has no heading #{anchor}"


@pytest.mark.parametrize("page", REFERENCES, ids=lambda page: page.name)
def test_a_reference_page_is_current(page: Path) -> None:
    assert page.read_text("utf-8").partition(MARK)[2] == REFERENCES[page](), "run `python -m tests.reference_pages`"


@pytest.mark.parametrize("file", PICTURES, ids=lambda file: file.name)
def test_the_pictures_show_the_transitions_of_a_record(file: Path) -> None:
    text = file.read_text("utf-8")
    assert PICTURES[file](text) == text, "run `python -m tests.reference_pages`"


def test_every_setting_has_a_description() -> None:
    assert [name for name, setting in setting_names().items() if not setting.description] == []


def test_the_metrics_page_names_every_metric() -> None:
    questions = (DOCS / "metrics.md").read_text("utf-8")
    assert [metric.name for metric in ALL_METRICS if f"`{metric.name}`" not in questions] == []


NAME = re.compile(r"\bwaitreg_(?:processor|sink|sweeper|ready|build)\w*")
NAMED = sorted({(page.name, name) for page in pages() for name in NAME.findall(page.text)})
EXPOSED = {
    metric.name + part
    for metric in ALL_METRICS
    for part in ("", *(("_bucket", "_sum", "_count") if metric.kind == "histogram" else ()))
}


@pytest.mark.parametrize(("page", "name"), NAMED, ids=[f"{page}: {name}" for page, name in NAMED])
def test_a_metric_that_a_page_names_exists(page: str, name: str) -> None:
    assert name in EXPOSED


INCIDENT = (DOCS / "incident.md").read_text("utf-8")
SECTIONS = dict(re.findall(r"^### (\w+)\n(.*?)(?=^##|\Z)", INCIDENT, re.MULTILINE | re.DOTALL))


def test_the_incident_page_has_a_section_for_every_query() -> None:
    assert set(SECTIONS) == set(query_names())


@pytest.mark.parametrize("name", query_names())
def test_a_query_has_its_question_its_command_and_an_answer(name: str) -> None:
    section = SECTIONS.get(name, "")
    assert load_query(name).question in section, "the page needs its question"
    assert f"$ waitreg query {name}" in section
    rows = re.search(r"^\((\d+) rows?\)$", section, re.MULTILINE)
    assert rows is not None
    assert int(rows[1]) > 0


REFUSALS = (DOCS / "refusals.md").read_text("utf-8")
NAMED_TESTS = set(re.findall(r"`(test_\w+)`", REFUSALS))
# The tables of permissions name no tests.
WITHOUT = ("| service ", "| processor | READ", "| sink | READ", "| sweeper | READ")


def test_the_refusals_page_and_the_tests_name_each_other() -> None:
    tests = all_tests()
    assert NAMED_TESTS - {test.name for test in tests} == set()
    refusals = [test for test in tests if test.file.is_relative_to(ROOT / "tests" / "refusals")]
    assert {test.file for test in refusals} == {test.file for test in refusals if test.name in NAMED_TESTS}
    rows = [line for line in REFUSALS.splitlines() if line.startswith("| ") and "| test |" not in line]
    assert [row for row in rows if "`test_" not in row and not row.startswith(WITHOUT)] == []


COMPARISON = (DOCS / "comparison.md").read_text("utf-8")
# Rows about which no test can say anything, and the row of a part in work.
UNTESTED = {"Broker versions"}


def test_each_feature_of_the_comparison_names_a_test_that_exists() -> None:
    features = re.findall(r"^\| ([A-Z].*?) \|(?:.*?\|){6} (.*) \|$", COMPARISON, re.MULTILINE)
    rows = {feature: set(re.findall(r"`(test_\w+)`", cell)) for feature, cell in features}
    assert {feature for feature, named in rows.items() if not named} == UNTESTED
    assert set.union(*rows.values()) - {test.name for test in all_tests()} == set()


def test_the_processor_takes_the_readme_s_handler(monkeypatch: pytest.MonkeyPatch) -> None:
    (code,) = [block for block in read(ROOT / "README.md").blocks if "class ChargeOrder" in block]
    module = ModuleType("orders_of_the_readme")
    exec(compile(code, "README.md", "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    handler = load_handler(ProcessorSettings(handler=f"{module.__name__}:ChargeOrder"))
    assert isinstance(handler, ContextualHandler)
    assert "export WAITREG_PROCESSOR__HANDLER=orders:ChargeOrder" in read(DOCS / "first-handler.md").text


PAGES = pages()
COMMANDS = sorted({(page.name, command) for page in PAGES for command in page.commands("waitreg")})
MAKES = sorted({(page.name, command) for page in PAGES for command in page.commands("make")})
VARIABLE = re.compile(r"\bWAITREG_[A-Z0-9]+(?:__?[A-Z0-9]+)*\b")
# The page of refusals shows names that are wrong on purpose.
RIGHT = [page for page in PAGES if page.name != "docs/refusals.md"]
VARIABLES = sorted({(page.name, name) for page in RIGHT for name in VARIABLE.findall(page.text) if "__" in name})
SECTIONS_OF_SETTINGS = "|".join(sorted({name.partition(".")[0] for name in setting_names()}))
SETTING = re.compile(rf"^({SECTIONS_OF_SETTINGS})(\.[a-z_.]+[a-z_])(?: *=.*)?$")
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
