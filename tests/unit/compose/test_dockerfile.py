"""The Dockerfile: what can be said of it without building it (`make compose-test` does)."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping

import pytest

from tests.support.docker_files import DOCKERFILE, ROOT, Stage, given_variables, image_defaults, lineage, stages

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
