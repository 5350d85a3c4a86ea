"""The wheel holds what the product needs, the Connect plugin has its version, the processor imports no database."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

ROOT = Path(__file__).resolve().parents[2]
SOURCES = {
    "wait_registry": "wait_registry",
    "processor": "processor",
    "sink": "sink",
    "sweeper": "sweeper",
    "waitreg": "waitreg",
    "sql": "wait_registry_sql",
    "connect-configs": "wait_registry_connect",
    "jvm": "wait_registry_jvm",
}
KINDS = {".py", ".html", ".css", ".js", ".svg", ".sql", ".json", ".xml", ".sha256", ".properties", ".proto", ".typed"}


def test_the_wheel_holds_what_the_product_needs(tmp_path: Path) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    wanted, tree = set(), tmp_path / "tree"  # a tree of its own: setuptools takes what an older build/ left
    for path in map(Path, listed.stdout.splitlines()):
        if path.parts[0] in SOURCES or len(path.parts) == 1:
            (tree / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, tree / path)
        if path.parts[0] in SOURCES and path.suffix in KINDS and path.parts[:2] != ("connect-configs", "plugin"):
            wanted.add(str(Path(SOURCES[path.parts[0]], *path.parts[1:])))
    options = ["-q", "--no-deps", "--no-build-isolation", "-w", str(tmp_path)]
    command = [sys.executable, "-m", "pip", "wheel", *options, "."]
    built = subprocess.run(command, cwd=tree, capture_output=True, text=True, check=False, timeout=240)
    assert built.returncode == 0, built.stderr
    [wheel] = tmp_path.glob("*.whl")
    held = {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name}
    assert held == wanted


def test_the_connect_plugin_has_the_project_s_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    pom = ElementTree.parse(ROOT / "connect-configs" / "plugin" / "pom.xml")
    assert pom.findtext("m:version", namespaces={"m": "http://maven.apache.org/POM/4.0.0"}) == project["version"]


LOADED = """
import importlib, json, pkgutil, sys
import processor
for module in pkgutil.walk_packages(processor.__path__, "processor."):
    importlib.import_module(module.name)
print(json.dumps(sorted(sys.modules)))
"""
FOREIGN = {"psycopg", "pyspark", "pyarrow", "py4j", "apscheduler", "sink", "sweeper", "waitreg"}


@pytest.mark.guarantee("P6.1", "C.6")
def test_importing_every_module_of_the_processor_loads_no_database() -> None:
    run = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, check=True, text=True, timeout=60)
    loaded = set(json.loads(run.stdout))
    assert "processor.wiring" in loaded
    assert loaded & FOREIGN == set()
