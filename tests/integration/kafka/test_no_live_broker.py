"""A fenced broker may answer that no broker is live; the client asks again.

The client library aborts the process at the usual request for the cluster, so the question is put by a process here.
"""

from __future__ import annotations

import subprocess
import sys
from threading import Event

import pytest

from tests.support.naming import Names
from tests.support.tcp_proxy import METADATA, KafkaProxy, without_brokers
from tests.support.topics import Topics

ASK = """
import sys
import time
from wait_registry.errors import TransientError
from wait_registry.kafka.clients import admin
from wait_registry.kafka.cluster import cluster_id
from wait_registry.settings.kafka import KafkaSettings
client = admin(KafkaSettings(bootstrap_servers=sys.argv[1], request_timeout_s=5))
seen = [cluster_id(client)]
print("known", flush=True)
sys.stdin.readline()
try:
    cluster_id(client)
except TransientError as error:
    print("refused" if "knows of no live broker" in str(error) else error, flush=True)
else:
    print("answered", flush=True)
sys.stdin.readline()
deadline = time.monotonic() + 60
while len(seen) == 1 and time.monotonic() < deadline:
    try:
        seen.append(cluster_id(client))
    except TransientError:
        time.sleep(0.1)
print("the same" if seen[0] == seen[1] else "another one", flush=True)
"""


@pytest.mark.guarantee("P8.24")
@pytest.mark.fault("F30")
def test_a_broker_that_knows_no_live_broker_is_asked_again(topics: Topics, names: Names) -> None:
    topics.create(names("any"), 1)
    gone, taken_out = Event(), Event()

    def change(api_key: int, answer: bytes) -> bytes:
        if api_key != METADATA or not gone.is_set():
            return answer
        taken_out.set()
        return without_brokers(answer)

    with (
        KafkaProxy(topics.bootstrap, change=change) as proxy,
        subprocess.Popen(
            [sys.executable, "-c", ASK, proxy.bootstrap_servers],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        ) as asking,
    ):
        assert asking.stdin is not None
        assert asking.stdout is not None
        try:
            assert asking.stdout.readline() == "known\n"
            gone.set()
            asking.stdin.write("\n")
            asking.stdin.flush()
            assert asking.stdout.readline() == "refused\n"
            gone.clear()
            asking.stdin.write("\n")
            asking.stdin.flush()
            assert asking.stdout.readline() == "the same\n"
        finally:
            asking.kill()
    assert taken_out.is_set()
