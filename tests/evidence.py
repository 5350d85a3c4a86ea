"""Write docs/evidence.md from the marks on the tests: `python -m tests.evidence`."""

from __future__ import annotations

import ast
import tomllib
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from typing import Final, NamedTuple

from tests.safeguards.catalogue import all_safeguards

ROOT: Final = Path(__file__).parents[1]
PAGE: Final = ROOT / "docs" / "evidence.md"
HEAD: Final = """\
# Evidence

This page is written by `python -m tests.evidence` from the marks on the tests, so don't edit it. It says which tests
show what [guarantees.md](guarantees.md) promises, clause by clause. The last column names the safeguards that
`tests/safeguards` removes, and what shows that each is missing: a test of the clause, by `make mutants`, or the
[simulation](simulation.md). A clause without one rests on pure functions or on whole
systems; `make mutation` draws generated faults of all of them. What else was tried is in [trials.md](trials.md).
"""


class Test(NamedTuple):
    """A test with marks: its file, its name, and the IDs of the clauses and faults that it names."""

    file: Path
    name: str
    clauses: tuple[str, ...]
    faults: tuple[str, ...]

    @property
    def node(self) -> str:
        """Return what pytest calls the test."""
        return f"{self.file.relative_to(ROOT).as_posix()}::{self.name}"


def listed(file: str, table: str) -> dict[str, str]:
    """Return a table of tests/guarantees.toml or tests/faults/faults.toml."""
    found: dict[str, str] = tomllib.loads((ROOT / "tests" / file).read_text("utf-8"))[table]
    return found


def promises() -> dict[str, str]:
    """Return the promises, by ID."""
    return listed("guarantees.toml", "promise")


def clauses() -> dict[str, str]:
    """Return the clauses' sentences, by ID."""
    return listed("guarantees.toml", "clause")


def faults() -> dict[str, dict[str, str]]:
    """Return ``name`` and ``promise`` of each fault, by ID."""
    return tomllib.loads((ROOT / "tests" / "faults" / "faults.toml").read_text("utf-8"))["fault"]


@cache
def all_tests() -> tuple[Test, ...]:
    """Return every test function below tests/, read from the files without importing them."""
    files = sorted((ROOT / "tests").rglob("test_*.py"))
    return tuple(test for file in files for test in _tests_of(file))


def _tests_of(file: Path) -> Iterator[Test]:
    for node in ast.parse(file.read_text("utf-8")).body:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) and node.name.startswith("test_"):
            yield Test(file, node.name, _marked(node, "guarantee"), _marked(node, "fault"))


def _marked(function: ast.FunctionDef | ast.AsyncFunctionDef, mark: str) -> tuple[str, ...]:
    calls = [call for call in function.decorator_list if isinstance(call, ast.Call)]
    named = [call for call in calls if ast.unparse(call.func) == f"pytest.mark.{mark}"]
    return tuple(str(ast.literal_eval(argument)) for call in named for argument in call.args)


def page() -> str:
    """Return the page as it should be."""
    parts = [HEAD]
    for promise, title in promises().items():
        parts.append(f"\n## {promise}: {title}\n\n| clause | | tests | safeguards |\n|---|---|---|---|\n")
        parts += [_row(id_, text) for id_, text in clauses().items() if id_.partition(".")[0] == promise]
    parts.append("\n## Faults\n\n| fault | | promises | tests |\n|---|---|---|---|\n")
    for id_, fault in faults().items():
        tests = _names(test for test in all_tests() if id_ in test.faults)
        parts.append(f"| {id_} | {fault['name']} | {fault['promise']} | {tests} |\n")
    return "".join(parts)


def _row(id_: str, text: str) -> str:
    tests = _names(test for test in all_tests() if id_ in test.clauses)
    return f"| {id_} | {text} | {tests} | {_safeguards(id_)} |\n"


def _names(tests: Iterator[Test]) -> str:
    return "<br>".join(f"`{test.name}`" for test in tests)


def _safeguards(clause: str) -> str:
    named = (safeguard for safeguard in all_safeguards() if safeguard.clause == clause)
    return "<br>".join(f"`{each.name}`{'' if each.real else ' (simulation)'}" for each in named) or "–"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
