"""docker-compose.yml, read by a real YAML reader: what every service is promised, and that nothing in it is stale."""

from __future__ import annotations

import json
import re
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from tests.support.docker_files import COMPOSE_FILE, ROOT, filled, given_variables, lineage, stages, used_variables
from tests.support.prometheus import RULES, alert_rules, prometheus_tool
from wait_registry.settings.names import DELIMITER, PREFIX, find_setting
from wait_registry.settings.processor import ProcessorSettings
from wait_registry.settings.tree import Settings

Service = dict[str, Any]
DEPLOY = ROOT / "deploy"
OURS = "waitreg-"


@pytest.fixture(scope="module")
def read_yaml(spark: SparkSession) -> Callable[[str], Any]:
    """Return a reader of YAML: the one among Spark's jars, since Python brings none."""

    def read(text: str) -> Any:
        jvm = spark._jvm
        assert jvm is not None
        tree = jvm.org.yaml.snakeyaml.Yaml().load(text)
        return json.loads(jvm.com.fasterxml.jackson.databind.ObjectMapper().writeValueAsString(tree))

    return read


@pytest.fixture(scope="module")
def compose(read_yaml: Callable[[str], Any]) -> dict[str, Any]:
    """Return the file with the values of .env in it."""
    return dict(read_yaml(filled(COMPOSE_FILE.read_text("utf-8"))))


@pytest.fixture(scope="module")
def services(compose: dict[str, Any]) -> dict[str, Service]:
    return dict(compose["services"])


@pytest.fixture(scope="module")
def built(services: dict[str, Service]) -> dict[str, Service]:
    """Return the services of our own images."""
    return {name: service for name, service in services.items() if service["image"].startswith(OURS)}


def test_what_is_ours_can_write_nowhere_and_gain_nothing(built: dict[str, Service]) -> None:
    assert built.keys() >= {"processor", "sink", "sweeper", "console", "connect", "setup", "demo"}
    for name, service in built.items():
        assert service["read_only"] is True, name
        assert service["cap_drop"] == ["ALL"] and "cap_add" not in service, name
        assert service["security_opt"] == ["no-new-privileges:true"], name
        assert service["init"] is True, name
        assert any(place.startswith("/tmp:") for place in service["tmpfs"]), name


def test_every_service_has_a_limit_of_memory_and_of_its_log(services: dict[str, Service]) -> None:
    assert [name for name, service in services.items() if "mem_limit" not in service] == []
    assert [name for name, service in services.items() if "max-size" not in service["logging"]["options"]] == []


def test_images_of_our_own_are_never_asked_of_a_registry(built: dict[str, Service]) -> None:
    assert {service["pull_policy"] for service in built.values()} == {"never"}
    assert {service["image"].removeprefix(OURS) for service in built.values()} <= stages().keys()


def test_each_image_is_built_by_one_service_that_every_profile_has(services: dict[str, Service]) -> None:
    # Two that build one image at once fail where the engine keeps images in containerd.
    building = {name: service for name, service in services.items() if "build" in service}
    images = [service["image"] for service in building.values()]
    assert sorted(images) == sorted({service["image"] for service in services.values() if OURS in service["image"]})
    for name, service in building.items():
        assert service["image"] == f"{OURS}{service['build']['target']}", name
    for name, service in services.items():
        if OURS in service["image"] and name not in building:
            builder = building[next(one for one in building if building[one]["image"] == service["image"])]
            assert "profiles" not in builder, name


def test_a_java_that_unpacks_native_code_may_run_it(services: dict[str, Service]) -> None:
    # zstd and snappy; engines mount a tmpfs with noexec.
    java = {name for name, service in services.items() if service["image"] in ("waitreg-sink", "waitreg-sweeper")}
    for name in ("kafka", "connect", "setup", *java):
        (place,) = services[name]["tmpfs"]
        assert "exec" in place.removeprefix("/tmp:").split(","), name


def test_a_rebuild_may_take_as_much_as_the_sink(services: dict[str, Service]) -> None:
    assert services["setup"]["mem_limit"] == services["sink"]["mem_limit"]
    assert services["setup"]["tmpfs"] == services["sink"]["tmpfs"]


def test_ports_are_variables_and_on_loopback(services: dict[str, Service]) -> None:
    text = COMPOSE_FILE.read_text("utf-8")
    published = [port for service in services.values() for port in service.get("ports", ())]
    assert len(published) == len(set(published)) > 5
    assert len(re.findall(r'"127\.0\.0\.1:\$\{[A-Z_]+_PORT\}:\d+"', text)) == len(published)


def test_every_variable_is_given_and_used() -> None:
    assert used_variables() == given_variables().keys() - {"COMPOSE_PROFILES"}
    # The command reads the same .env.
    assert not [name for name in given_variables() if name.startswith(PREFIX)]


def test_profiles_are_what_the_first_lines_say(services: dict[str, Service]) -> None:
    of = {name: service.get("profiles", []) for name, service in services.items()}
    assert of["sink"] == of["sweeper"] == ["pipeline", "demo"]
    assert [name for name, profiles in of.items() if not profiles] == ["kafka", "postgres", "setup", "processor"]
    assert {name for name, profiles in of.items() if "connect" in profiles} == {"connect", "connectors"}
    demo = {name for name, profiles in of.items() if "demo" in profiles}
    assert demo - {"sink", "sweeper"} == {"downstream", "load", "demo"}
    assert {name for name, profiles in of.items() if "console" in profiles} == {"console"}
    assert given_variables()["COMPOSE_PROFILES"] == "pipeline,console"


def test_what_ends_by_itself_does_not_end_the_demo(services: dict[str, Service]) -> None:
    # `up --exit-code-from` takes the first end of a service whose log it follows for the end of all.
    ending = {
        name
        for service in services.values()
        for name, how in service.get("depends_on", {}).items()
        if how["condition"] == "service_completed_successfully"
    }
    assert ending == {"setup", "load"}
    for name in ending:
        assert services[name]["attach"] is False
        assert services[name]["restart"] == "no"
    assert services["demo"]["restart"] == "no" and services["demo"].get("attach", True)


def test_services_that_others_wait_for_have_a_health_check(services: dict[str, Service]) -> None:
    # Engines before 25 refuse `start_interval`.
    assert not [name for name, service in services.items() if "start_interval" in service.get("healthcheck", ())]
    for name, service in services.items():
        for needed, how in service.get("depends_on", {}).items():
            common = set(services[needed].get("profiles", ["any"])) & {"any", *service.get("profiles", ())}
            assert common, (name, needed)
            if how["condition"] == "service_healthy":
                target = services[needed]["image"].removeprefix(OURS)
                in_image = any(stage.arguments("HEALTHCHECK") for stage in lineage(target))
                assert in_image or "healthcheck" in services[needed], needed


def test_a_processor_told_to_stop_has_time_to_drain(services: dict[str, Service]) -> None:
    defaults = ProcessorSettings()
    grace_s = services["processor"]["stop_grace_period"].removesuffix("s")
    assert int(grace_s) >= defaults.drain_timeout_s + defaults.flush_timeout_s + 10


def test_the_processor_gets_no_setting_of_postgres(services: dict[str, Service]) -> None:
    processor = services["processor"]
    assert not [name for name in processor["environment"] if "POSTGRES" in name]
    assert processor["depends_on"].keys() == {"kafka", "setup"}
    assert processor["build"]["args"].keys() == {"PYTHON_IMAGE"}


def test_every_setting_that_is_given_exists(services: dict[str, Service]) -> None:
    given = {name for one in services.values() for name in one.get("environment", {}) if name.startswith(PREFIX)}
    dotted = {name: name.removeprefix(PREFIX).lower().replace(DELIMITER.lower(), ".") for name in given}
    assert len(given) > 5
    assert [name for name, setting in dotted.items() if find_setting(setting) is None] == []


@pytest.mark.parametrize(("name", "folder"), [("kafka", "KAFKA_LOG_DIRS"), ("postgres", "PGDATA")])
def test_servers_of_any_version_keep_data_in_the_volume(name: str, folder: str, services: dict[str, Service]) -> None:
    assert services[name]["volumes"] == [f"{name}:{services[name]['environment'][folder]}"]


def test_volumes_and_mounted_files_are_there(compose: dict[str, Any], services: dict[str, Service]) -> None:
    mounts = [mount.split(":") for service in services.values() for mount in service.get("volumes", ())]
    named = {source for source, *_ in mounts if not source.startswith(".")}
    assert named == compose["volumes"].keys()
    for source, _target, *mode in mounts:
        if source.startswith("."):
            assert (ROOT / source).exists(), source
            assert mode == ["ro"], source


def test_prometheus_takes_its_configuration_and_asks_who_is_there(
    read_yaml: Callable[[str], Any], services: dict[str, Service], tmp_path: Path
) -> None:
    file = tmp_path / "prometheus.yml"
    file.write_text((DEPLOY / "compose" / "prometheus.yml").read_text("utf-8"), "utf-8")
    (tmp_path / "alerts.yml").write_text(RULES.read_text("utf-8"), "utf-8")
    subprocess.run([prometheus_tool("promtool"), "check", "config", str(file)], check=True, capture_output=True)
    jobs = {job["job_name"]: job for job in read_yaml(file.read_text("utf-8"))["scrape_configs"]}
    asked = {name for job in jobs.values() for found in job["dns_sd_configs"] for name in found["names"]}
    assert asked <= services.keys()
    labels = {
        rule["target_label"]: rule["replacement"] for job in jobs.values() for rule in job.get("relabel_configs", ())
    }
    settings = Settings()
    assert labels == {"group": given_variables()["CONSUMER_GROUP"], "wait_topic": settings.wait.topic}
    wanted = {job for rule in alert_rules() for job in re.findall(r'job="(waitreg-\w+)"', rule.text)}
    assert wanted <= jobs.keys()


def test_grafana_finds_dashboard_and_prometheus(read_yaml: Callable[[str], Any], services: dict[str, Service]) -> None:
    provisioning = DEPLOY / "grafana" / "provisioning"
    (source,) = read_yaml((provisioning / "datasources" / "prometheus.yml").read_text("utf-8"))["datasources"]
    (provider,) = read_yaml((provisioning / "dashboards" / "waitreg.yml").read_text("utf-8"))["providers"]
    mounts = dict(mount.split(":")[:2] for mount in services["grafana"]["volumes"])
    dashboard = mounts["./deploy/grafana/waitreg.json"]
    assert mounts["./deploy/grafana/provisioning"] == "/etc/grafana/provisioning"
    assert Path(dashboard).parent == Path(provider["options"]["path"])
    assert services["grafana"]["environment"]["GF_DASHBOARDS_DEFAULT_HOME_DASHBOARD_PATH"] == dashboard
    assert source["url"] == "http://prometheus:9090" and source["type"] == "prometheus"
