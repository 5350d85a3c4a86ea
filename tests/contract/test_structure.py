"""The shape of the product: sizes of files and functions, no cycles, imports at the top, state written by its owner."""

from __future__ import annotations

import ast
from collections import defaultdict
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PACKAGES = ("wait_registry", "processor", "sink", "sweeper", "waitreg")
TREES = {
    path.relative_to(ROOT): ast.parse(path.read_text("utf-8"))
    for package in PACKAGES
    for path in sorted((ROOT / package).rglob("*.py"))
}
MODULES = {".".join(path.with_suffix("").parts).removesuffix(".__init__"): path for path in TREES}

LONG_FILES = {"wait_registry/telemetry/metrics.py": "one list, the only place with the names of metrics"}
MANY_PARAMETERS = {
    "wait_registry/records/consumed.py:consumed": "what a client returns of a message",
    "wait_registry/records/lineage.py:of": "the block's fields, by name",
    "waitreg/testing.py:record": "what a test may choose of a record, by name",
}
# Every other import stands at the top of its file.
INNER_IMPORTS = {
    "wait_registry/schemas/registry.py:_client": "extra schema-registry",
    "wait_registry/schemas/registry.py:protobuf": "extra schema-registry",
    "wait_registry/schemas/registry.py:content": "extra schema-registry",
    "wait_registry/schemas/registry.py:_avro_schema": "extra schema-registry",
    "wait_registry/telemetry/tracing.py:start_tracing": "extra otel",
    "processor/handlers/loading.py:load_handler": "the client of the HTTP handler, for handlers that are URLs",
    "processor/handlers/loading.py:_grpc": "extra grpc",
    "waitreg/command.py:settings": "help and completion need no settings",
    "waitreg/console/command.py:command": "extra console",
    "waitreg/db.py:_show": "extra query",
    "waitreg/doctor/catalogue.py:_postgres": "extra query",
    "waitreg/main.py:_known": "extra query",
    "waitreg/query.py:_ask": "extra query",
}

# Files that assign attributes of objects that aren't ours, and have the name of one that is.
OTHERS_OBJECTS = {
    "processor/handlers/grpc_messages.py": "Protobuf's descriptors",
    "sweeper/snapshot.py": "psycopg's connection",
    "wait_registry/postgres/connection.py": "psycopg's connection",
    "wait_registry/schemas/protobuf.py": "Protobuf's descriptors",
}

Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions() -> Iterator[tuple[str, Function]]:
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, Function):
                yield f"{path}:{node.name}", node


def test_files_have_at_most_400_lines() -> None:
    sizes = {str(path): len((ROOT / path).read_text("utf-8").splitlines()) for path in TREES}
    assert {path for path, lines in sizes.items() if lines > 400} == set(LONG_FILES)


def test_functions_have_at_most_40_lines() -> None:
    long = {name for name, node in functions() if (node.end_lineno or 0) - node.lineno >= 40}
    assert long == set()


def test_functions_have_at_most_six_parameters() -> None:
    def count(node: Function) -> int:
        given = node.args.posonlyargs + node.args.args + node.args.kwonlyargs
        return len([each for each in given if each.arg not in ("self", "cls")])

    assert {name for name, node in functions() if count(node) > 6} == set(MANY_PARAMETERS)


def test_imports_stand_at_the_top() -> None:
    inner = [
        name for name, node in functions() for each in ast.walk(node) if isinstance(each, ast.Import | ast.ImportFrom)
    ]
    assert set(inner) == set(INNER_IMPORTS)
    assert len(inner) < 20


def test_an_attribute_is_assigned_where_its_class_is_defined() -> None:
    owners = defaultdict(set)
    for path, name in _defined():
        owners[name].add(path)
    foreign = {
        f"{path}:{target.lineno} {ast.unparse(target)}"
        for path, target in _assigned()
        if path not in owners.get(target.attr, {path}) and str(path) not in OTHERS_OBJECTS
    }
    assert foreign == set()


def _assigned() -> Iterator[tuple[Path, ast.Attribute]]:
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute) and isinstance(node.ctx, ast.Store):
                yield path, node


def _defined() -> Iterator[tuple[Path, str]]:
    """Return the attributes of our classes: what their methods assign, and what they annotate."""
    for path, target in _assigned():
        if isinstance(target.value, ast.Name) and target.value.id in ("self", "cls"):
            yield path, target.attr
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                fields = (each.target for each in node.body if isinstance(each, ast.AnnAssign))
                yield from ((path, field.id) for field in fields if isinstance(field, ast.Name))


@pytest.mark.parametrize(
    "folder", sorted({parent for path in TREES for parent in path.parents if parent.parts}), ids=str
)
def test_the_parts_of_a_folder_import_one_another_in_one_direction(folder: Path) -> None:
    parts: dict[str, set[str]] = defaultdict(set)
    inside = ".".join(folder.parts) + "."
    for module, path in MODULES.items():
        if module.startswith(inside):
            mine = module.removeprefix(inside).partition(".")[0]
            others = {
                name.removeprefix(inside).partition(".")[0]
                for name in _imported(TREES[path])
                if name.startswith(inside)
            }
            parts[mine] |= others - {mine}
    try:
        TopologicalSorter(parts).prepare()
    except CycleError as error:
        pytest.fail(f"{folder}: {' -> '.join(error.args[1])}")


def _imported(tree: ast.AST) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module:
            for each in node.names:
                name = f"{node.module}.{each.name}"
                yield name if name in MODULES else node.module
