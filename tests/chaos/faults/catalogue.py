"""Every fault by its name, and those of Postgres, the input topic and the called service."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from functools import partial
from pathlib import Path
from typing import Final

import psycopg
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient, NewPartitions

from tests.chaos.faults.links import FELT_WITHIN_S, broken, hold_produce, until
from tests.chaos.faults.operators import ACTIONS
from tests.chaos.faults.processes import freeze, kill, kill_jvm
from tests.chaos.faults.storm import storm
from tests.chaos.schedule import LINK_FAULTS, SERVERS, PlannedFault
from tests.chaos.stage import Scene
from waitreg.downstream.calls import ABORTED, read_calls
from waitreg.downstream.mixture import DROPPED
from waitreg.local.ports import LOOPBACK

# The services' sessions, without our own: the snapshots of the tables have another name.
_SESSIONS = "from pg_stat_activity where application_name like 'waitreg%' and pid <> pg_backend_pid()"
MORE_PARTITIONS = 2
ATTEMPTS, PAUSE_S, REQUEST_S = 30, 1.0, 10.0
POLL_S = 0.5


def end_sessions(scene: Scene, fault: PlannedFault) -> str:
    """Have Postgres end the sessions of all services, once there are any."""
    url, pids = scene.stage.stack.postgres_url, list[str]()
    with scene.lock_of("postgres"), psycopg.connect(url, autocommit=True, application_name="chaos") as connection:
        scene.begins(fault)

        def end() -> bool:
            ended = connection.execute(f"select pid, pg_terminate_backend(pid) {_SESSIONS}".encode()).fetchall()
            pids.extend(str(pid) for pid, done in ended if done)
            return bool(pids)

        until(scene, end, FELT_WITHIN_S)
    return f"sessions {', '.join(pids)} were ended" if pids else ""


def add_partitions(scene: Scene, fault: PlannedFault) -> str:
    """Add partitions to the input topic, once the broker is available."""
    admin = AdminClient({"bootstrap.servers": scene.stage.stack.bootstrap_servers, "log_level": 0})
    with scene.lock_of("input"):
        for _ in range(ATTEMPTS):
            try:
                return _grow(admin, scene, fault)
            except KafkaException:
                scene.pause(PAUSE_S)
    return ""


def _grow(admin: AdminClient, scene: Scene, fault: PlannedFault) -> str:
    topic = scene.place.input
    before = len(admin.list_topics(topic, timeout=REQUEST_S).topics[topic].partitions)
    if not before:
        raise KafkaException("no answer about the topic")
    scene.begins(fault)
    asked = admin.create_partitions([NewPartitions(topic, before + MORE_PARTITIONS)], request_timeout=REQUEST_S)
    asked[topic].result(REQUEST_S)
    return f"{topic} has {before + MORE_PARTITIONS} partitions instead of {before}"


def misbehave(scene: Scene, fault: PlannedFault, *, behavior: dict[str, str], status: int) -> str:
    """Have the downstream behave otherwise for a while, and until calls ended with this status."""
    service, usual = scene.downstream, {"mixture": scene.schedule.latencies, "fail": scene.schedule.failures}
    with service.lock:
        scene.begins(fault)
        try:
            _behave(scene, behavior)
            began_ms, proof = time.time_ns() // 1_000_000, ""
            scene.pause(fault.for_s)
            deadline = time.monotonic() + FELT_WITHIN_S
            while not (proof := felt(scene.place.calls, began_ms, time.time_ns() // 1_000_000, status)):
                if scene.ended.is_set() or time.monotonic() > deadline:
                    break
                scene.pause(POLL_S)
        finally:
            _behave(scene, usual)
    return proof


def felt(log: Path, began_ms: int, ended_ms: int, status: int) -> str:
    """Return the proof from the downstream's log: calls that came meanwhile ended so, and none succeeded.

    A caller may give up before any answer, so other calls prove nothing.
    """
    came = [call for call in read_calls(log) if began_ms < call.started_ms < ended_ms] if log.exists() else []
    count = sum(call.status == status for call in came)
    if not count or any(call.succeeded for call in came):
        return ""
    return f"{count} calls that came meanwhile ended with {status}, none of {len(came)} succeeded"


def _behave(scene: Scene, behavior: dict[str, str]) -> None:
    deadline = time.monotonic() + FELT_WITHIN_S
    while not _takes(scene.downstream.port, behavior):
        if time.monotonic() > deadline:
            raise TimeoutError(f"the downstream did not take {behavior} within {FELT_WITHIN_S:g} s")
        scene.pause(POLL_S)


def _takes(port: int, behavior: dict[str, str]) -> bool:
    connection = http.client.HTTPConnection(LOOPBACK, port, timeout=3)
    with closing(connection), suppress(OSError, http.client.HTTPException):
        connection.request("POST", "/mixture", json.dumps(behavior))
        return connection.getresponse().status == 200
    return False


FAULTS: Final[Mapping[str, Callable[[Scene, PlannedFault], str]]] = {
    "kill": kill,
    "gone": kill,
    "terminate": partial(kill, how="stop"),
    "stop": partial(kill, how="stop"),
    "freeze": freeze,
    "kill_jvm": kill_jvm,
    "storm": storm,
    "end_sessions": end_sessions,
    "answer_503": partial(misbehave, behavior={"fail": "100%:503"}, status=503),
    "drop": partial(misbehave, behavior={"fail": "100%:drop"}, status=DROPPED),
    "hang": partial(misbehave, behavior={"mixture": "hang"}, status=ABORTED),
    "add_partitions": add_partitions,
    "hold_produce": hold_produce,
    **{f"{how}_{server}_link": partial(broken, how=how, server=server) for how in LINK_FAULTS for server in SERVERS},
    **ACTIONS,
}
"""Each makes a planned fault happen, heals it, and returns the proof that it happened; an empty one when it didn't.

It says when it begins (`Scene.begins`), once it has its victim, and heals what it did also when it fails."""
