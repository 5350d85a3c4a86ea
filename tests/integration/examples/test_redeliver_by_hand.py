"""examples/redeliver_by_hand: chosen dead letters reach their group again, and are known by their first delivery."""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from types import ModuleType

import pytest

from tests.integration.examples.running import Example
from tests.integration.sink.applying import HandFed, now_ms
from tests.support.database import Database
from tests.support.http_service import Answer, Call, HttpService
from tests.support.kafka_io import Outgoing, ReadRecord
from tests.support.naming import Names
from tests.support.topics import Topics
from tests.unit.sink.batches import Row
from wait_registry.demo.environment import as_environment
from wait_registry.records.original import Original
from wait_registry.records.topics import redelivery_topic
from wait_registry.records.wait_record import WaitRecordEncoder
from wait_registry.settings.root import Settings

WAIT_ID = "01a1fd5e-6557-8324-a9e4-dd44916f69cf"
FIRST_DELIVERY = "01a1fd5e-6557-8324-a9e4-dd44916f69ce"
FILE = Path(__file__).parents[3] / "examples" / "redeliver_by_hand" / "redeliver.py"


@pytest.fixture
def redeliver() -> Iterator[ModuleType]:
    """The script as a module."""
    spec = importlib.util.spec_from_file_location("redeliver_of_the_example", FILE)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    yield module


@pytest.fixture
def settings_in_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Callable[[Settings], None]:
    """Return what gives the script its settings, as a user's shell does."""

    def use(settings: Settings) -> None:
        monkeypatch.chdir(tmp_path)
        for name, value in as_environment(settings).items():
            monkeypatch.setenv(name, value)

    return use


def register(settings: Settings, original: Original) -> None:
    """Write an open registration into the table, as the sink does."""
    encoder = WaitRecordEncoder(settings.processor.group, "host-1", settings.dead_letter.topic, "dlq", 3)
    headers = tuple(encoder.headers(original, WAIT_ID, 1_795_227_900_000, idempotency_key=FIRST_DELIVERY))
    with closing(HandFed(settings, settings.wait.topic)) as feeder:
        row = Row(WAIT_ID.encode(), original.value or b"", 1, 0, now_ms(), headers, settings.wait.topic)
        feeder.feed([row])


def shown(example: Example, database: Database) -> None:
    """Write the dead letters into the table, as the sink does."""
    settings = example.settings
    database.install(settings)
    letters = example.dead_letters().values()
    with closing(HandFed(settings, settings.dead_letter.topic, dead_letters=True)) as feeder:
        feeder.feed([Row(r.key, r.value, r.partition, r.offset, r.timestamp_ms, r.headers, r.topic) for r in letters])


def test_what_is_chosen_is_worked_on_again_and_nothing_else(
    example: Example,
    database: Database,
    topics: Topics,
    names: Names,
    redeliver: ModuleType,
    settings_in_environment: Callable[[Settings], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    mended = False

    def answer(call: Call) -> Answer:
        return Answer(200 if mended else 422)

    headers = [("tenant", b"blue"), ("tenant", None), ("raw", b"\xff\x00")]
    records = [Outgoing(b"first", b"first", headers), Outgoing(b"second", b"second", headers)]
    environment = {
        "WAITREG_POSTGRES__URL": database.url,
        "WAITREG_POSTGRES__SCHEMA": names.schema,
        "WAITREG_DEAD_LETTER__PARTITIONS": "1",
        "WAITREG_PROCESSOR__EXPIRY_POLICY": "redeliver",
    }
    with HttpService(answer) as service:
        handler = {"WAITREG_PROCESSOR__HANDLER": f"{service.address}/events"}
        example.run("http_push", records, environment | handler)
        ids = example.wait_ids()
        shown(example, database)

        settings_in_environment(example.settings)
        condition = "reason = 'failed' and key = 'first'"
        again = redelivery_topic(example.settings.processor.topics[0], example.settings.processor.group)
        assert redeliver.main([condition]) == 0
        assert capsys.readouterr().out == f"1 records for {again}\nnothing published\n"
        assert topics.read(again) == []

        assert redeliver.main([condition, "--send"]) == 0
        assert "1 published, 0 refused" in capsys.readouterr().out
        (sent,) = topics.read(again)
        assert (sent.key, sent.value, sent.headers[:3]) == (b"first", b"first", tuple(headers))
        assert sent.text("WAIT_EXPIRATION_UUID") == ids["first"]

        mended = True
        before = len(service.calls)
        example.process("http_push")
        (call,) = service.calls[before:]

    first, second = (origin_of(example, key) for key in (b"first", b"second"))
    assert call.body == b"first"
    assert tuple(call.headers[f"X-Waitreg-{name}"] for name in ("Topic", "Partition", "Offset")) == first
    assert call.headers["X-Waitreg-Delivery"] == "2"
    assert call.headers["tenant"] == "blue"
    assert call.idempotency_key == ids["first"]
    again_id = call.headers["X-Waitreg-Wait-Id"]
    assert again_id != ids["first"]
    told = {letter.text("WAIT_EXPIRATION_UUID"): origin(letter) for letter in example.dead_letters().values()}
    assert told == {ids["first"]: first, ids["second"]: second}
    assert example.outcomes_by_wait_id() == {
        ids["first"]: "dead_lettered",
        ids["second"]: "dead_lettered",
        again_id: "done",
    }


def test_open_chooses_registrations_whose_topic_is_lost(
    prepared: Callable[..., Settings],
    topics: Topics,
    redeliver: ModuleType,
    settings_in_environment: Callable[[Settings], None],
    capsys: pytest.CaptureFixture[str],
) -> None:
    settings = prepared()
    topic = settings.processor.topics[0]
    original = Original(
        topic, 1, 7, 1_795_227_600_000, "create", b"\x00key", None, (("tenant", b"blue"), ("raw", None))
    )
    register(settings, original)
    settings_in_environment(settings)
    assert redeliver.main(["--open", f"original_topic = '{topic}'", "--to", topic, "--send"]) == 0
    assert "1 published, 0 refused" in capsys.readouterr().out
    (sent,) = topics.read(topic)
    assert (sent.key, sent.value, sent.headers[:2]) == (original.key, None, original.headers)
    assert (origin(sent), sent.text("WAIT_DELIVERY")) == ((topic, "1", "7"), "2")
    assert sent.text("WAIT_IDEMPOTENCY_KEY") == FIRST_DELIVERY


def test_more_letters_than_the_queue_holds_are_published(
    settings_for: Callable[..., Settings], topics: Topics, names: Names, redeliver: ModuleType
) -> None:
    settings = settings_for()
    settings.kafka.librdkafka["queue.buffering.max.messages"] = "10"
    topic = topics.create(names("again"), 1)
    letters = [redeliver.Letter(topic, str(number), None, str(number).encode(), []) for number in range(500)]
    sent = redeliver.Sent()
    large = redeliver.Letter(topic, "the large one", None, os.urandom(2_000_000), [])
    redeliver.publish(settings, [large, *letters], sent)
    assert (sent.acknowledged, [place for place, _ in sent.refused]) == (500, ["the large one"])
    assert [record.value for record in topics.read(topic)] == [letter.value for letter in letters]


def origin(letter: ReadRecord) -> tuple[str, str, str]:
    """Return topic, partition and offset of the first delivery."""
    return letter.text("ORIGINAL_TOPIC"), letter.text("ORIGINAL_PARTITION"), letter.text("ORIGINAL_OFFSET")


def origin_of(example: Example, key: bytes) -> tuple[str, str, str]:
    """Return the same of the dead letter with this key."""
    return origin(example.dead_letters()[key.decode()])
