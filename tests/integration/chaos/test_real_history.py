"""Exports of a real sweeper are judged as clean; those of a broken one are found, as is each change of a history."""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer

from sweeper.due import DueRow
from sweeper.export_decision import Outgoing, outgoing
from sweeper.result import RowOutcome
from tests.chaos.checker.verdict import FEWEST_SNAPSHOTS, RULES, check
from tests.chaos.history.entries import Registration, Republished, WaitEntry
from tests.chaos.history.history import Act, Concerned, FaultDone, History, MemorySample, WaitRow
from tests.chaos.history.reading import read_history
from tests.chaos.history.tables import read_tables
from tests.chaos.history.watch import Watch
from tests.conftest import SettingsFactory
from tests.integration.sweeper.scenario import Registered, Scenario
from tests.support.database import Database
from tests.support.kafka_io import read_all
from tests.support.topics import Topics
from tests.support.waiting import wait_until
from wait_registry.kafka.targets import Target
from wait_registry.kafka.topic_specs import retry_topics
from wait_registry.records.dead_letter import Reason
from wait_registry.records.operation import Advanced, DeletionRequested, Event, Kind, Mark, Place, RecordsDeleted
from wait_registry.records.original import Original
from wait_registry.records.tombstone import tombstone_headers
from wait_registry.records.topics import redelivery_topic
from wait_registry.records.wait_id import wait_id
from wait_registry.settings.processor import Ordering
from waitreg.downstream.calls import Call
from waitreg.load.json_lines import JsonLines
from waitreg.load.load import LoadPlan, run_load
from waitreg.load.manifest import fingerprint

RECORDS = 6
# Long after the outcome, as a sweeper would decide that reads no tail.
LATER_MS = 5_000


class Judged:
    """One wait topic whose records are registered and expired, watched all the time."""

    def __init__(self, at: Scenario, folder: Path) -> None:
        self.at, self.folder, self.watch = at, folder, Watch(at.settings, 0)
        self.bootstrap, self.group = at.settings.kafka.bootstrap_servers, at.settings.processor.group
        self.input = at.settings.processor.topics[0]
        with JsonLines(folder / "calls.jsonl"):
            pass
        self.registered = self._register()

    def finish(self, item: Registered) -> None:
        """Do the work, and write the tombstone."""
        record, now_ms = item.record.original, time.time_ns() // 1_000_000
        body = fingerprint(None, getattr(record, "value", b"") or b"", ()).value or ""
        with JsonLines(self.folder / "calls.jsonl") as calls:
            place = (record.topic, record.partition, record.offset)
            calls.append(Call(1, now_ms, now_ms, 0.0, 0.0, item.wait_id, *place, 1, 200, body, item.wait_id))
        self.at.resolve([item])

    def letters(self, items: Sequence[Registered]) -> list[Outgoing]:
        """Return the dead letters of a sweeper that ignores the log."""
        now_ms = time.time_ns() // 1_000_000 + LATER_MS
        rows = [DueRow(item.record, item.partition, item.offset) for item in items]
        decided = [outgoing(row, self.at.settings, lambda topic: Target(topic, 2, 1_000_000), now_ms) for row in rows]
        return [letter for letter in decided if isinstance(letter, Outgoing)]

    def abort(self, items: Sequence[Registered]) -> None:
        """Export them in a transaction that is aborted."""
        producer = Producer({"bootstrap.servers": self.bootstrap, "transactional.id": self.group})
        producer.init_transactions(30)
        producer.begin_transaction()
        for letter in self.letters(items):
            producer.produce(letter.topic, letter.value, letter.key, headers=letter.headers)
            headers = tombstone_headers(letter.outcome)
            producer.produce(self.at.settings.wait.topic, None, letter.wait_id.encode(), partition=0, headers=headers)
        producer.flush(30)
        producer.abort_transaction(30)

    def history(self) -> History:
        """Read the run; the processors that registered everything are gone."""
        gone = FaultDone("kill", "group", 0, time.time_ns() // 1_000_000, "there never were any")
        history = read_history(self.at.settings, self.folder, self.watch.polls, with_tables=False)
        return replace(history, faults=[gone])

    def _register(self) -> list[Registered]:
        run_load(self.at.settings, LoadPlan(self.input, RECORDS, manifest=self.folder / "manifest.jsonl"))
        cluster = self.at.admin.list_topics(self.input, timeout=15).cluster_id
        records = []
        for number, one in enumerate(read_all(self.bootstrap, self.input)):
            place = (self.input, one.partition, one.offset)
            original = Original(*place, one.timestamp_ms, "create", one.key, one.value, one.headers)
            own = wait_id(cluster, place, self.group, one.timestamp_ms)
            records.append(
                self.at.wait_record(number, original=original, instance="processor-1/1")._replace(wait_id=own)
            )
        return self.at.register(records)


@pytest.fixture
def run(prepared: SettingsFactory, topics: Topics, database: Database, tmp_path: Path) -> Iterator[Judged]:
    settings = prepared({"wait.partitions": 1, "wait.skew_allowance_s": 0, "processor.retry.delays": ("10s",)})
    judged = Judged(Scenario(settings, topics, database), tmp_path)
    with judged.watch as watch:
        wait_until(lambda: len(watch.polls) > 0, what="a poll that shows the registrations")
        yield judged


@pytest.fixture
def history(run: Judged) -> History:
    """The first record is done after it has expired, an export is aborted, and a sweep exports the others."""
    run.at.show()
    seen = read_tables(run.at.settings)
    run.finish(run.registered[0])
    run.at.show()
    run.abort(run.registered[1:3])
    assert run.at.sweep(chunk_rows=2).counts[RowOutcome.EXPORTED] == RECORDS - 1
    return replace(run.history(), snapshots=[seen] * FEWEST_SNAPSHOTS)


def test_sweep_after_aborted_one_and_late_work_is_clean(history: History) -> None:
    verdict = check(history)
    assert verdict.passed, "\n".join([verdict.void, *verdict.stories()])
    figures = verdict.figures
    assert [figures[name] for name in ("records", "done", "expired", "aborted")] == [RECORDS, 1, RECORDS - 1, 2]
    assert len(history.polls) > 2


def changed_histories(kept: History) -> Iterator[tuple[str, History]]:
    """Yield the history with one change each, after the rule that finds it."""
    first, second = kept.inputs[:2]
    begun, (call,), letter = kept.wait_log[0], kept.calls or (), kept.dead_letters[-1]
    (seen, *_) = kept.snapshots or ()
    assert isinstance(begun, Registration)
    assert isinstance(letter, Republished)

    def in_log(**changes: Any) -> History:
        return replace(kept, wait_log=[replace(begun, **changes), *kept.wait_log[1:]])

    def with_letter(**changes: Any) -> History:
        return replace(kept, dead_letters=[*kept.dead_letters[:-1], replace(letter, **changes)])

    def with_call(**changes: Any) -> History:
        return replace(kept, calls=[replace(call, **changes)])

    yield "lost", replace(kept, calls=[])
    yield "unfinished", replace(kept, inputs=[*kept.inputs, replace(first, place=(*first.place[:2], 99))])
    for rule in ("abandoned", "late_call"):
        yield rule, replace(kept, faults=[])
    yield "changed", in_log(delivery=2)
    yield "changed", in_log(content=replace(begun.content, value="another"))
    yield "changed", with_letter(content=begun.content)
    yield "changed", with_letter(group="another")
    yield "changed", with_call(body_sha256="another")
    yield "misnamed", in_log(wait_id=wait_id("another", begun.original, begun.group, 0))
    yield "misnamed", with_call(idempotency_key="another")
    yield "not_as_set", in_log(dead_letter_topic="another")
    yield "not_as_set", in_log(expires_at_ms=begun.expires_at_ms + 10**9)
    yield "misrouted", replace(kept, wait_log=[_redelivered(one) for one in kept.wait_log])
    yield "false_export", with_letter(time_ms=begun.expires_at_ms - 30)
    yield "doubled", replace(kept, dead_letters=[*kept.dead_letters, replace(letter, offset=99)])
    yield "unpaired", replace(kept, dead_letters=kept.dead_letters[:-1])
    failed = replace(letter, reason=Reason.FAILED)
    yield "unfounded", with_letter(reason=Reason.FAILED)
    yield "unfounded", with_letter(reason=Reason.UNREGISTRABLE)
    again = [*kept.dead_letters, failed, replace(failed, offset=99)]
    yield "dead_lettered_again", replace(kept, dead_letters=again)
    early = replace(kept.polls[0], committed={first.place[:2]: 99}, wait_ends={}, wait_stable={}, began_ms=0)
    yield "committed_past", replace(kept, polls=[early, *kept.polls])
    yield "early_call", with_call(started_ms=begun.append_ms - 500)
    yield "handled_again", replace(kept, calls=[call] * (kept.settings.processor.max_attempts + 1))
    yield "early_tombstone", with_call(finished_ms=call.finished_ms + 60_000)
    to_retry = replace(letter, topic=retry_topics(kept.settings)[0], reason="", append_ms=call.started_ms)
    retried = wait_id(kept.cluster_id, to_retry.place, begun.group, to_retry.append_ms)
    calls = [call, replace(call, wait_id=retried)]
    yield "early_retry", replace(kept, redelivered=[to_retry], calls=calls)
    own = kept.settings.processor.model_copy(update={"ordering": Ordering.PARTITION})
    in_order = replace(kept, settings=kept.settings.model_copy(update={"processor": own}), modes=["off"])
    place: dict[str, Any] = dict(zip(("topic", "partition", "offset"), second.place, strict=True))
    overtaken = replace(call, wait_id=kept.wait_log[1].wait_id, started_ms=call.started_ms - 500, **place)
    yield "out_of_order", replace(in_order, calls=[call, overtaken])
    yield "not_as_asked", with_call(path="replay-1/1")
    yield "bound", replace(kept, samples=[MemorySample("processor-1", 300_000_001)])
    row, *others = seen.wait
    orphan = WaitRow("another", None)
    for rule in ("missing_row", "orphan_row", "row_differs"):
        yield rule, replace(kept, tables=seen._replace(wait=[*seen.wait, orphan]))
    for rows in (others, [*seen.wait, orphan], [row._replace(registration=None, unreadable="null"), *others]):
        yield "snapshot_differs", replace(kept, snapshots=[seen._replace(wait=rows)] * FEWEST_SNAPSHOTS)


def _redelivered(entry: WaitEntry) -> WaitEntry:
    return replace(entry, expiry_policy="redeliver") if isinstance(entry, Registration) else entry


def test_each_rule_finds_a_change_of_a_real_history(history: History) -> None:
    changes = list(changed_histories(history))
    assert {rule for rule, _ in changes} == RULES.keys()
    found = [(number, rule, {*check(changed).counts}) for number, (rule, changed) in enumerate(changes)]
    assert not [one for one in found if one[1] not in one[2]]


def acted(kept: History, act: Act, place: tuple[str, int, int]) -> History:
    """Return the history with an action of an operator that concerns one record, after all that it has."""
    ended_ms = kept.faults[0].ended_ms
    concerned = [Concerned(act, place[:2], range(place[2], place[2] + 1))]
    return replace(kept, faults=[*kept.faults, FaultDone("act", "records", 0, ended_ms, "it never was", concerned)])


def test_an_act_on_records_excuses_no_other_record(history: History) -> None:
    letter, (call,) = history.dead_letters[-1], history.calls or ()
    assert isinstance(letter, Republished)
    (first,) = (one for one in history.inputs if one.place == (call.topic, call.partition, call.offset))
    early = replace(history.polls[0], committed={first.place[:2]: first.place[2] + 1}, wait_ends={}, began_ms=0)
    retried = replace(letter, topic=retry_topics(history.settings)[0], reason="", delivery=2, max_deliveries=4)
    forgeries = (
        ("lost", Act.PASSED, first.place, replace(history, calls=[])),
        ("committed_past", Act.PASSED, first.place, replace(history, polls=[early, *history.polls])),
        ("unfinished", Act.DELETED, retried.place, replace(history, redelivered=[retried])),
        ("not_as_asked", Act.REPLAYED, first.place, replace(history, calls=[replace(call, path="replay-1/1")])),
    )
    for rule, act, place, forged in forgeries:
        assert rule in check(forged).counts, rule
        assert rule not in check(acted(forged, act, place)).counts, rule
        assert rule in check(acted(forged, act, (*place[:2], place[2] + 1))).counts, rule
    rewound = acted(acted(replace(history, calls=[]), Act.PASSED, first.place), Act.REWOUND, first.place)
    assert {"lost", "not_as_asked"} <= check(rewound).counts.keys()
    gone = replace(acted(history, Act.PASSED, retried.place), redelivered=[retried], begins={retried.place[:2]: 99})
    assert "unfinished" in check(gone).counts


def test_a_mark_excuses_its_own_dead_letter_alone(history: History) -> None:
    other, letter = history.dead_letters[-2:]
    assert isinstance(letter, Republished)
    again = replace(
        letter, topic=redelivery_topic(letter.original[0], letter.group), reason="", delivery=2, time_ms=None
    )

    def mark(kind: Kind, about: str, record: Any) -> Mark:
        own: dict[str, Any] = {"job": "job", "kind": kind, "group": letter.group, "by": "anna", "wait_id": about}
        return Mark(**own, dead_letters=(Place(*record.place),), target=Place(*again.place))

    def found(*events: Event, **changes: Any) -> set[str]:
        counts = check(replace(history, operations=events, **changes)).counts
        return counts.keys() & {"doubled", "changed", "not_as_asked", "lost"}

    redriven, sent = mark(Kind.REDRIVE, letter.wait_id, letter), {"redelivered": [again]}
    ended, archived = Advanced(job="job", cursor=(), counts={"redriven": 1}), mark(Kind.ARCHIVE, letter.wait_id, letter)
    assert found(redriven, ended, **sent) == set()
    assert found(**sent) == {"doubled", "changed"}
    assert found(mark(Kind.REDRIVE, letter.wait_id, other), ended, **sent) == {"changed"}
    assert found(redriven, ended) == found(archived, redriven, ended, **sent) == {"not_as_asked"}
    assert found(redriven, redriven, ended, **sent) == {"not_as_asked"}
    until = {letter.partition: letter.offset + 1}
    by: dict[str, Any] = {"job": "job", "topic": letter.topic, "by": "anna", "authenticated": False, "via": "command"}
    asked, deleted = DeletionRequested(**by, before=until, reason="old"), RecordsDeleted(**by, first=until)
    closed = [mark(Kind.ARCHIVE, "", one) for one in history.dead_letters]
    begins = {(letter.topic, number): offset for number, offset in until.items()}
    assert found(*closed, asked, deleted, begins=begins) == set()
    for events in ((*closed[:-1], asked, deleted), (asked, deleted, *closed), closed):
        assert found(*events, begins=begins) == {"not_as_asked"}


def test_registration_is_ended_by_an_answer_to_its_own_process_alone(history: History) -> None:
    begun, (call,) = history.wait_log[1], history.calls or ()
    assert isinstance(begun, Registration)
    answered_ms = begun.expires_at_ms - 60_000
    place: dict[str, Any] = dict(zip(("topic", "partition", "offset"), begun.original, strict=True))
    answer = replace(call, wait_id=begun.wait_id, started_ms=answered_ms, finished_ms=answered_ms, **place)
    killed = FaultDone("kill", "processor-1", answered_ms + 30_000, begun.append_ms + 60_000, "it never ran")

    def found(caller: str) -> set[str]:
        return {*check(replace(history, calls=[call, replace(answer, path=caller)], faults=[killed])).counts}

    assert "abandoned" not in found("processor-2/1")
    assert "abandoned" in found(begun.instance)
