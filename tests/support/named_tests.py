"""Which tests there are, read from the files without importing them."""

from __future__ import annotations

import ast
from pathlib import Path

ROOT = Path(__file__).parents[2]


def is_test(test: str) -> bool:
    """Return whether ``path::name`` names a test function of this checkout."""
    path, _, name = test.partition("::")
    file = ROOT / path
    if not file.is_file() or not path.startswith("tests/"):
        return False
    tree = ast.parse(file.read_text(encoding="utf-8"))
    functions = {node.name for node in tree.body if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)}
    return name.startswith("test_") and name in functions
