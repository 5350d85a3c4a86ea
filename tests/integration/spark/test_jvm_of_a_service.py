"""P8: a service's JVM ends with it, whatever the signal, and a JVM that is killed or refuses ends the service."""

from __future__ import annotations

import os
import shutil
import signal
from contextlib import nullcontext, suppress
from pathlib import Path
from typing import TYPE_CHECKING

import psutil
import pytest

from tests.conftest import SettingsFactory
from tests.support.processes import Service, Services, below, runs
from tests.support.waiting import wait_until
from wait_registry.spark import SparkGone
from wait_registry.spark.session import require_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def jvm_and_all_else_of(service: Service) -> list[psutil.Process]:
    """Return what a service has started, its JVM among it."""
    children = below(service.pid)
    assert "java" in [name for name, _ in children]
    return [child for _, child in children]


@pytest.mark.guarantee("P8.17")
@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT], ids=lambda number: number.name)
@pytest.mark.parametrize("name", ["sink", "sweeper"])
def test_a_signal_to_the_group_ends_a_service_in_order_with_its_children(
    name: str, number: signal.Signals, prepared: SettingsFactory, services: Services
) -> None:
    service = services.start(name, prepared(), own_group=True).wait_ready()
    started, said = jvm_and_all_else_of(service), len(service.log_lines())
    os.killpg(service.pid, number)
    assert service.wait() == 0, service.log.read_text("utf-8")
    wait_until(lambda: not any(map(runs, started)), what="the end of all that it had started")
    assert [line for line in service.log_lines()[said:] if line.get("level", "INFO") != "INFO"] == []
    assert "Traceback" not in service.log.read_text("utf-8")


def test_its_jvm_ends_with_a_service_that_is_killed(prepared: SettingsFactory, services: Services) -> None:
    service = services.start("sink", prepared(), own_group=True).wait_ready()
    started = jvm_and_all_else_of(service)
    os.kill(service.pid, signal.SIGKILL)
    assert service.wait() == -signal.SIGKILL
    wait_until(lambda: not any(map(runs, started)), what="the end of all that it had started")


SECRET = "what-a-property-holds"


def starting_jvm(service: Service) -> psutil.Process | None:
    """Return the JVM that a service has just begun to start."""
    assert service.process.poll() is None, service.log.read_text("utf-8")
    for child in psutil.Process(service.pid).children():
        with suppress(psutil.NoSuchProcess):  # Java, asked for its version
            if child.name() == "java" and "org.apache.spark.deploy.SparkSubmit" in child.cmdline():
                return child
    return None


@pytest.mark.guarantee("P8.16")
def test_a_jvm_killed_at_start_ends_its_service_without_secrets(prepared: SettingsFactory, services: Services) -> None:
    told = {"spark.hadoop.fs.azure.oauth2.credential": SECRET, "spark.hadoop.told": "to-the-jvm"}
    service = services.start("sink", prepared({"spark.conf": told}))
    java = wait_until(lambda: starting_jvm(service), what="the start of the JVM", poll_s=0.01)
    shown = java.cmdline()
    java.kill()
    assert "spark.hadoop.told=to-the-jvm" in shown, "here the properties stand"
    assert SECRET not in " ".join(shown)
    assert service.wait() == 1, service.log.read_text("utf-8")
    reason = service.log.read_text("utf-8").splitlines()[-1]
    assert "signal 9" in reason
    assert "memory" in reason


@pytest.mark.parametrize(
    ("setting", "value", "said"),
    [
        ("spark.master", "local[many]", "local[many]"),
        ("spark.conf", {"spark.memory.fraction": "much"}, "spark.memory.fraction"),
    ],
)
def test_a_setting_that_spark_refuses_ends_the_service_with_2(
    prepared: SettingsFactory, services: Services, setting: str, value: object, said: str
) -> None:
    service = services.start("sink", prepared({setting: value}))
    assert service.wait() == 2, service.log.read_text("utf-8")
    reason = service.log.read_text("utf-8").splitlines()[-1]
    assert "Spark refuses to" in reason
    assert said in reason
    assert "Correct spark.master, spark.driver_memory or spark.conf" in reason


def test_a_folder_that_spark_cannot_make_is_no_wrong_setting(
    prepared: SettingsFactory, services: Services, tmp_path: Path
) -> None:
    (tmp_path / "file").touch()
    service = services.start("sink", prepared({"spark.conf": {"spark.local.dir": str(tmp_path / "file")}}))
    assert service.wait() == 1, service.log.read_text("utf-8")
    assert (
        "see that spark.local.dir and the temporary folder" in service.log.read_text("utf-8").splitlines()[-1].lower()
    )


@pytest.mark.guarantee("P8.17")
@pytest.mark.parametrize(
    ("command", "number", "status"),
    [
        (("sink",), signal.SIGTERM, 0),
        (("sweeper",), signal.SIGINT, 0),
        (("rebuild",), signal.SIGTERM, -signal.SIGTERM),
        (("history", "parts"), signal.SIGINT, -signal.SIGINT),
    ],
    ids=lambda value: value[0] if isinstance(value, tuple) else "",
)
def test_a_signal_ends_a_command_while_spark_starts(
    command: tuple[str, ...], number: signal.Signals, status: int, prepared: SettingsFactory, services: Services
) -> None:
    service = services.start(command[0], prepared(), *command[1:])
    java = wait_until(lambda: starting_jvm(service), what="the start of the JVM", poll_s=0.01)
    java.suspend()
    if command == ("sink",):
        assert "starting Spark" in service.get("/health/ready")[1]
    service.process.send_signal(number)
    assert service.wait(20) == status, service.log.read_text("utf-8")
    java.resume()
    wait_until(lambda: not runs(java), what="the end of the JVM")


@pytest.mark.parametrize("name", ["sink", "sweeper"])
def test_a_service_whose_scratch_is_removed_ends_and_names_it(
    name: str, prepared: SettingsFactory, services: Services, tmp_path: Path
) -> None:
    scratch = tmp_path / "scratch"
    settings = prepared({"sweeper.interval_s": 0.5})
    service = services.start(name, settings, environment={"SPARK_LOCAL_DIRS": str(scratch)}).wait_ready()
    for folder in scratch.iterdir():
        shutil.rmtree(folder)
    assert service.wait(60) == 1
    assert f"Spark's scratch folder {scratch}/" in service.log.read_text("utf-8").splitlines()[-1]


OF_SPARK = "blockmgr-4aa4d4b0-5a2e-4c3e-9c39-0d2f6c7b8a90/0e"


@pytest.mark.parametrize(
    ("said", "lost"),
    [
        (f"Task serialization failed: java.nio.file.NoSuchFileException: /x/{OF_SPARK}", f"/x/{OF_SPARK}"),
        (f"java.io.FileNotFoundException: /on/an/executor/{OF_SPARK} (No such file or directory)", "/on/an/executor/"),
        ("java.nio.file.NoSuchFileException: /etc/kafka/truststore.jks", ""),
        ("NoClassDefFoundError: Could not initialize class com.github.luben.zstd.Zstd", "mounted noexec"),
        ("java.lang.UnsatisfiedLinkError: /tmp/libzstd.so: failed to map segment", "java.io.tmpdir=FOLDER"),
    ],
)
def test_what_spark_never_makes_up_for_ends_its_session(said: str, lost: str, spark: SparkSession) -> None:
    with pytest.raises(SparkGone, match=lost) if lost else nullcontext():
        require_spark(spark, Exception(said))
