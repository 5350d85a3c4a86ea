"""`waitreg reconcile`: judges a running system from its files and topics, and its exit code is the verdict."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.integration.sink.wait_topic import new_id, tombstone, wait_record
from tests.support.command import Ended, run_waitreg
from tests.support.kafka_io import Outgoing
from tests.support.raw_headers import produce_with_header_name
from tests.support.topics import Topics
from wait_registry.records import header_names
from wait_registry.settings.tree import Settings
from waitreg.downstream.calls import Call
from waitreg.load.json_lines import JsonLines
from waitreg.load.load import LoadPlan, run_load
from waitreg.load.manifest import Published, read_manifest
from waitreg.reconcile.breaches import EMPTY_BODY
from waitreg.reconcile.evidence import read_wait_log


def call_for(published: Published, number: int) -> Call:
    """Return what a downstream writes of a record that it got whole and answered with 200."""
    began_ms, body = published.timestamp_ms, published.fingerprint.value or EMPTY_BODY
    times = began_ms, began_ms + 1, float(number), number + 0.001
    return Call(number, *times, None, *published.coordinates, 1, 200, body)


class Files:
    """A manifest of published records, and a downstream's log in which some of them have their calls."""

    def __init__(self, settings: Settings, folder: Path, records: int = 12) -> None:
        self.settings, self.folder = settings, folder
        self.manifest, self.calls = folder / "published.jsonl", folder / "calls.jsonl"
        run_load(settings, LoadPlan(settings.processor.topics[0], records, manifest=self.manifest))
        self.calls.touch()

    def answer_all_but(self, unanswered: int) -> None:
        published = list(read_manifest(self.manifest))
        with JsonLines(self.calls) as log:
            for number, one in enumerate(published[unanswered:], start=1):
                log.append(call_for(one, number))

    def reconcile(self, *arguments: str) -> Ended:
        files = ("--manifest", str(self.manifest), "--calls", str(self.calls))
        return run_waitreg(self.folder, "reconcile", *files, *arguments, settings=self.settings)


@pytest.fixture
def files(prepared: SettingsFactory, tmp_path: Path) -> Files:
    return Files(prepared(), tmp_path)


def test_a_run_that_kept_every_promise_ends_with_0(files: Files) -> None:
    files.answer_all_but(0)
    ended = files.reconcile("--no-kills")
    assert ended.code == 0, ended.errors
    assert "published 12 = done 12 + dead-lettered 0; lost 0" in ended.output
    assert "forgotten 0" in ended.output
    assert "every guarantee was kept" in ended.output


def test_a_record_without_an_end_at_the_deadline_ends_with_4(files: Files) -> None:
    files.answer_all_but(2)
    ended = files.reconcile("--deadline", "0")
    assert ended.code == 4
    assert "published 12 = done 10 + dead-lettered 0; lost 2" in ended.output


def test_without_what_it_judges_by_it_ends_with_2(files: Files) -> None:
    files.calls.unlink()
    assert f"{files.calls} is not there" in files.reconcile().errors
    files.calls.touch()
    nobody = files.reconcile("--set", "processor.topics=")
    assert (nobody.code, "set both" in nobody.errors) == (2, True)


def test_malformed_wait_records_register_nothing(prepared: SettingsFactory, topics: Topics) -> None:
    settings = prepared()
    topic = settings.wait.topic
    good = wait_record(new_id(), 0)
    assert isinstance(good.key, bytes)
    key = good.key.decode("ascii")
    bad = [
        replace(good, key=new_id().encode(), headers=((header_names.WAIT_GROUP, b"billing"),)),
        replace(good, key=new_id().encode(), headers=(*good.headers, (header_names.ORIGINAL_PARTITION, b"none"))),
        replace(good, key=new_id().encode(), headers=(*good.headers, (header_names.ORIGINAL_TOPIC, b"\xff"))),
        replace(good, key=b"\xff"),
        Outgoing(None, b"\xff\xfe", ((header_names.WAIT_OUTCOME, b"\xff"),), 0),
    ]
    topics.produce(topic, [*bad, good, tombstone(key, 0)])
    produce_with_header_name(topics.bootstrap, topic, b"\xff\xfe", b"unreadable name", key=b"odd")
    read = list(read_wait_log(settings, "billing"))
    registered = [(entry.wait_id, entry.original) for entry in read if entry.original is not None]
    assert registered == [(key, ("orders", 3, 41))]
    assert sorted(entry.outcome or "" for entry in read if entry.original is None) == ["", "done"]
