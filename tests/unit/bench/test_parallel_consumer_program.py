"""The Parallel Consumer's program: compiled anew when what it is made of has changed, and started as its order says."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench.contenders.parallel_consumer import flow
from bench.contenders.parallel_consumer.program import SOURCES, fingerprint, javac_command
from wait_registry.errors import ConfigurationError
from wait_registry.jvm import BENCH_JAR_KINDS, JAR_KINDS, committed_sums

SUMS = {"one.jar": "ab" * 32, "two.jar": "cd" * 32}


@pytest.fixture
def sources(tmp_path: Path) -> list[Path]:
    """Two source files."""
    files = [tmp_path / "One.java", tmp_path / "Two.java"]
    for file in files:
        file.write_text(f"class {file.stem} {{}}", "utf-8")
    return files


def test_the_same_sources_and_jars_are_compiled_once(sources: list[Path]) -> None:
    assert fingerprint(sources, SUMS) == fingerprint(sources, dict(reversed(SUMS.items())))


def test_a_changed_source_is_compiled_anew(sources: list[Path]) -> None:
    before = fingerprint(sources, SUMS)
    sources[1].write_text("class Two { }", "utf-8")

    assert fingerprint(sources, SUMS) != before


def test_a_changed_jar_has_it_compiled_anew(sources: list[Path]) -> None:
    assert fingerprint(sources, {**SUMS, "two.jar": "ef" * 32}) != fingerprint(sources, SUMS)


def test_a_java_without_its_compiler_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    java = tmp_path / "bin" / "java"
    java.parent.mkdir()
    java.write_text("#!/bin/sh\necho 'openjdk version \"17.0.1\"' >&2\n")
    java.chmod(0o755)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(ConfigurationError, match="has no javac beside it: install a whole JDK"):
        javac_command()


@pytest.mark.parametrize("order", flow.ORDERS)
def test_the_command_says_order_and_heap(order: flow.Order, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(flow, "java_command", lambda: "java")
    monkeypatch.setattr(flow, "class_path", lambda: os.pathsep.join(("classes", "jars/*")))

    command = flow.flow_command(order, heap="300m")

    assert command[:2] == ["java", "-Xmx300m"]
    assert command[-3:] == [flow.MAIN, "--order", order]


def test_its_version_is_the_one_that_is_fetched() -> None:
    name, version = flow.VERSION.split()

    assert f"{name}-{version}.jar" in committed_sums("parallel-consumer")


def test_its_jars_are_fetched_for_the_benchmark_alone() -> None:
    assert "parallel-consumer" in BENCH_JAR_KINDS
    assert not set(BENCH_JAR_KINDS) & set(JAR_KINDS)


def test_its_main_class_is_among_the_sources() -> None:
    assert (SOURCES / f"{flow.MAIN.rpartition('.')[2]}.java").is_file()
