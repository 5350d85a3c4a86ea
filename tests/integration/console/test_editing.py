"""Edits in the console: the bytes that are sent, who may edit, and one job however often the page sends it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from tests.integration.console.acting import BY_PROXY, OWN_PAGE, Browser, acting
from tests.integration.redrive.scenario import Scenario
from tests.integration.redrive.test_edit import VALUES, edit, request_of
from tests.support.console import Answer, running_console
from wait_registry.records.lineage import split_lineage

KEY = ["text", "key-0"]
HEADERS = [["tenant", "text", "blue"], ["raw", "hex", "ff00"]]


@pytest.fixture
def dead(at: Scenario) -> Scenario:
    """A group with one dead letter that the tables show."""
    at.show_dead_letters(1)
    return at


@pytest.fixture
def browser(dead: Scenario) -> Iterator[Browser]:
    """A console in which each user of this machine may edit."""
    with acting(dead.settings, edit=True) as browser:
        yield browser


def edit_of(at: Scenario) -> str:
    """Return the address at which the dead letter is edited."""
    return "/edit/{}/{}/{}".format(*at.place())


def reviewed(browser: Browser, at: Scenario, value: bytes = b"edited", /, **head: Any) -> Answer:
    """Return the review of an edit."""
    return browser.put(edit_of(at), value, **{"key": KEY, "headers": HEADERS, **head})


def sent(browser: Browser, at: Scenario, token: str, value: bytes = b"edited", /, **head: Any) -> Answer:
    """Send an edit."""
    given = {"key": KEY, "headers": HEADERS, "reason": "amount was text", **head}
    return browser.put(f"{edit_of(at)}/send", value, token=token, **given)


@pytest.mark.guarantee("R1.16")
@pytest.mark.parametrize("value", VALUES.values(), ids=VALUES)
def test_what_the_page_sends_is_what_the_handler_gets(dead: Scenario, browser: Browser, value: bytes | None) -> None:
    head = {"value": "null" if value is None else "bytes"}
    review = reviewed(browser, dead, value or b"", **head)
    assert review.status == 200, review.text
    assert dead.events() == []
    answer = sent(browser, dead, review.token, value or b"", **head)
    assert answer.status == 303, answer.text
    job = answer.headers["Location"]
    browser.wait_state(job, "finished")
    (record,) = dead.sent()
    assert (record.key, record.value) == (b"key-0", value)
    original, _, _ = split_lineage(record.headers)
    name = job.rpartition("/")[2].encode()
    assert original == (("tenant", b"blue"), ("raw", b"\xff\0"), ("WAITREG_EDITED", name))
    (asked,) = dead.jobs()
    assert (asked.via, asked.reason) == ("console", "amount was text")
    dead.read_operations()
    page = browser.get(job).text
    assert "redrive, edited" in page
    assert "What is edited" in page and f"value: 7 bytes, {'null' if value is None else f'{len(value)} bytes'}" in page


@pytest.mark.guarantee("R1.15")
def test_however_often_an_edit_is_sent_it_is_one_job(dead: Scenario, browser: Browser) -> None:
    token = reviewed(browser, dead).token
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(lambda _: sent(browser, dead, token), range(8)))
    assert {answer.status for answer in answers} == {303}
    (job,) = {answer.headers["Location"] for answer in answers}
    browser.wait_state(job, "finished")
    assert sent(browser, dead, token).headers["Location"] == job
    assert len(dead.jobs()) == len(dead.sent()) == 1


@pytest.mark.guarantee("R1.16")
def test_only_what_was_reviewed_is_sent(dead: Scenario, browser: Browser) -> None:
    token = reviewed(browser, dead).token
    changes: tuple[tuple[bytes, dict[str, Any]], ...] = (
        (b"other", {}),
        (b"", {}),
        (b"", {"value": "null"}),
        (b"edited", {"headers": HEADERS[:1]}),
        (b"edited", {"headers": HEADERS[::-1]}),
        (b"edited", {"key": ["text", "key-1"]}),
    )
    for value, head in changes:
        answer = sent(browser, dead, token, value, **head)
        assert (answer.status, "review it again" in answer.text) == (400, True), answer.text
    as_form = browser.post("/redrive/new", [("token", token), ("reason", "fixed")])
    assert (as_form.status, "review it again" in as_form.text) == (400, True)
    assert "give a reason" in sent(browser, dead, token, reason=" ").text
    assert dead.events() == []


def test_a_review_shows_every_byte_and_what_would_be_done(dead: Scenario, browser: Browser) -> None:
    shown = reviewed(browser, dead, b"\xef\xbb\xbfvalue 0\r\n")
    for part in ("value: 7 bytes, 12 bytes", "- value 0", "+ \\ufeffvalue 0\\x0d", f"{dead.target}", "sent again"):
        assert part in shown.text, shown.text
    assert "SHA-256 " in shown.text and "key: " not in shown.text.split("<dl")[0]
    unread = reviewed(browser, dead, allow=[])
    assert "no_members" in unread.text and "It can't be sent now" in unread.text and 'name="token"' not in unread.text


@pytest.mark.parametrize(
    ("head", "says"),
    [
        ({"value": "hex"}, "value: expected hexadecimal digits"),
        ({"key": ["hex", "0"]}, "key: expected hexadecimal digits"),
        ({"headers": [["a", "hex", "xy"]]}, "header 'a': expected hexadecimal digits"),
        ({"headers": [*HEADERS, ["DLQ_REASON", "text", "x"]]}, "writes the header 'DLQ_REASON'"),
        ({"headers": [["WAITREG_EDITED", "text", "x"]]}, "writes the header 'WAITREG_EDITED'"),
        ({"headers": [["a\0b", "text", "x"]]}, "the name holds NUL"),
        ({"allow": ["already_redriven"]}, "can't be allowed for an edit"),
        ({"key": "x"}, "open it again"),
        ({"more": 1}, "open it again"),
    ],
    ids=str,
)
def test_what_cannot_be_sent_says_why(dead: Scenario, browser: Browser, head: dict[str, Any], says: str) -> None:
    answer = reviewed(browser, dead, b"no digits", **head)
    assert (answer.status, says in answer.text) == (400, True), answer.text
    assert dead.events() == []


def test_no_other_body_is_taken(dead: Scenario, browser: Browser) -> None:
    path = edit_of(dead)
    bytes_ = {"Content_Type": "application/octet-stream", **OWN_PAGE}
    large = bytes(dead.settings.wait.max_message_bytes + 200_000)
    for body, headers, status in (
        (large, bytes_, 413),
        (b"not JSON\nvalue", bytes_, 400),
        (b"", bytes_, 400),
        (b"{}", {**bytes_, "Content_Type": "application/x-www-form-urlencoded"}, 415),
        (json.dumps({}).encode(), {**bytes_, "Content_Type": "application/json"}, 415),
    ):
        assert browser.ask("PUT", path, body, **headers).status == status, body[:20]
    too_large = reviewed(browser, dead, bytes(dead.settings.wait.max_message_bytes * 9 // 10))
    assert (too_large.status, "takes" in too_large.text and "max.message.bytes" in too_large.text) == (400, True)
    assert dead.events() == []


def test_what_is_hidden_cannot_be_edited(dead: Scenario) -> None:
    with acting(dead.settings, edit=True, masks=(f"{dead.input} value.card",)) as browser:
        for answer in (browser.get(edit_of(dead)), reviewed(browser, dead), sent(browser, dead, "x")):
            assert (answer.status, "is hidden from you" in answer.text) == (403, True)
        assert "Edit …" not in browser.get(edit_of(dead).replace("/edit/", "/dead-letters/")).text
    assert dead.events() == []


def test_the_page_of_a_job_shows_its_edit_to_those_who_may_see_the_record(dead: Scenario) -> None:
    dead.execute(request_of(dead, edit(dead, value=b"secret")))
    dead.read_operations()
    grants = ("vera viewer", "sue support")
    for masks, seen in (((), {"sue"}), ((f"{dead.input} value.card",), set())):
        with acting(dead.settings, **BY_PROXY, grants=grants, masks=masks) as served:
            for who in ("vera", "sue"):
                page = Browser(served.port, X_Forwarded_User=who).get("/jobs/job-1").text
                assert ("+ secret" in page) == (who in seen) == ("hidden from you" not in page), (who, page)


def test_another_key_needs_the_role_admin(dead: Scenario) -> None:
    with acting(dead.settings, **BY_PROXY, edit=True, grants=("olga operator", "ada admin")) as served:
        olga, ada = (Browser(served.port, X_Forwarded_User=who) for who in ("olga", "ada"))
        other = {"key": ["text", "another"]}
        refused = reviewed(olga, dead, **other)
        assert (refused.status, "the role admin" in refused.text) == (403, True)
        assert "To change it needs the role admin" in olga.get(edit_of(dead)).text
        assert reviewed(ada, dead, **other).status == 200
        refused = sent(olga, dead, reviewed(ada, dead).token)
        assert (refused.status, "for another person" in refused.text) == (400, True)


def test_an_edit_is_resumed_only_where_edits_are_on(dead: Scenario) -> None:
    job = dead.pause(request_of(dead, edit(dead, value=b"edited", key=b"another")))
    with acting(dead.settings) as browser:
        refused = browser.post(f"/jobs/{job.job}/resume")
        assert (refused.status, "see console.edit" in refused.text) == (403, True)
    with acting(dead.settings, **BY_PROXY, edit=True, grants=("olga operator", "ada admin")) as served:
        olga, ada = (Browser(served.port, X_Forwarded_User=who) for who in ("olga", "ada"))
        assert olga.post(f"/jobs/{job.job}/resume").status == 403
        assert ada.post(f"/jobs/{job.job}/resume").status == 303
        ada.wait_state(f"/jobs/{job.job}", "finished")
    assert [(record.key, record.value) for record in dead.sent()] == [(b"another", b"edited")]


def test_without_the_setting_nothing_can_be_edited(dead: Scenario) -> None:
    paths = (edit_of(dead), f"{edit_of(dead)}/send")
    with acting(dead.settings) as browser:
        assert [browser.put(path).status for path in paths] == [404, 404]
        assert "Edit …" not in browser.get(edit_of(dead).replace("/edit/", "/dead-letters/")).text
    with running_console(dead.settings, edit=True) as port:
        assert [Browser(port).put(path).status for path in paths] == [404, 404]
