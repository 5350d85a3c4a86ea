"""The Connect plugin is released with the rest: one version."""

from __future__ import annotations

import tomllib
from pathlib import Path
from xml.etree import ElementTree

ROOT = Path(__file__).parents[2]
MAVEN = {"m": "http://maven.apache.org/POM/4.0.0"}


def test_the_plugin_bears_the_projects_version() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    pom = ElementTree.parse(ROOT / "connect-configs" / "plugin" / "pom.xml")
    assert pom.findtext("m:version", namespaces=MAVEN) == project["version"]
