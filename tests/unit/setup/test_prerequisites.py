"""The check that runs before anything is downloaded, against fake commands on an otherwise bare PATH."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "setup" / "prerequisites.sh"
# What the script may use of any system, and nothing else: no real Python or Java leaks into the test.
TOOLS = ("sh", "sed", "printf")


class Host:
    """A machine with only the commands that a test gives it."""

    def __init__(self, folder: Path) -> None:
        self.bin = folder / "bin"
        self.bin.mkdir()
        for tool in TOOLS:
            path = shutil.which(tool)
            assert path is not None
            (self.bin / tool).symlink_to(path)

    def add(self, name: str, script: str) -> Path:
        path = self.bin / name
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        return path

    def add_python(self, name: str, version: str, *, venv: bool = True) -> Path:
        return self.add(name, f"case $2 in *version_info*) printf {version} ;; *) exit {0 if venv else 1} ;; esac")

    def add_java(self, version: str) -> Path:
        return self.add("java", f"echo 'openjdk version \"{version}\" 2025-04-15' >&2")

    def check(self, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), **variables}
        return subprocess.run(
            [str(self.bin / "sh"), str(SCRIPT)], env=environment, capture_output=True, text=True, check=False
        )


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def refusal(done: subprocess.CompletedProcess[str]) -> str:
    """Return the one line with which it refused."""
    assert done.returncode == 2
    assert done.stdout == ""
    (line,) = done.stderr.splitlines()
    return line


def test_the_python_to_use_is_printed(host: Host) -> None:
    host.add_java("17.0.15")
    python = host.add_python("python3", "3.11")

    done = host.check()

    assert (done.returncode, done.stdout, done.stderr) == (0, f"{python}\n", "")


@pytest.mark.parametrize("version", ["3.11", "3.12", "3.14", "4.0"])
def test_python_3_11_and_newer_are_taken(host: Host, version: str) -> None:
    host.add_java("17.0.15")
    host.add_python("python3", version)

    assert host.check().returncode == 0


@pytest.mark.parametrize("version", ["2.7", "3.6", "3.9", "3.10"])
def test_an_older_python_is_refused_with_its_version_and_the_mending_command(host: Host, version: str) -> None:
    host.add_java("17.0.15")
    host.add_python("python3", version)
    host.add("apt-get", "exit 1")

    line = refusal(host.check())

    assert "Python 3.11 or newer is needed" in line
    assert f"python3 is {version}" in line
    assert line.endswith("sudo apt-get install python3 python3-venv")


def test_a_newer_python_beside_an_old_python3_is_found(host: Host) -> None:
    host.add_java("17.0.15")
    host.add_python("python3", "3.9")
    newer = host.add_python("python3.12", "3.12")

    assert host.check().stdout == f"{newer}\n"


def test_a_shim_without_a_python_behind_it_is_passed_over(host: Host) -> None:
    host.add_java("17.0.15")
    host.add("python3.11", "echo 'python3.11: command not found' >&2; exit 127")
    behind = host.add_python("python3.13", "3.13")

    assert host.check().stdout == f"{behind}\n"


def test_no_python_at_all_is_refused(host: Host) -> None:
    host.add_java("17.0.15")
    host.add("brew", "exit 1")

    line = refusal(host.check())

    assert "none was found" in line
    assert line.endswith("brew install python@3.11")


def test_the_python_variable_decides(host: Host) -> None:
    host.add_java("17.0.15")
    host.add_python("python3", "3.11")
    host.add_python("ancient", "3.8")

    assert "ancient is 3.8" in refusal(host.check(PYTHON="ancient"))
    assert "PYTHON=/nowhere/python does not run" in refusal(host.check(PYTHON="/nowhere/python"))


def test_a_python_without_venv_is_refused(host: Host) -> None:
    host.add_java("17.0.15")
    host.add_python("python3", "3.11", venv=False)
    host.add("apt-get", "exit 1")

    assert refusal(host.check()).endswith("sudo apt-get install python3.11-venv")


@pytest.mark.parametrize(("version", "major"), [("1.8.0_392", "8"), ("11.0.22", "11"), ("16.0.1", "16")])
def test_an_older_java_is_refused_with_its_version_and_the_mending_command(
    host: Host, version: str, major: str
) -> None:
    host.add_python("python3", "3.11")
    host.add_java(version)
    host.add("apt-get", "exit 1")
    host.add("apt-cache", "case $2 in openjdk-21-*) exit 0 ;; *) exit 1 ;; esac")

    line = refusal(host.check())

    assert f"Java 17 or newer is needed, the java in PATH is {major}" in line
    assert line.endswith("sudo apt-get install openjdk-21-jre-headless")


@pytest.mark.parametrize("version", ["17.0.15", "17", "21.0.2", "22-ea"])
def test_java_17_and_newer_are_taken(host: Host, version: str) -> None:
    host.add_python("python3", "3.11")
    host.add_java(version)

    assert host.check().returncode == 0


def test_no_java_at_all_is_refused(host: Host) -> None:
    host.add_python("python3", "3.11")
    host.add("dnf", "exit 1")

    line = refusal(host.check())

    assert "none was found in PATH" in line
    assert line.endswith("sudo dnf install java-17-openjdk-headless")


def test_a_java_stub_that_only_says_where_to_get_java_counts_as_none(host: Host) -> None:
    host.add_python("python3", "3.11")
    host.add("java", "echo 'Unable to locate a Java Runtime.' >&2; exit 1")

    assert "does not run" in refusal(host.check())


def test_java_home_goes_before_path(host: Host, tmp_path: Path) -> None:
    host.add_python("python3", "3.11")
    host.add_java("17.0.15")
    old = tmp_path / "old"
    (old / "bin").mkdir(parents=True)
    host.add("old-java", "echo 'java version \"11.0.1\"' >&2").rename(old / "bin" / "java")

    assert f"the java in JAVA_HOME ({old}) is 11" in refusal(host.check(JAVA_HOME=str(old)))
    assert f"none was found in JAVA_HOME ({tmp_path}/empty)" in refusal(host.check(JAVA_HOME=f"{tmp_path}/empty"))
