"""The Dockerfile: what can be said of it without building it (`make compose-test` does)."""

from __future__ import annotations

import re

import pytest

from tests.support.compose_variables import given_variables
from tests.support.dockerfile import DOCKERFILE, ROOT, image_defaults, lineage, stages

TARGETS = ("processor", "sink", "sweeper", "tools", "connect")
JAVA_OR_SPARK = re.compile(r"java|jre|spark|jars")


@pytest.mark.parametrize("target", TARGETS)
def test_every_target_runs_as_a_user_who_is_not_root(target: str) -> None:
    users = [user for stage in reversed(lineage(target)) for user in stage.arguments("USER")]
    assert users and re.fullmatch(r"[1-9]\d*:[1-9]\d*", users[-1]), users


@pytest.mark.parametrize("target", ["processor", "sink", "sweeper", "connect"])
def test_every_service_says_when_it_is_ready(target: str) -> None:
    (check,) = [check for stage in lineage(target) for check in stage.arguments("HEALTHCHECK")]
    assert "/opt/healthy.py" in check or "/health" in check
    # Engines before 25 refuse it.
    assert "--start-interval" not in check


def test_the_processors_image_has_neither_java_nor_spark() -> None:
    taken = [source for stage in lineage("processor") for source in stage.arguments("COPY")]
    froms = [found[1] for source in taken if (found := re.search(r"--from=(\S+)", source))]
    made_from = {stage.name for name in froms for stage in lineage(name)}
    assert froms
    assert not [name for name in made_from if JAVA_OR_SPARK.search(name)]
    assert lineage("processor")[-1].base == "${PYTHON_IMAGE}"


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
                assert "--require-hashes" in install or {"--no-deps", "--no-index"} <= set(install.split()), install
    assert not re.findall(r"https?://(?!127\.0\.0\.1)", DOCKERFILE.read_text("utf-8"))


def test_what_is_copied_is_there_and_not_left_out() -> None:
    kept = {line[1:] for line in (ROOT / ".dockerignore").read_text("utf-8").splitlines() if line.startswith("!")}
    copies = [copy for stage in stages().values() for copy in stage.arguments("COPY") if "--from=" not in copy]
    sources = {source for copy in copies for source in copy.split()[:-1]}
    assert sources
    for source in sources:
        assert list(ROOT.glob(source.rstrip("/"))), f"COPY {source}: it isn't there"
        names = (source.rstrip("/"), *(kept_name.split("/")[0] for kept_name in kept if "*" in kept_name))
        assert any(names[0] == one or names[0].startswith(f"{one}/") for one in kept) or names[0] in names[1:], source


def test_no_secret_and_no_downloaded_jar_gets_into_the_build() -> None:
    lines = (ROOT / ".dockerignore").read_text("utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert rules[0] == "*", "what isn't named is left out"
    assert not {"!.env", "!jvm", "!jvm/jars", "!.git"} & set(rules)
