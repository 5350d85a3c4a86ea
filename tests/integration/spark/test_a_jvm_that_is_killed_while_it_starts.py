"""P8: a JVM that is killed before it answers is no mistake in the settings: started again, all may be well."""

from __future__ import annotations

from contextlib import suppress

import psutil
import pytest

from tests.conftest import SettingsFactory
from tests.support.processes import Service, Services
from tests.support.waiting import wait_until

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
def test_the_service_ends_with_1_and_a_reason_and_no_secret_was_shown_meanwhile(
    prepared: SettingsFactory, services: Services
) -> None:
    told = {"spark.hadoop.fs.azure.oauth2.credential": SECRET, "spark.hadoop.told": "to-the-jvm"}
    service = services.start("sink", prepared({"spark.conf": told}))
    java = wait_until(lambda: starting_jvm(service), what="the start of the JVM", poll_s=0.01)
    assert java is not None
    shown = java.cmdline()
    java.kill()

    assert "spark.hadoop.told=to-the-jvm" in shown, "here the properties stand"
    assert SECRET not in " ".join(shown)
    assert service.wait() == 1, service.log.read_text("utf-8")
    reason = service.log.read_text("utf-8").splitlines()[-1]
    assert "signal 9" in reason
    assert "memory" in reason
