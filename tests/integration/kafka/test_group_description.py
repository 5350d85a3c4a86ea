"""What a group is: its members, without one too, and a broker that knows no live broker is asked again."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path
from threading import Event

import psutil
import pytest

from tests.support.kafka_io import group_member
from tests.support.naming import Names
from tests.support.tcp_proxy import METADATA, Fate, KafkaProxy, without_brokers
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.errors import PermanentError, TransientError
from wait_registry.kafka import group_question
from wait_registry.kafka.group_description import GroupDescription, describe_group
from wait_registry.settings.kafka import KafkaSettings

CONSUMER_GROUP_DESCRIBE = 69


def _asking() -> list[psutil.Process]:
    found = []
    for child in psutil.Process().children():
        with suppress(psutil.NoSuchProcess):  # another one that has just ended
            if group_question.__file__ in child.cmdline():
                found.append(child)
    return found


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_members_and_their_partitions_are_returned(topics: Topics, names: Names, protocol: str) -> None:
    topic, group = names("described"), names("group")
    topics.create(topic, 2)
    with closing(group_member(topics.bootstrap, group, [topic], protocol)) as member:
        wait_until(lambda: member.poll(0.1) is None and member.assignment(), 60, "its partitions")
        own, both = member.memberid(), frozenset({(topic, 0), (topic, 1)})
        described: Callable[[], GroupDescription] = lambda: describe_group(  # noqa: E731
            KafkaSettings(bootstrap_servers=topics.bootstrap), group
        )
        expected = GroupDescription(True, {own: both}, {own: both})
        wait_until(lambda: replace(described(), hosts={}) == expected, 60, "a settled group")
        [(member_id, host)] = described().hosts.items()
        assert (member_id, host[0]) == (own, "/"), "a member's host is known by its address"


def test_a_group_that_is_not_there_has_no_members(topics: Topics, names: Names) -> None:
    found = describe_group(KafkaSettings(bootstrap_servers=topics.bootstrap), names("absent"))
    assert (found.held, found.due) == ({}, {})


@pytest.mark.guarantee("P8.24")
@pytest.mark.fault("F31")
def test_a_killed_helper_process_is_a_transient_error(topics: Topics, names: Names) -> None:
    group = names("group")
    with (
        KafkaProxy(topics.bootstrap, lambda key: Fate.HOLD if key == CONSUMER_GROUP_DESCRIBE else Fate.PASS) as proxy,
        ThreadPoolExecutor(1) as executor,
    ):
        asked = executor.submit(describe_group, KafkaSettings(bootstrap_servers=proxy.bootstrap_servers), group)
        wait_until(proxy.held.is_set, 60, "the question")
        [child] = _asking()
        os.kill(child.pid, signal.SIGABRT)
        with pytest.raises(TransientError, match=f"describing group {group} failed: .* ended with status -6"):
            asked.result(60)


def test_unreadable_errors_of_the_helper_process_are_quoted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    ends_oddly = tmp_path / "ends_oddly.py"
    ends_oddly.write_text(r"import os; os.write(2, b'odd \xff\n'); os._exit(1)")
    monkeypatch.setattr(group_question, "__file__", str(ends_oddly))
    with pytest.raises(PermanentError, match="ended with status 1: odd"):
        describe_group(KafkaSettings(bootstrap_servers="127.0.0.1:1"), "group")


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
