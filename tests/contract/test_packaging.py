"""The wheel holds what the product needs, the Connect plugin has its version, the processor imports no database."""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
import zipfile
from pathlib import Path
from xml.etree import ElementTree

import pytest

from tests.support.wheel import build_wheel, install_wheel

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


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel of this checkout."""
    return build_wheel(tmp_path_factory.mktemp("wheel"))


def test_the_wheel_holds_what_the_product_needs(wheel: Path) -> None:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    wanted = {
        str(Path(SOURCES[path.parts[0]], *path.parts[1:]))
        for path in map(Path, listed.stdout.splitlines())
        if path.parts[0] in SOURCES and path.suffix in KINDS and path.parts[:2] != ("connect-configs", "plugin")
    }
    assert {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name} == wanted


INSTALLED = """
import importlib, pkgutil, sys
import click
from wait_registry.postgres.query_file import load_query, query_names
from waitreg.main import main, waitreg

for name in ("wait_registry", "processor", "sink", "sweeper", "waitreg"):
    package = importlib.import_module(name)
    assert package.__file__.startswith(sys.prefix), package.__file__
    for module in pkgutil.walk_packages(package.__path__, name + "."):
        if not module.name.endswith("__main__"):
            importlib.import_module(module.name)
for name in query_names():
    load_query(name)

def run(command, words):
    if isinstance(command, click.Group):
        for name in command.list_commands(click.Context(command)):
            run(command.get_command(click.Context(command), name), [*words, name])
    try:
        status = main([*words, "--help"])
    except SystemExit as ended:
        status = ended.code
    assert not status, (words, status)

run(waitreg, [])
"""


def test_an_installed_wheel_imports_and_runs_each_command(wheel: Path, tmp_path: Path) -> None:
    python = install_wheel(wheel, tmp_path / "environment")
    run = subprocess.run(
        [python, "-c", INSTALLED], cwd=tmp_path, env={}, capture_output=True, text=True, check=False, timeout=120
    )
    assert run.returncode == 0, run.stderr


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
