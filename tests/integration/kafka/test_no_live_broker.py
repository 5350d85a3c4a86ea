"""A fenced broker may answer that no broker is live; the client asks again.

The client library aborts the process at the usual request for the cluster, so the question is put by a process here.
"""

from __future__ import annotations

import struct
import subprocess
import sys

import pytest

from tests.support.naming import Names
from tests.support.tcp_proxy import Fate, KafkaProxy
from tests.support.topics import Topics

METADATA = 3
# Length, correlation id, tags and throttle time; then the brokers, as many as stand here, less one.
BROKERS_AT = 4 + 4 + 1 + 4
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


class _Brokers:
    """Takes the one broker out of what a broker answers, while it is to be gone."""

    def __init__(self) -> None:
        self.gone = False
        self.taken_out = 0

    def change(self, api_key: int, answer: bytes) -> bytes | None:
        if not self.gone or api_key != METADATA:
            return answer
        assert answer[BROKERS_AT] == 1 + 1, "one broker"
        host_at = BROKERS_AT + 1 + 4
        # The host's name, the port, no rack, no tags.
        end = host_at + answer[host_at] + 4 + 1 + 1
        body = answer[4:BROKERS_AT] + b"\x01" + answer[end:]
        self.taken_out += 1
        return struct.pack(">i", len(body)) + body


@pytest.mark.guarantee("P8.24")
@pytest.mark.fault("F30")
def test_a_broker_that_knows_no_live_broker_is_asked_again(topics: Topics, names: Names) -> None:
    topics.create(names("any"), 1)
    brokers = _Brokers()
    with (
        KafkaProxy(topics.bootstrap, lambda _: Fate.PASS, brokers.change) as proxy,
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
            brokers.gone = True
            asking.stdin.write("\n")
            asking.stdin.flush()
            assert asking.stdout.readline() == "refused\n"
            brokers.gone = False
            asking.stdin.write("\n")
            asking.stdin.flush()
            assert asking.stdout.readline() == "the same\n"
        finally:
            asking.kill()
    assert brokers.taken_out
