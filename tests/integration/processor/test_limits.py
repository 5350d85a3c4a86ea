"""Records too large to register, time that runs short, and bounds that hold."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable

import pytest

from tests.integration.processor.running import Processors
from tests.integration.processor.wait_topic import stories
from tests.support.committed_offsets import committed
from tests.support.kafka_io import Outgoing, produce
from tests.support.settings import with_broker
from tests.support.tcp_proxy import PRODUCE, Fate, KafkaProxy
from tests.support.topics import Topics
from tests.support.waiting import holds, wait_until
from wait_registry.errors import PermanentError
from wait_registry.handler import Record
from wait_registry.records.headers import MAX_JSON_BYTES
from wait_registry.settings.root import Settings

Make = Callable[..., Settings]


async def done(record: Record) -> None:
    """Accept everything."""


@pytest.mark.fault("F8")
def test_a_record_too_large_to_register_is_dead_lettered(
    processor_settings: Make, topics: Topics, processors: Processors
) -> None:
    settings = processor_settings({"processor.handler": processors.handler(done), "wait.max_message_bytes": 20_000}, 1)
    large = Outgoing(os.urandom(60_000), b"large", (("name", b"value"), ("name", None)))
    topics.produce(settings.processor.topics[0], [b"one", large, b"two", Outgoing(os.urandom(8_000)), b"three"])
    running = processors.run_once(settings)

    [letter] = topics.read(settings.dead_letter.topic)
    assert letter.text("DLQ_REASON") == "unregistrable"
    assert (letter.key, letter.value, letter.headers[:2]) == (large.key, large.value, large.headers)
    assert "WAIT_OFFSET" not in dict(letter.headers), "it has no registration"
    told = stories(topics.read(settings.wait.topic))
    assert sorted(origin[2] for origin in told) == [0, 2, 3, 4]
    assert all(story.outcomes == ["done"] for story in told.values())
    assert running.settled == {"done": 4}
    assert committed(topics.bootstrap, settings.processor.group, settings.processor.topics[0], 1) == [5]


def test_a_record_with_too_many_headers_is_dead_lettered_whole(
    processor_settings: Make, topics: Topics, processors: Processors
) -> None:
    # A broker bounds what is compressed: the topics take this one, and no reader of wait records would.
    settings = processor_settings({"processor.handler": processors.handler(done)}, 1)
    headers = (("name", bytes(MAX_JSON_BYTES)), ("last", None))
    records: list[Outgoing | bytes] = [b"one", Outgoing(b"value", b"large", headers), b"two"]
    produce(topics.bootstrap, settings.processor.topics[0], records, compression="lz4")
    processors.run_once(settings)

    [letter] = topics.read(settings.dead_letter.topic)
    assert letter.text("DLQ_REASON") == "unregistrable"
    assert f"at most {MAX_JSON_BYTES}" in letter.text("DLQ_ERROR_MESSAGE")
    assert (letter.key, letter.value, letter.headers[:2]) == (b"large", b"value", headers)
    assert sorted(origin[2] for origin in stories(topics.read(settings.wait.topic))) == [0, 2]
    assert committed(topics.bootstrap, settings.processor.group, settings.processor.topics[0], 1) == [3]


@pytest.mark.guarantee("P7.4")
@pytest.mark.fault("F9")
def test_a_record_that_only_compression_makes_small_is_dead_lettered(
    processor_settings: Make, topics: Topics, processors: Processors
) -> None:
    # Next to nothing for a broker, and sixty megabytes for a reader.
    settings = processor_settings({"processor.handler": processors.handler(done)}, 1)
    large = Outgoing(bytes(60 * 1024 * 1024), b"large", (("name", b"value"),))
    limit = settings.wait.max_message_bytes
    fits = Outgoing(bytes(limit - len(b"key") - len(b"[]")), b"key")
    too_much = Outgoing(bytes(limit - len(b"key") - len(b"[]") + 1), b"key")
    topics.produce(settings.processor.topics[0], [b"one"])
    produce(topics.bootstrap, settings.processor.topics[0], [large, fits, too_much], compression="lz4")
    running = processors.run_once(settings)

    letters = topics.read(settings.dead_letter.topic)
    assert {letter.text("DLQ_REASON") for letter in letters} == {"unregistrable"}
    assert f"expected at most wait.max_message_bytes = {limit}" in letters[0].text("DLQ_ERROR_MESSAGE")
    assert sorted(len(letter.value or b"") for letter in letters) == sorted(
        len(record.value or b"") for record in (large, too_much)
    )
    assert sorted(origin[2] for origin in stories(topics.read(settings.wait.topic))) == [0, 2]
    assert running.settled == {"done": 2}
    assert committed(topics.bootstrap, settings.processor.group, settings.processor.topics[0], 1) == [4]


@pytest.mark.fault("F11")
def test_a_refused_dead_letter_stops_the_process_before_the_commit(
    processor_settings: Make, topics: Topics, processors: Processors
) -> None:
    settings = processor_settings(
        {"processor.handler": processors.handler(done), "wait.max_message_bytes": 20_000},
        1,
        max__message__bytes="4000000",
    )
    topics.produce(settings.processor.topics[0], [b"one", Outgoing(os.urandom(3_000_000)), b"two"])
    running = processors.start(settings)
    with pytest.raises(PermanentError, match=r"writing the dead letter of .*MSG_SIZE_TOO_LARGE"):
        running.join()
    [position] = committed(topics.bootstrap, settings.processor.group, settings.processor.topics[0], 1)
    assert position <= 1, "the record that could not be kept anywhere is not passed"


@pytest.mark.guarantee("P1.2")
def test_the_commit_waits_for_the_dead_letter_of_a_large_record(
    processor_settings: Make, topics: Topics, processors: Processors
) -> None:
    settings = processor_settings(
        {
            "processor.handler": processors.handler(done),
            "processor.commit_interval_s": 0.05,
            "wait.max_message_bytes": 20_000,
        },
        1,
    )
    group, topic = settings.processor.group, settings.processor.topics[0]
    topics.produce(topic, [Outgoing(os.urandom(30_000))])
    with KafkaProxy(topics.bootstrap, lambda request: Fate.HOLD if request == PRODUCE else Fate.PASS) as proxy:
        running = processors.start(with_broker(settings, proxy.bootstrap_servers))
        assert proxy.held.wait(30), "no dead letter on its way"
        holds(lambda: committed(topics.bootstrap, group, topic, 1) == [-1], 1.0, "no commit for twenty intervals")
        proxy.let_go()
        wait_until(lambda: committed(topics.bootstrap, group, topic, 1) == [1], what="the commit behind it")
        running.service.request_stop()
        running.join()


def test_a_record_whose_time_runs_short_is_renewed(
    processor_settings: Make, topics: Topics, processors: Processors
) -> None:
    release, started = threading.Event(), []

    def blocks_at_first(record: Record) -> None:
        started.append(record)
        if record.value == b"block":
            release.wait(60)

    settings = processor_settings(
        {
            "processor.handler": processors.handler(blocks_at_first),
            "processor.max_in_flight": 1,
            "processor.max_attempts": 1,
            "processor.handler_timeout_s": 0.5,
            "processor.margin_s": 0.5,
            "processor.ttl_s": 4,
            "processor.prefetch_max": 2,
            "wait.skew_allowance_s": 0,
        },
        1,
    )
    topics.produce(settings.processor.topics[0], [b"block", b"waits"])
    running = processors.start(settings)
    try:
        wait_until(lambda: running.stats.renewed, 60, "the second registration")
    finally:
        release.set()
    wait_until(lambda: running.settled == {"dead_lettered": 1, "done": 1}, 60, "both outcomes")
    running.stop()
    [renewed] = [story for origin, story in stories(topics.read(settings.wait.topic)).items() if origin[2] == 1]
    first, *_, last = (wait.text("WAIT_EXPIRATION_TIME") for wait in renewed.waits)
    assert first < last
    assert renewed.resolved
    assert renewed.outcomes == ["done"]
    assert started[-1].expires_at.isoformat(timespec="milliseconds").replace("+00:00", "Z") == last


@pytest.mark.guarantee("P7.1")
@pytest.mark.fault("F23")
def test_look_ahead_stays_within_its_bounds_and_consumption_is_paused(
    processor_settings: Make, topics: Topics, processors: Processors
) -> None:
    release = threading.Event()

    def blocks(record: Record) -> None:
        release.wait(60)

    settings = processor_settings(
        {"processor.handler": processors.handler(blocks), "processor.max_in_flight": 4, "processor.prefetch_max": 10}
    )
    topics.produce(settings.processor.topics[0], [b"value"] * 500)
    running = processors.start(settings).wait_joined()
    try:
        wait_until(lambda: "waitreg_processor_paused 1.0" in _metrics(running.service.telemetry_port), 60, "the pause")
        assert running.stats.registered == 10
        # Nothing is fetched now: only a request to the broker shows these.
        topics.produce(settings.processor.topics[0], [b"value"] * 500)
        wait_until(lambda: _consumer_lag(_metrics(running.service.telemetry_port)) >= 950, 60, "the lag")
    finally:
        release.set()
    wait_until(lambda: running.done == 1000, 60, "all records")
    wait_until(lambda: _consumer_lag(_metrics(running.service.telemetry_port)) == 0, 60, "the end of the lag")
    wait_until(lambda: "waitreg_processor_paused 0.0" in _metrics(running.service.telemetry_port), 60, "the resumption")
    running.stop()


@pytest.mark.fault("F24")
def test_a_processor_paused_by_large_records_resumes(
    processor_settings: Make, topics: Topics, processors: Processors
) -> None:
    release = threading.Event()

    def blocks(record: Record) -> None:
        release.wait(60)

    # By number there is room for 116, by bytes for 5 of them.
    settings = processor_settings(
        {
            "processor.handler": processors.handler(blocks),
            "processor.max_in_flight": 50,
            "processor.prefetch_max_bytes": 40_000,
            "wait.max_message_bytes": 20_000,
        }
    )
    topics.produce(settings.processor.topics[0], [os.urandom(8_000) for _ in range(200)])
    running = processors.start(settings).wait_joined()
    try:
        wait_until(lambda: "waitreg_processor_paused 1.0" in _metrics(running.service.telemetry_port), 60, "the pause")
    finally:
        release.set()
    wait_until(lambda: running.done == 200, 60, "all records")
    running.stop()


def _consumer_lag(metrics: str) -> float:
    lines = [line for line in metrics.splitlines() if line.startswith("waitreg_processor_consumer_lag{")]
    return sum(float(line.rpartition(" ")[2]) for line in lines)


def _metrics(port: int) -> str:
    import urllib.request

    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=10) as answer:
        text: str = answer.read().decode()
    return text


@pytest.mark.fault("F22")
def test_a_full_producer_queue_slows_down_and_drops_nothing(
    processor_settings: Make, topics: Topics, processors: Processors
) -> None:
    settings = processor_settings(
        {"processor.handler": processors.handler(done), "kafka.librdkafka": {"queue.buffering.max.messages": 3}}
    )
    topics.produce(settings.processor.topics[0], [b"value"] * 200)
    assert processors.run_once(settings).settled == {"done": 200}
    told = stories(topics.read(settings.wait.topic))
    assert len(told) == 200
    assert all(story.resolved for story in told.values())
