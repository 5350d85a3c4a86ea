"""The Dockerfile, what an image installs and its health check: what can be said without building it."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Collection, Mapping
from importlib.metadata import requires

import pytest
from packaging.requirements import Requirement

from tests.support.docker_files import DOCKERFILE, ROOT, Stage, given_variables, image_defaults, lineage, stages
from wait_registry.service.health import Health
from wait_registry.telemetry.exposition import MetricsRegistry
from wait_registry.telemetry.server import TelemetryServer
from waitreg.local.ports import free_ports

TARGETS = ("processor", "sink", "sweeper", "console", "tools", "connect")
JVM_FILES = ("py", "xml", "sha256", "properties")
JAVA_OR_SPARK = re.compile(r"java|jre|spark|jars")


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_runs_as_a_user_who_is_not_root(target: str) -> None:
    users = [user for stage in reversed(lineage(target)) for user in stage.arguments("USER")]
    assert users and re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1]), users


@pytest.mark.parametrize("target", ["processor", "sink", "sweeper", "console", "connect"])
def test_every_service_says_when_it_is_ready(target: str) -> None:
    (check,) = [check for stage in lineage(target) for check in stage.arguments("HEALTHCHECK")]
    assert "/opt/healthy.py" in check or "/health" in check
    # Engines before 25 refuse it.
    assert "--start-interval" not in check


@pytest.mark.parametrize("target", ["processor", "console"])
def test_the_image_has_neither_java_nor_spark(target: str) -> None:
    taken = [source for stage in lineage(target) for source in stage.arguments("COPY")]
    froms = [found[1] for source in taken if (found := re.search(r"--from=(\S+)", source))]
    made_from = {stage.name for name in froms for stage in lineage(name)}
    assert froms
    assert not [name for name in made_from if JAVA_OR_SPARK.search(name)]
    assert lineage(target)[-1].base == "${PYTHON_IMAGE}"


def test_versions_of_images_are_those_that_compose_passes_on() -> None:
    given = given_variables()
    defaults = image_defaults()
    assert defaults == {name: given[name] for name in defaults}
    assert {stage.base for stage in stages().values()} <= {f"${{{name}}}" for name in defaults} | stages().keys()


@pytest.mark.parametrize("image", [name for name in given_variables() if name.endswith("_IMAGE")])
def test_images_have_a_version(image: str) -> None:
    name, _, tag = given_variables()[image].partition(":")
    assert name and re.match(r"v?\d", tag), f"{image}={name}:{tag}"


def test_nothing_is_fetched_but_by_locked_clients() -> None:
    for stage in stages().values():
        assert not stage.arguments("ADD"), "ADD takes addresses: COPY what is here"
        for run in stage.arguments("RUN"):
            assert not re.search(r"\b(curl|wget|git|apt-get|apk)\b", run), run
            for install in re.findall(r"pip (?:install|wheel)[^&]*", run):
                options = set(install.split())
                assert "--no-deps" in options and options & {"--require-hashes", "--no-index"}, install
    assert not re.findall(r"https?://(?!127\.0\.0\.1)", DOCKERFILE.read_text("utf-8"))


def test_what_is_copied_is_there_and_nothing_else_gets_into_the_build() -> None:
    first, *rules = [line for line in _lines(".dockerignore") if line and not line.startswith("#")]
    kept = {rule[1:] for rule in rules if rule.startswith("!")}
    sources = {source.rstrip("/") for _flags, copied in _copies_from_here(stages()) for source in copied}
    assert first == "*", "what isn't named is ignored"
    assert sources
    for source in sources:
        assert list(ROOT.glob(source)), f"COPY {source}: it isn't there"
    assert {source for source in sources if not _within(source, kept)} == {"jvm"}
    assert {name for name in kept if not _within(name, sources)} == set()
    # Jars that were fetched here, and what the plugin's build left, aren't what an image is made of.
    assert {name for name in kept if name.startswith("jvm")} == {f"jvm/*.{of}" for of in JVM_FILES}
    assert "connect-configs/plugin/target" in rules


def test_what_runs_can_read_what_was_copied_whatever_the_clones_umask() -> None:
    running = {stage.name: stage for target in TARGETS for stage in lineage(target)}
    copies = _copies_from_here(running)
    assert copies
    assert [copied for flags, copied in copies if not any(flag.startswith("--chmod=") for flag in flags)] == []


def _copies_from_here(of: Mapping[str, Stage]) -> list[tuple[list[str], list[str]]]:
    """Return the flags and the sources of every COPY out of the repository."""
    words = [copy.split() for stage in of.values() for copy in stage.arguments("COPY") if "--from=" not in copy]
    flags = [[word for word in copy if word.startswith("--")] for copy in words]
    return [(given, copy[len(given) : -1]) for given, copy in zip(flags, words, strict=True)]


def _within(name: str, folders: Collection[str]) -> bool:
    return any(name == folder or name.startswith(f"{folder}/") for folder in folders)


def _lines(file: str) -> list[str]:
    return (ROOT / file).read_text("utf-8").splitlines()


def locked(*wanted: str) -> dict[str, str]:
    """Return name -> block of the part that the script prints."""
    done = subprocess.run(
        [sys.executable, "setup/locked_for.py", "requirements.txt", *wanted],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    blocks = re.split(r"(?m)^(?=[a-z0-9])", done.stdout)[1:]
    return {block.partition("==")[0]: block for block in blocks}


def needs(extras: tuple[str, ...]) -> set[str]:
    """Return everything that this project needs, by pyproject.toml and the metadata of what is installed here."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]
    optional = project["optional-dependencies"]
    lines = [*project["dependencies"], *(line for extra in extras for line in optional[extra])]
    found: set[str] = set()
    open_ends = [Requirement(line) for line in lines]
    while open_ends:
        need = open_ends.pop()
        name = re.sub(r"[-_.]+", "-", need.name).lower()
        if name == project["name"]:
            open_ends += [Requirement(line) for extra in need.extras for line in optional[extra]]
            continue
        if name in found:
            continue
        found.add(name)
        for line in requires(name) or ():
            further = Requirement(line)
            if not further.marker or any(further.marker.evaluate({"extra": extra}) for extra in ("", *need.extras)):
                open_ends.append(further)
    return found


@pytest.mark.parametrize("extras", [(), ("query",), ("otel", "grpc"), ("sink", "sweeper", "otel"), ("all",)])
def test_it_holds_everything_that_is_needed_and_nothing_else(extras: tuple[str, ...]) -> None:
    assert set(locked(*extras)) == needs(extras)


def test_what_is_not_locked_is_refused() -> None:
    with pytest.raises(subprocess.CalledProcessError) as refused:
        locked("flask")
    assert "not locked: flask" in refused.value.stderr


SCRIPT = ROOT / "deploy" / "compose" / "healthy.py"


def check(port: int, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-IS", str(SCRIPT), *arguments],
        env={"WAITREG_TELEMETRY__PORT": str(port)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("reasons", [[], ["starting"]])
def test_only_a_service_that_is_ready_is_healthy(reasons: list[str]) -> None:
    ready = lambda: Health.of(reasons)  # noqa: E731
    with TelemetryServer("127.0.0.1", 0, MetricsRegistry(), live=lambda: Health(True), ready=ready) as server:
        done = check(server.port)
    assert done.returncode == len(reasons)
    assert all(reason in done.stdout for reason in reasons)


def test_an_argument_names_the_port() -> None:
    nothing, other = free_ports(2)
    assert f"no answer on port {other}" in check(nothing, str(other)).stdout


def test_no_answer_is_not_healthy() -> None:
    (port,) = free_ports(1)
    done = check(port)
    assert done.returncode == 1
    assert "no answer" in done.stdout
