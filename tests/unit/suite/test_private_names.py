"""Tests use what the product shows: none reaches a private attribute of it, or imports a private name."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tests.evidence import ROOT

PACKAGES = ("wait_registry", "processor", "sink", "sweeper")
# Mutants break the product from inside.
FILES = sorted(path for path in (ROOT / "tests").rglob("*.py") if "mutants" not in path.parts)
# Of named tuples, which have no other names for it.
PUBLIC = {"_replace", "_fields", "_asdict", "_make"}


def private_names(nodes: Iterator[ast.AST]) -> Iterator[str]:
    """Return the private names that code defines."""
    for node in nodes:
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            yield node.name
        elif isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
            yield node.attr
        elif isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
            yield node.id


OURS = {
    name
    for package in PACKAGES
    for path in (ROOT / package).rglob("*.py")
    for name in private_names(ast.walk(ast.parse(path.read_text("utf-8"))))
    if name.startswith("_") and not name.startswith("__") and name not in PUBLIC
}


def reached(path: Path) -> Iterator[str]:
    """Return where a file reaches a private name of the product."""
    tree = ast.parse(path.read_text("utf-8"))
    imports = [node for node in ast.walk(tree) if isinstance(node, ast.ImportFrom)]
    own = {name.asname or name.name for node in imports if str(node.module).startswith("tests") for name in node.names}
    own |= {"self", "cls", "KafkaError"}
    for node in imports:
        if str(node.module).split(".")[0] in PACKAGES:
            yield from (f"line {node.lineno}: import {name.name}" for name in node.names if name.name in OURS)
    for found in (node for node in ast.walk(tree) if isinstance(node, ast.Attribute)):
        if found.attr in OURS and ast.unparse(found.value) not in own | {"super()"}:
            yield f"line {found.lineno}: {ast.unparse(found)}"


def test_no_file_of_the_tests_reaches_a_private_name_of_the_product() -> None:
    found = {path.relative_to(ROOT).as_posix(): list(reached(path)) for path in FILES}
    assert {path: places for path, places in found.items() if places} == {}
