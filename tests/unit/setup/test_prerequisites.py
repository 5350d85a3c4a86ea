"""What is checked before anything is downloaded, and the audit for known vulnerabilities."""

from __future__ import annotations

import shutil
import subprocess
from collections.abc import Mapping
from datetime import date
from pathlib import Path

import pytest

from tests.support.module_of_file import load_module

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

    def add(self, commands: Mapping[str, str]) -> None:
        for name, script in commands.items():
            (self.bin / name).write_text(f"#!/bin/sh\n{script}\n")
            (self.bin / name).chmod(0o755)

    def check(self, **variables: str) -> subprocess.CompletedProcess[str]:
        environment = {"PATH": str(self.bin), **variables}
        return subprocess.run(
            [str(self.bin / "sh"), str(SCRIPT)], env=environment, capture_output=True, text=True, check=False
        )

    def refusal(self, **variables: str) -> str:
        """Return the one line with which the script refuses this machine."""
        done = self.check(**variables)
        assert (done.returncode, done.stdout) == (2, "")
        (line,) = done.stderr.splitlines()
        return line


@pytest.fixture
def host(tmp_path: Path) -> Host:
    return Host(tmp_path)


def python(version: str, *, venv: bool = True) -> str:
    return f"case $2 in *version_info*) printf {version} ;; *) exit {0 if venv else 1} ;; esac"


def java(version: str) -> str:
    return f"echo 'openjdk version \"{version}\" 2025-04-15' >&2"


PYTHON = {"python3": python("3.11")}
JAVA = {"java": java("17.0.15")}
APT = {"apt-get": "exit 1"}
APT_JAVA = {**APT, "apt-cache": "case $2 in openjdk-21-*) exit 0 ;; *) exit 1 ;; esac"}
JAVA_FIX = "sudo apt-get install openjdk-21-jre-headless"
NO_PYTHON = "echo 'python3.11: command not found' >&2; exit 127"
NO_JAVA = "echo 'Unable to locate a Java Runtime.' >&2; exit 1"


@pytest.mark.parametrize(
    ("commands", "taken"),
    [
        *(({**JAVA, "python3": python(version)}, "python3") for version in ("3.11", "3.12", "3.14", "4.0")),
        ({**JAVA, "python3": python("3.9"), "python3.12": python("3.12")}, "python3.12"),
        ({**JAVA, "python3.11": NO_PYTHON, "python3.13": python("3.13")}, "python3.13"),
        *(({**PYTHON, "java": java(version)}, "python3") for version in ("17", "21.0.2", "22-ea")),
    ],
)
def test_the_first_python_that_is_new_enough_is_printed(commands: dict[str, str], taken: str, host: Host) -> None:
    host.add(commands)
    done = host.check()
    assert (done.returncode, done.stdout, done.stderr) == (0, f"{host.bin / taken}\n", "")


@pytest.mark.parametrize(
    ("commands", "said", "fix"),
    [
        *(
            ({**JAVA, **APT, "python3": python(version)}, f"python3 is {version}", "install python3 python3-venv")
            for version in ("2.7", "3.6", "3.9", "3.10")
        ),
        ({**JAVA, "brew": "exit 1"}, "Python 3.11 or newer is needed, none was found", "brew install python@3.11"),
        ({**JAVA, **APT, "python3": python("3.11", venv=False)}, "venv", "sudo apt-get install python3.11-venv"),
        *(
            ({**PYTHON, **APT_JAVA, "java": java(version)}, f"needed, the java in PATH is {major}", JAVA_FIX)
            for version, major in (("1.8.0_392", "8"), ("11.0.22", "11"), ("16.0.1", "16"))
        ),
        ({**PYTHON, "dnf": "exit 1"}, "none was found in PATH", "sudo dnf install java-17-openjdk-headless"),
        ({**PYTHON, "java": NO_JAVA}, "does not run", ""),
    ],
)
def test_a_machine_is_refused_with_the_fix(commands: dict[str, str], said: str, fix: str, host: Host) -> None:
    host.add(commands)
    line = host.refusal()
    assert said in line
    assert line.endswith(fix)


def test_the_python_variable_decides(host: Host) -> None:
    host.add({**JAVA, **PYTHON, "ancient": python("3.8")})
    assert "ancient is 3.8" in host.refusal(PYTHON="ancient")
    assert "PYTHON=/nowhere/python does not run" in host.refusal(PYTHON="/nowhere/python")


def test_java_home_goes_before_path(host: Host, tmp_path: Path) -> None:
    host.add({**PYTHON, **JAVA, "old-java": java("11.0.1")})
    old = tmp_path / "old"
    (old / "bin").mkdir(parents=True)
    (host.bin / "old-java").rename(old / "bin" / "java")
    assert f"the java in JAVA_HOME ({old}) is 11" in host.refusal(JAVA_HOME=str(old))
    assert f"none was found in JAVA_HOME ({tmp_path}/empty)" in host.refusal(JAVA_HOME=f"{tmp_path}/empty")


audit = load_module(Path(__file__).parents[3] / "setup" / "audit.py")
ENTRY = '[[accepted]]\nid = "CVE-2026-77"\npackage = "example"\nreason = "not reached"\nuntil = 2026-11-21\n'


def test_an_accepted_one_passes_up_to_its_day(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(audit.accepted_ids(ENTRY, date(2026, 11, 21))) == ["CVE-2026-77"]
    assert list(audit.accepted_ids(ENTRY, date(2026, 11, 22))) == []
    assert "which is over" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("tool", "code", "said"),
    [
        ("echo 'no route to host' >&2; exit 1", 0, "NOT AUDITED for known vulnerabilities: no route to host"),
        ("exit 3", 0, "NOT AUDITED for known vulnerabilities: pip-audit gave no report"),
        ("echo 'No known vulnerabilities found' >&2", 0, "No known vulnerabilities found"),
        ("echo 'Name  Skip Reason'; echo '--- ---'; echo 'one  not found'", 0, "NOT AUDITED, 1 packages: one not"),
        ("echo 'example 2.0 PYSEC-2026-7 2.1'; exit 1", 1, "Raise what is listed"),
    ],
)
def test_the_gate_fails_for_a_vulnerability_alone(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str], tool: str, code: int, said: str
) -> None:
    script = tmp_path / "bin" / "pip-audit"
    script.parent.mkdir()
    script.write_text(f"#!/bin/sh\n{tool}\n")
    script.chmod(0o755)
    monkeypatch.setattr(audit, "TOOL", tmp_path)
    assert audit.main() == code
    assert said in capsys.readouterr().out
