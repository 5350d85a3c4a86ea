"""`waitreg dlq redrive`, `archive`, `restore` and `jobs`, as an operator types them."""

from __future__ import annotations

import json
import re
import sys
from io import BytesIO, TextIOWrapper
from pathlib import Path

import pytest

from processor.intake import absent_topics
from tests.integration.processor.running import RunningProcessor
from tests.integration.redrive.conftest import Type
from tests.integration.redrive.scenario import Scenario
from tests.support.settings import changed
from tests.support.waiting import wait_until
from wait_registry.kafka.topics import create_topics
from wait_registry.records.lineage import split_lineage
from wait_registry.records.operation import Changed, Mark, State
from wait_registry.settings.processor import GroupProtocol
from waitreg.redrive.operator_events import record_reveal
from waitreg.redrive.request import Asker


def test_nothing_is_sent_without_send(at: Scenario, typed: Type) -> None:
    at.show_dead_letters(3)
    status, printed = typed("redrive", f"group={at.group}", "--without-members")
    assert status == 0
    assert printed.startswith("dry run: redrive dead letters of group")
    assert "3  redriven          will be sent again" in printed
    assert f"records go to {at.target}" in printed
    assert "nothing was changed: add --send and --reason TEXT" in printed
    for command in ("redrive", "archive", "restore"):
        status, printed = typed(command, f"group={at.group}", "--send", "--reason", " ")
        assert (status, "--send needs --reason TEXT" in printed) == (2, True), command
    assert at.sent() == []
    assert at.events() == []


def test_a_redrive_ends_with_what_was_done(at: Scenario, typed: Type) -> None:
    at.show_dead_letters(3)
    status, printed = typed("redrive", f"group={at.group}", "--without-members", "--reason", "fixed", "--send")
    assert (status, len(at.sent())) == (0, 3)
    assert "is finished" in printed
    at.read_operations()
    status, printed = typed("jobs", "list")
    assert status == 0
    assert "finished" in printed and "fixed" in printed
    (job,) = {mark.job for mark in at.events() if isinstance(mark, Mark)}
    status, printed = typed("jobs", "show", job)
    assert "not consumed yet" in printed
    status, printed = typed("redrive", f"group={at.group}", "--without-members", "--reason", "fixed", "--send")
    assert status == 2
    assert "there is no dead letter with" in printed


def test_scripts_get_the_dry_run_and_the_result_as_json(at: Scenario, typed: Type) -> None:
    at.show_dead_letters(3)
    asked = ("redrive", f"group={at.group}", "--without-members", "--json")
    status, printed = typed(*asked)
    shown = json.loads(printed)
    assert (status, shown["counts"], shown["targets"], shown["sent"]) == (0, {"redriven": 3}, {at.target: 3}, False)
    assert "job" not in shown and at.sent() == []
    status, printed = typed(*asked, "--reason", "fixed", "--send")
    ended = json.loads(printed)
    assert (status, ended["state"], ended["counts"], ended["sent"]) == (0, "finished", {"redriven": 3}, True)
    assert {mark.job for mark in at.events() if isinstance(mark, Mark)} == {ended["job"]}


@pytest.mark.guarantee("R1.7")
def test_what_cannot_be_redriven_says_why_and_ends_with_one(at: Scenario, typed: Type) -> None:
    at.show_dead_letters(1)
    status, printed = typed(
        "redrive", f"{at.settings.dead_letter.topic}:{at.place().partition}:0", "--reason", "fixed", "--send"
    )
    assert status == 1
    assert "nothing was changed: none of them can be redriven, for the reasons above" in printed
    assert "no_members" in printed and "--without-members" in printed
    assert at.sent() == []


def test_an_edit_is_shown_byte_for_byte_and_sent_with_send(at: Scenario, typed: Type) -> None:
    at.show_dead_letters(1)
    Path("order.bin").write_bytes(b"value 0\r\n")
    headers = ("--header", "tenant", "red", "--header", "a=b", "=c", "--without-header", "raw")
    asked = ("edit", str(at.place()), "--value", "order.bin", *headers)
    status, printed = typed(*asked, "--without-members")
    assert status == 0, printed
    for line in (
        '- tenant = "blue"',
        '+ tenant = "red"',
        "+ value 0\\x0d",
        "value before: 7 bytes, SHA-256 ",
        "value after:  9 bytes, SHA-256 ",
        f"records go to {at.target}",
        "nothing was changed: add --send",
    ):
        assert line in printed, printed
    assert at.sent() == at.events() == []
    status, printed = typed(*asked, "--without-members", "--reason", "line ends", "--send")
    assert status == 0, printed
    (sent,) = at.sent()
    (mark,) = (event for event in at.events() if isinstance(event, Mark))
    assert sent.value == b"value 0\r\n" and mark.edited
    assert split_lineage(sent.headers)[0] == (("tenant", b"red"), ("a=b", b"=c"), ("WAITREG_EDITED", mark.job.encode()))
    at.read_operations()
    status, printed = typed("audit", "--place", str(at.place()), "--json")
    assert '"what": "redrive, edited"' in printed
    status, printed = typed(*asked)
    assert (status, "already_redriven" in printed, "--again" in printed) == (1, True, False)


@pytest.mark.guarantee("R1.17")
def test_an_edit_awaits_approval_with_its_changes(at: Scenario, typed: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WAITREG_REDRIVE__APPROVE_EDITS", "true")
    at.show_dead_letters(1)
    asked = ("edit", str(at.place()), "--header", "tenant", "red", "--without-members", "--reason", "fixed", "--send")
    status, printed = typed(*asked)
    assert status == 1
    (job,) = re.findall(r"waitreg dlq jobs approve (\w+) --reason TEXT", printed)
    # It is only asked for: no executor has fenced another one of the group for it.
    assert [type(event).__name__ for event in at.events()] == ["Requested"]
    at.read_operations()
    _, printed = typed("jobs", "show", job)
    assert '- tenant = "blue"' in printed and "at most 1 are redriven" in printed and "no_members" in printed
    monkeypatch.setattr("waitreg.redrive.request.account", lambda: "ben")
    assert typed("jobs", "approve", job, "--reason", "looked at it")[0] == 0
    assert typed("redrive", "--resume", job, "--send")[0] == 0
    assert len(at.sent()) == 1


def test_an_edit_reads_standard_input(at: Scenario, typed: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    at.show_dead_letters(1)
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"\xff\r\n")))
    status, printed = typed("edit", str(at.place()), "--value", "-", "--key", "key.bin")
    assert (status, "key.bin can't be read" in printed) == (2, True)
    monkeypatch.setattr(sys, "stdin", TextIOWrapper(BytesIO(b"\xff\r\n")))
    status, printed = typed("edit", str(at.place()), "--value", "-", "--without-members", "--reason", "fixed", "--send")
    assert (status, at.sent()[0].value) == (0, b"\xff\r\n"), printed


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ((), "nothing is edited"),
        (("--value", "none.bin"), "none.bin can't be read"),
        (("--value", "-", "--key", "-"), "standard input has one of"),
        (("--value", "-", "--null-value"), "give one of the two"),
        (("--header", "tenant"), "requires 2 arguments"),
        (("--header", "DLQ_TIME", "x"), "wait-registry writes the header 'DLQ_TIME'"),
        (("--without-header", "none"), "no header 'none'"),
    ],
)
def test_an_edit_that_is_not_possible_says_why(at: Scenario, typed: Type, options: tuple[str, ...], said: str) -> None:
    at.show_dead_letters(1)
    status, printed = typed("edit", str(at.place()), *options)
    assert (status, said in printed) == (2, True), printed
    assert at.events() == []


def test_archived_ones_come_back_by_restore(at: Scenario, typed: Type) -> None:
    at.show_dead_letters(2)
    assert typed("archive", f"group={at.group}", "--reason", "test orders", "--send")[0] == 0
    at.read_operations()
    assert at.rows("select distinct state from dead_letter") == [("archived",)]
    assert re.search(r"^archived by .*, job \w+: test orders$", typed("show", str(at.place()))[1], re.MULTILINE)
    assert typed("restore", f"group={at.group}", "--reason", "fixed", "--send")[0] == 0
    at.read_operations()
    assert at.rows("select distinct state from dead_letter") == [("open",)]


def test_the_audit_says_who_did_what_with_which_record(at: Scenario, typed: Type) -> None:
    at.show_dead_letters(2)
    place = str(at.place())
    purge = ("purge", at.settings.dead_letter.topic, "--before", "2999-01-01T00:00Z", "--reason", "old", "--send")
    assert typed(*purge)[0] == 0
    at.read_operations()
    status, printed = typed("audit")
    assert status == 0
    assert printed.count("archive") >= 3 and "old" in printed and "finished" in printed
    status, printed = typed("audit", "--place", place, "--json")
    (line,) = printed.splitlines()
    assert f'"{at.input}:0:' in line and '"what": "archive"' in line
    ada = Asker("ada", authenticated=True, via="console")
    record_reveal(at.settings, at.place(), at.group, ada, "ticket 17")
    at.read_operations()
    status, printed = typed("audit", "--place", place, "--by", "ada", "--json")
    assert '"what": "revealed"' in printed and "ticket 17" in printed and f'"record": "{place}"' in printed
    assert typed("audit", "--by", "another user", "--json") == (0, "")


def test_a_whole_topic_is_merged(at: Scenario, typed: Type) -> None:
    at.show_dead_letters(2)
    status, printed = typed("merge", at.settings.dead_letter.topic)
    assert status == 1
    assert "2  no_members" in printed


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("redrive",), "no dead letter is named"),
        (("redrive", "group=nobody"), "there is no dead letter with group=nobody"),
        (("redrive", "x:y"), "no place of a record"),
        (("redrive", "place=x:99999999999:1"), "there is no dead letter with place=x:99999999999:1"),
        (("redrive", "group=a", "--rate", "1000"), "redrive.max_rate allows 500"),
        (("redrive", "--resume", "none"), "there is no job 'none'"),
        (("jobs", "cancel", "none"), "there is no job 'none'"),
        (("jobs", "rate", "none", "5"), "there is no job 'none'"),
        (("jobs", "rate", "none", "501"), "redrive.max_rate allows 500"),
    ],
)
def test_a_mistake_is_named(at: Scenario, typed: Type, arguments: tuple[str, ...], said: str) -> None:
    at.read_operations()
    status, printed = typed(*arguments)
    assert status == 2
    assert said in printed


def test_a_job_is_paused_and_resumed(at: Scenario, typed: Type) -> None:
    at.show_dead_letters(4)
    job = at.request(rate=1.0, job="slow").job
    running = at.start(job)
    wait_until(lambda: any(isinstance(event, Mark) for event in at.events()), 60, "the first mark")
    assert typed("jobs", "pause", "slow")[0] == 0
    assert running.wait_ended() is None
    assert any(isinstance(event, Changed) and event.state is State.PAUSED for event in at.events())
    assert len(at.sent()) < 4
    assert typed("jobs", "rate", "slow", "100")[0] == 0
    status, printed = typed("redrive", "--resume", "slow", "--send")
    assert status == 0, printed
    assert len(at.sent()) == 4


def test_many_await_the_approval_of_another_user(at: Scenario, typed: Type, monkeypatch: pytest.MonkeyPatch) -> None:
    at.show_dead_letters(3)
    monkeypatch.setenv("WAITREG_REDRIVE__APPROVE_ABOVE", "2")
    asked = ("redrive", f"group={at.group}", "--without-members")
    status, printed = typed(*asked)
    assert (status, "another person has to approve it" in printed) == (0, True)
    status, printed = typed(*asked, "--reason", "fixed", "--send")
    assert status == 1
    (job,) = re.findall(r"waitreg dlq jobs approve (\w+) --reason TEXT", printed)
    for arguments, code, says in (
        (("redrive", "--resume", job, "--send"), 1, "awaits the approval"),
        (("jobs", "rate", job, "20"), 2, "can only be approved or cancelled"),
        (("jobs", "approve", job), 2, "--reason"),
        (("jobs", "approve", job, "--reason", "sure"), 2, "another person has to approve it"),
    ):
        status, printed = typed(*arguments)
        assert (status, says in printed) == (code, True), printed
    assert at.sent() == []
    monkeypatch.setattr("waitreg.redrive.request.account", lambda: "ben")
    assert typed("jobs", "approve", job, "--reason", "looked at them")[0] == 0
    status, printed = typed("jobs", "approve", job, "--reason", "again")
    assert (status, "it is running" in printed) == (2, True)
    status, printed = typed("redrive", "--resume", job, "--send")
    assert (status, len(at.sent())) == (0, 3), printed


def processor_of(at: Scenario, protocol: str) -> RunningProcessor:
    """Start a processor of the group."""
    own = {"handler": "tests.integration.processor.scenario:accepts", "group_protocol": GroupProtocol(protocol)}
    return RunningProcessor(changed(at.settings, "processor", **own)).wait_joined()


@pytest.mark.guarantee("R1.10")
@pytest.mark.parametrize("protocol", ["classic", "consumer"])
def test_a_topic_that_was_missing_is_created_and_read_without_a_restart(
    at: Scenario, typed: Type, protocol: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(absent_topics, "LOOK_EVERY_S", 0.5)
    at.topics.delete(at.target)
    at.show_dead_letters(3)
    processor = processor_of(at, protocol)
    try:
        status, printed = typed("redrive", f"group={at.group}", "--reason", "fixed", "--send")
        assert status == 1
        assert "3  target_missing" in printed and "`waitreg topics create`" in printed
        assert create_topics(at.settings) == [at.target]
        wait_until(lambda: typed("redrive", f"group={at.group}")[0] == 0, 60, "a member that reads the topic")
        status, printed = typed("redrive", f"group={at.group}", "--reason", "fixed", "--send")
        assert status == 0, printed
        wait_until(lambda: processor.done == 3, 60, "the redriven records")
    finally:
        processor.stop()
