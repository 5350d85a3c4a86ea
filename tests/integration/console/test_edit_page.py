"""The page of an edit in a real browser: it sends the record byte for byte, and the group handles it."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, Page, expect

from tests.integration.console.acting import acting
from tests.integration.processor.running import Processors
from tests.integration.redrive.scenario import HEADERS, Scenario
from tests.integration.sink.applying import now_ms
from tests.support.browser import Visit, require_accessible
from tests.support.kafka_io import Outgoing
from tests.support.settings import changed
from tests.support.waiting import wait_until
from wait_registry.handler import Record
from wait_registry.records.dead_letter import Failure, Reason, dead_letter_headers
from wait_registry.records.lineage import split_lineage

# What HTML, or a script, could change on the way.
TEXT = "\n\n\ufeff<b> &amp; \t12345678901234567890\n</textarea>{{ ä }}\u2028\n".encode()


@pytest.fixture
def window(browser: Browser, at: Scenario) -> Iterator[Visit]:
    """A window on a console in which all may edit; nothing else goes wrong in it."""
    with acting(at.settings, edit=True) as served:
        context = browser.new_context()
        opened = Visit(context, f"http://127.0.0.1:{served.port}")
        yield opened
        assert opened.problems() == []
        context.close()


def dead_letter(at: Scenario, value: bytes | None) -> str:
    """Write a dead letter with this value; return the address at which it is edited."""
    failure = Failure(Reason.FAILED, "builtins.ValueError", "bad", "trace", now_ms())
    headers = dead_letter_headers(HEADERS, at.lineage(0), failure)
    at.topics.produce(at.settings.dead_letter.topic, [Outgoing(value, b"key-0", headers)])
    at.read()
    return "/edit/{}/{}/{}".format(*at.place())


def reviewed(page: Page) -> None:
    """Ask for the review, and wait for it."""
    page.get_by_label("Also if the group has no member now").check()
    page.get_by_role("button", name="Review").click()
    expect(page.get_by_role("heading", name="Review")).to_be_visible()


def sent(page: Page, at: Scenario) -> None:
    """Send what is reviewed, and wait until it is sent."""
    page.get_by_label("reason").fill("amount was text")
    page.get_by_role("button", name="Send the edited record").click()
    page.wait_for_url("**/jobs/*")
    wait_until(lambda: len(at.sent()) == 1, what="the edited record")


@pytest.mark.guarantee("R1.16")
def test_a_text_is_edited_reviewed_and_handled(window: Visit, at: Scenario, processors: Processors) -> None:
    handled: list[Record] = []

    async def handle(record: Record) -> None:
        handled.append(record)

    page = window.open(dead_letter(at, b'{"amount": "12"}').replace("/edit/", "/dead-letters/"))
    page.get_by_role("button", name="Edit …").click()
    require_accessible(page)
    page.get_by_label("text, with line feeds alone").fill('{"amount": 12}')
    page.get_by_label("Value of the header", exact=True).first.fill("red")
    reviewed(page)
    headers = ('- tenant = "blue"', '+ tenant = "red"')
    for line in ('- {"amount": "12"}', '+ {"amount": 12}', *headers, '$.amount: "12" -> 12'):
        expect(page.locator("#review pre")).to_contain_text(line)
    require_accessible(page)
    sent(page, at)
    processors.start(changed(at.settings, "processor", handler=processors.handler(handle)))
    wait_until(lambda: handled, what="the edited record is handled")
    (record,) = handled
    job = page.url.rpartition("/")[2]
    assert (record.value, record.delivery) == (b'{"amount": 12}', 2)
    assert list(record.headers) == [("tenant", b"red"), HEADERS[1], ("WAITREG_EDITED", job.encode())]


@pytest.mark.guarantee("R1.16")
def test_what_is_not_touched_comes_back_byte_for_byte(window: Visit, at: Scenario) -> None:
    page = window.open(dead_letter(at, TEXT))
    expect(page.get_by_text("It begins with a byte order mark.")).to_be_hidden()
    page.get_by_role("button", name="Add a header").click()
    page.get_by_label("Name of the header").last.fill("note")
    reviewed(page)
    sent(page, at)
    (record,) = at.sent()
    assert record.value == TEXT
    original, _, _ = split_lineage(record.headers)
    assert original[:-1] == (*HEADERS, ("note", b""))


def test_what_is_no_text_is_edited_as_digits_or_as_a_file(window: Visit, at: Scenario, tmp_path: Path) -> None:
    page = window.open(dead_letter(at, b"a\r\n\0"))
    digits = page.locator("#hex")
    expect(digits).to_have_value("61 0d 0a 00")
    digits.fill("61 zz")
    page.get_by_role("button", name="Review").click()
    expect(page.locator("#review")).to_contain_text("expected hexadecimal digits")
    (refused,) = window.problems()
    assert "status of 400" in refused
    digits.fill("61 0d 0a ff")
    reviewed(page)
    expect(page.locator("#review")).to_contain_text("61 0d 0a ff")
    file = tmp_path / "value.bin"
    file.write_bytes(bytes(range(256)) * 5_000)
    page.locator("#kind").select_option("file")
    page.get_by_label("a file, as it is").set_input_files(file)
    expect(page.locator("#review")).to_be_empty()
    reviewed(page)
    sent(page, at)
    assert [record.value for record in at.sent()] == [file.read_bytes()]


def test_headers_are_moved_and_removed_and_a_value_is_made_null(window: Visit, at: Scenario) -> None:
    page = window.open(dead_letter(at, b"x"))
    page.get_by_role("button", name="Up").last.click()
    page.locator("#kind").select_option("null")
    page.get_by_label("Key: written as").select_option("hex")
    page.get_by_label("Key", exact=True).fill("00")
    reviewed(page)
    sent(page, at)
    (record,) = at.sent()
    assert (record.key, record.value) == (b"\0", None)
    assert split_lineage(record.headers)[0][:-1] == HEADERS[::-1]


def test_a_change_makes_a_review_void(window: Visit, at: Scenario) -> None:
    page = window.open(dead_letter(at, b"x"))
    text = page.get_by_label("text, with line feeds alone")
    text.fill("y")
    reviewed(page)
    text.fill("z")
    expect(page.locator("#review")).to_be_empty()


def test_without_scripts_the_page_names_the_command(browser: Browser, at: Scenario) -> None:
    path = dead_letter(at, b"x")
    with acting(at.settings, edit=True) as served:
        context = browser.new_context(java_script_enabled=False)
        page = context.new_page()
        page.goto(f"http://127.0.0.1:{served.port}{path}")
        expect(page.locator("noscript code")).to_have_text(f"waitreg dlq edit {at.place()} --value FILE")
        expect(page.locator("noscript code")).to_be_visible()
        expect(page.get_by_role("button", name="Review")).to_be_disabled()
        context.close()


def test_what_was_typed_is_not_left_without_a_question(window: Visit, at: Scenario) -> None:
    page = window.open(dead_letter(at, b"x"))
    text, address = page.get_by_label("text, with line feeds alone"), page.url
    text.click()
    page.keyboard.type(" typed")
    with page.expect_event("dialog") as asked:
        page.evaluate("location.assign('/help')")
    assert asked.value.type == "beforeunload"
    assert len(window.problems()) == 1, "the question, which was answered with no"
    expect(text).to_have_value("x typed")
    assert page.url == address
