"""Records too large to register or to dead-letter are kept whole; without a dead letter, nothing is committed."""

from __future__ import annotations

import os
import threading

import pytest

from tests.integration.processor.scenario import ScenarioFactory, accepts
from tests.support.kafka_io import Outgoing, produce
from tests.support.raw_headers import produce_with_header_name
from tests.support.tcp_proxy import PRODUCE, Fate, KafkaProxy
from tests.support.waiting import holds, wait_until
from wait_registry.handler import PermanentError, Record, TransientError
from wait_registry.records.headers import MAX_JSON_BYTES
from wait_registry.records.topics import retry_topic
from wait_registry.telemetry.metrics import PROCESSOR_REFUSED

SMALL = {"wait.max_message_bytes": 20_000}


@pytest.mark.fault("F8")
def test_a_record_too_large_to_register_is_dead_lettered(processor_scenario: ScenarioFactory) -> None:
    at = processor_scenario(accepts, 1, SMALL)
    large = Outgoing(os.urandom(60_000), b"large", (("name", b"value"), ("name", None)))
    at.produce([b"one", large, b"two", Outgoing(os.urandom(8_000)), b"three"])
    running = at.run_once()
    [letter] = at.letters()
    assert letter.text("DLQ_REASON") == "unregistrable"
    assert (letter.key, letter.value, letter.headers[:2]) == (large.key, large.value, large.headers)
    assert "WAIT_OFFSET" not in dict(letter.headers), "it has no registration"
    assert {key: story.outcomes for key, story in at.by_offset().items()} == {key: ["done"] for key in (0, 2, 3, 4)}
    assert running.settled == {"done": 4, "dead_lettered": 1}
    assert at.committed() == [5]


def test_a_record_with_too_many_headers_is_dead_lettered_whole(processor_scenario: ScenarioFactory) -> None:
    # A broker bounds what is compressed: the topics take this one, and no reader of wait records would.
    at = processor_scenario(partitions=1)
    headers = (("name", bytes(MAX_JSON_BYTES)), ("last", None))
    records: list[Outgoing | bytes] = [b"one", Outgoing(b"value", b"large", headers), b"two"]
    produce(at.topics.bootstrap, at.topic, records, compression="lz4")
    at.run_once()
    [letter] = at.letters()
    assert letter.text("DLQ_REASON") == "unregistrable"
    assert f"at most {MAX_JSON_BYTES}" in letter.text("DLQ_ERROR_MESSAGE")
    assert (letter.key, letter.value, letter.headers[:2]) == (b"large", b"value", headers)
    assert sorted(at.by_offset()) == [0, 2]
    assert at.committed() == [3]


@pytest.mark.guarantee("P7.4")
@pytest.mark.fault("F9")
def test_a_record_that_only_compression_makes_small_is_dead_lettered(processor_scenario: ScenarioFactory) -> None:
    # Next to nothing for a broker, and sixty megabytes for a reader.
    at = processor_scenario(partitions=1)
    large = Outgoing(bytes(60 * 1024 * 1024), b"large", (("name", b"value"),))
    limit = at.settings.wait.max_message_bytes
    fits = Outgoing(bytes(limit - len(b"key") - len(b"[]")), b"key")
    too_much = Outgoing(bytes(limit - len(b"key") - len(b"[]") + 1), b"key")
    at.produce([b"one"])
    produce(at.topics.bootstrap, at.topic, [large, fits, too_much], compression="lz4")
    running = at.run_once()
    letters = at.letters()
    assert {letter.text("DLQ_REASON") for letter in letters} == {"unregistrable"}
    assert f"expected at most wait.max_message_bytes = {limit}" in letters[0].text("DLQ_ERROR_MESSAGE")
    assert sorted(len(letter.value or b"") for letter in letters) == sorted(
        len(record.value or b"") for record in (large, too_much)
    )
    assert sorted(at.by_offset()) == [0, 2]
    assert running.settled == {"done": 2, "dead_lettered": 2}
    assert at.committed() == [4]


@pytest.mark.guarantee("P5.5")
def test_a_record_with_an_unreadable_header_name_is_dead_lettered(processor_scenario: ScenarioFactory) -> None:
    """The client can't read a header name that isn't UTF-8."""
    handled: list[bytes | None] = []

    async def handle(record: Record) -> None:
        handled.append(record.value)

    at = processor_scenario(handle, 1)
    # Many, so that CPython has specialised its calls by the time that the unreadable one comes.
    at.produce([b"before"] * 200)
    produce_with_header_name(at.topics.bootstrap, at.topic, b"\xff\xfe", b"unreadable")
    at.produce([b"after"])
    at.run_once()
    assert sorted(map(bytes, filter(None, handled))) == [b"after", *[b"before"] * 200]
    [letter] = at.letters()
    assert (letter.text("DLQ_REASON"), letter.value) == ("malformed", b"unreadable")
    assert f"{at.topic}[0] offset 200" in letter.text("DLQ_ERROR_MESSAGE")
    assert at.committed() == [202]
    assert sorted(at.by_offset()) == [*range(200), 201]


@pytest.mark.fault("F11")
def test_a_dead_letter_that_is_too_large_is_not_passed(processor_scenario: ScenarioFactory) -> None:
    at = processor_scenario(accepts, 1, SMALL, {"max__message__bytes": "4000000"})
    at.produce([b"one", Outgoing(os.urandom(3_000_000)), b"two"])
    with pytest.raises(PermanentError, match="the dead letters of 1 records are too large"):
        at.run_once()
    [position] = at.committed()
    assert position <= 1, "the record that could not be kept anywhere is not passed"


@pytest.mark.guarantee("P1.3")
@pytest.mark.fault("F17")
def test_a_record_with_a_refused_dead_letter_stays_registered(processor_scenario: ScenarioFactory) -> None:
    started, refusing = threading.Event(), threading.Event()

    def fails(record: Record) -> None:
        started.set()
        refusing.wait(60)
        raise ValueError("no such order")

    at = processor_scenario(fails, 1)
    at.produce([Outgoing(os.urandom(50_000), b"key")])
    running = at.start()
    assert started.wait(60)
    at.topics.configure(at.settings.dead_letter.topic, "max.message.bytes", "1000")
    refusing.set()
    at.produce([b"another"])
    wait_until(lambda: running.stats.registered == 2, what="the record behind it")
    wait_until(lambda: at.committed() == [2], what="the commit behind both")
    running.stop()
    story = at.by_offset()[0]
    assert story.outcomes == [], "a tombstone would have ended the only copy that is left"
    assert not any(letter.value and len(letter.value) == 50_000 for letter in at.letters())


@pytest.mark.guarantee("P1.2")
def test_the_commit_waits_for_the_dead_letter_of_a_large_record(processor_scenario: ScenarioFactory) -> None:
    at = processor_scenario(accepts, 1, SMALL, commit_interval_s=0.05)
    at.produce([Outgoing(os.urandom(30_000))])
    with KafkaProxy(at.topics.bootstrap, lambda request: Fate.HOLD if request == PRODUCE else Fate.PASS) as proxy:
        running = at.start(proxy.bootstrap_servers)
        assert proxy.held.wait(30), "no dead letter on its way"
        holds(lambda: at.committed() == [0], 1.0, "no commit beyond the beginning for twenty intervals")
        proxy.let_go()
        wait_until(lambda: at.committed() == [1], what="the commit behind it")
        running.stop()


SMALL_ONES = 60
ONE_EACH = {"wait.partitions": 1, "dead_letter.partitions": 1, "processor.retry.delays": ("1h",)}
IN_ONE_BATCH = {"max_attempts": 1, "linger_ms": 500, "max_in_flight": 100}


@pytest.mark.guarantee("P1.44")
@pytest.mark.parametrize(
    ("limited", "error", "settled"),
    [
        ("wait", None, {"done": SMALL_ONES, "dead_lettered": 1}),
        ("dead letters", PermanentError("no"), {"dead_lettered": SMALL_ONES}),
        ("retries", TransientError("later"), {"retried": SMALL_ONES, "dead_lettered": 1}),
    ],
)
def test_a_batch_that_is_refused_says_nothing_of_its_records(
    limited: str, error: Exception | None, settled: dict[str, int], processor_scenario: ScenarioFactory
) -> None:
    async def handler(record: Record) -> None:
        if error:
            raise error

    at = processor_scenario(handler, 1, ONE_EACH, None, registration="off" if error else "eager", **IN_ONE_BATCH)
    topics = {"wait": at.settings.wait.topic, "retries": retry_topic(at.topic, at.group, 3600)}
    running = at.start().wait_joined()
    at.topics.configure(topics.get(limited, at.settings.dead_letter.topic), "max.message.bytes", "20000")
    at.produce([b"", *(os.urandom(500) for _ in range(SMALL_ONES - 1)), os.urandom(30_000)])
    wait_until(lambda: running.settled == settled, what="what each record became by itself")
    wait_until(lambda: running.values(PROCESSOR_REFUSED) == [limited == "dead letters"], what="the large one")
    running.stop()


LARGE = 3_000_000
HUGE = 70_000_000
ANY_SIZE = {"max__message__bytes": str(90_000_000)}


@pytest.mark.guarantee("P1.36")
def test_a_dead_letter_that_is_too_large_holds_the_offset(
    processor_scenario: ScenarioFactory, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("processor.protocol.open_records.AGAIN_S", 0.5)

    async def refuses_the_large(record: Record) -> None:
        if len(record.value or b"") == LARGE:
            raise PermanentError("no")

    at = processor_scenario(refuses_the_large, 1, topic_config=ANY_SIZE, registration="off")
    at.produce([b"before", os.urandom(LARGE), b"after", b"last"])
    running = at.start()
    wait_until(lambda: running.done == 3, what="the others")
    wait_until(lambda: running.values(PROCESSOR_REFUSED) == [1], what="the record that holds the offset")
    assert any("hold their offsets" in reason for reason in running.health.reasons)
    wait_until(lambda: at.committed() == [1], what="the commit up to it")
    at.topics.configure(at.settings.dead_letter.topic, "max.message.bytes", str(2 * LARGE))
    wait_until(lambda: at.committed() == [4], what="the commit behind the dead letter")
    running.stop()
    [letter] = at.letters()
    assert len(letter.value or b"") == LARGE


@pytest.mark.guarantee("P1.37")
@pytest.mark.parametrize("registration", ["eager", "deferred"])
def test_what_cannot_be_registered_is_called_if_it_may_hold_the_offset(
    registration: str, processor_scenario: ScenarioFactory
) -> None:
    sizes: list[int] = []

    async def handler(record: Record) -> None:
        sizes.append(len(record.value or b""))

    at = processor_scenario(handler, 1, topic_config=ANY_SIZE, registration=registration, oversized="hold")
    at.produce([b"before", os.urandom(LARGE), b"after"])
    at.run_once()
    assert sorted(sizes) == [5, 6, LARGE]
    assert at.committed() == [3]
    assert at.letters() == []
    assert {story.origin[2] for story in at.stories().values()} == {0, 2}


def test_a_record_beyond_the_clients_limit_is_handled(processor_scenario: ScenarioFactory) -> None:
    sizes: list[int] = []

    async def handler(record: Record) -> None:
        sizes.append(len(record.value or b""))

    at = processor_scenario(handler, 1, topic_config=ANY_SIZE, registration="off")
    at.produce([Outgoing(b"before", None), Outgoing(bytes(HUGE), None), Outgoing(b"after", None)])
    at.run_once()
    assert sizes == [6, HUGE, 5]
    assert at.committed() == [3]
