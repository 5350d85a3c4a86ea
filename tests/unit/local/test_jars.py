"""The jars are byte for byte what was committed, or nothing starts."""

from __future__ import annotations

import re
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from wait_registry.errors import ConfigurationError
from wait_registry.jar_fetching import fetch_jars, ivy_command
from wait_registry.jvm import JAR_KINDS, JarKind, committed_sums, jar_directory, jar_lists, jars_home, java_major


@pytest.fixture
def copied(tmp_path: Path) -> Path:
    """A copy of Spark's jars, to be damaged."""
    return Path(shutil.copytree(jars_home() / "spark", tmp_path / "spark"))


@pytest.mark.parametrize("kind", JAR_KINDS)
def test_the_fetched_jars_are_the_committed_ones(kind: JarKind) -> None:
    directory = jar_directory(kind)
    assert {path.name for path in directory.iterdir()} == committed_sums(kind).keys()


def changed(jar: Path) -> None:
    content = bytearray(jar.read_bytes())
    content[len(content) // 2] ^= 1
    jar.write_bytes(content)


@pytest.mark.parametrize(
    ("damage", "jar", "said"),
    [
        (changed, "kafka-clients-3.9.2.jar", r"was changed.*waitreg jars fetch"),
        (Path.unlink, "commons-pool2-2.13.1.jar", r"is missing \(4 others are there\)"),
        (Path.touch, "stowaway-1.0.jar", "is not among the 5 jars expected"),
    ],
)
def test_jars_other_than_the_committed_are_refused(
    copied: Path, damage: Callable[[Path], None], jar: str, said: str
) -> None:
    damage(copied / jar)
    with pytest.raises(ConfigurationError, match=f"{re.escape(jar)} {said}"):
        jar_directory("spark", str(copied))


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigurationError, match="is missing"):
        jar_directory("spark", str(tmp_path / "nowhere"))


def test_fetching_what_is_there_changes_nothing_and_runs_no_java(copied: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", "/nowhere")
    (copied / "README").write_text("words")
    before = {path: path.stat().st_mtime_ns for path in copied.iterdir()}
    assert fetch_jars(copied.parent, ["spark"]) == []
    assert {path: path.stat().st_mtime_ns for path in copied.iterdir()} == before


def test_ivy_asks_only_for_what_is_wanted_and_takes_the_users_settings(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    settings = tmp_path / "ivysettings.xml"
    settings.write_text("<ivysettings/>")
    monkeypatch.setenv("IVY_SETTINGS", str(settings))
    command = ivy_command(["broker"], tmp_path, jar_lists())
    assert command[command.index("-settings") + 1] == str(settings)
    assert command[command.index("-confs") + 1 :] == ["broker"]


@pytest.mark.parametrize(
    ("printed", "major"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('java version "1.8.0_392"', 8),
        ('openjdk version "22-ea" 2024-03-19', 22),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "21"', 21),
        ("Unable to locate a Java Runtime.", None),
    ],
)
def test_the_major_version_of_java_is_read_from_what_it_prints(printed: str, major: int | None) -> None:
    assert java_major(printed) == major
