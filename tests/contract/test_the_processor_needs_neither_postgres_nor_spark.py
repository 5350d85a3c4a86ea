"""P6: nothing that a processor runs with imports Postgres or Spark, not even through another module."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

LOADED = """
import importlib, json, pkgutil, sys
import processor
for module in pkgutil.walk_packages(processor.__path__, "processor."):
    importlib.import_module(module.name)
print(json.dumps(sorted(sys.modules)))
"""
FOREIGN = {"psycopg", "pyspark", "pyarrow", "py4j", "apscheduler", "sink", "sweeper", "wait_registry.cli"}


@pytest.mark.guarantee("P6.1", "C.6")
def test_importing_every_module_of_the_processor_loads_none_of_them() -> None:
    run = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, check=True, text=True, timeout=60)
    loaded = set(json.loads(run.stdout))
    assert "processor.pipeline" in loaded
    assert loaded & FOREIGN == set()
