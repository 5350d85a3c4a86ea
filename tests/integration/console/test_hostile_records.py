"""What clients wrote is shown as text on every page, and is never run by a browser."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Iterator
from json import dumps
from pathlib import Path
from urllib.parse import quote

import pytest

from tests.integration.console.addresses import PAGES, QUESTIONS
from tests.support.browser import Visit
from tests.support.database import Database
from wait_registry.settings.tree import Settings

ROWS = Path(__file__).with_name("hostile.sql")
LETTER = "/dead-letters/__proto__.constructor-..dlq/0/0"
# Wherever a page puts a text, one of these would leave the place: a quoted value, <pre>, <title>, a script.
MARKUP = (
    """'"></pre></title></textarea><img src=x onerror="window.hit=1"><svg onload="window.hit=1"></svg>"""
    """<script>window.hit=1;alert(1)</script><a href="javascript:window.hit=1">x</a>{{7*7}}${7*7}"""
)
FIELDS = (
    "error_class", "error_message", "stack_trace", "wait_id", "topic", "source_topic", "group", "instance", "key",
    "value", "state_by", "outcome", "waiting_id", "waiting_key", "waiting_group", "waiting_instance", "wait_topic",
    "job_group", "job_by", "job_reason", "job_condition", "job_changed_by", "job_changed_reason", "mark_by",
    "quarantine_error", "quarantine_key", "sweep_reason", "sweeper",
)  # fmt: skip
# What only markup that got through would make; the console's own scripts come from its own files.
MADE = "script:not([src^='/static/']), img, [onerror], [onload], a[href^=javascript]"


def canary(field: str) -> str:
    """Return the text of a field."""
    return f"canary_{field} {MARKUP}"


@pytest.fixture(scope="module")
def hostile(shop: Settings) -> None:
    """The rows of hostile.sql."""
    header = [[canary("header_name"), b64encode(canary("header_value").encode()).decode()]]
    values = {field: canary(field) for field in FIELDS} | {"headers": dumps(header)}
    with Database(shop.postgres.url.get_secret_value()).connect(shop) as connection:
        for statement in ROWS.read_text().split(";\n\n"):
            connection.execute(statement.encode(), values)


@pytest.fixture
def window(window: Visit, hostile: None) -> Iterator[Visit]:
    """A window in which nothing ran and nothing was forbidden when the test ends."""
    yield window
    assert window.page.evaluate("window.hit") is None


def test_every_field_is_shown_as_text(window: Visit) -> None:
    seen = set()
    asked = [f"/records?find={quote(canary('wait_id'))}", f"/records?find={quote(canary('key'))}", "/jobs/hostile"]
    asked += [f"/questions/instance_in_flight?instance={quote(canary('waiting_instance'))}"]
    for address in (
        LETTER,
        *PAGES,
        *QUESTIONS,
        "/dead-letters?by=none",
        "/dead-letters?by=instance,group,topic",
        *asked,
    ):
        page = window.open(address)
        text = page.locator("body").text_content() or ""
        seen |= {field for field in (*FIELDS, "header_name", "header_value") if f"canary_{field} '\"></pre>" in text}
        assert page.locator(MADE).count() == 0, address
        assert page.evaluate("window.hit") is None, address
    assert {*FIELDS, "header_name", "header_value"} - seen == set()


@pytest.mark.parametrize(
    ("address", "status"),
    [
        ("/dead-letters?where={}", 400),
        ("/dead-letters?where=group%3D{}&since=2h", 200),
        ("/dead-letters?by={}", 400),
        ("/dead-letters?by=none&after={}", 400),
        ("/dead-letters?since={}", 400),
        ("/dead-letters/{}/0/0", 404),
        ("/questions/{}", 404),
        ("/questions/stuck_now?minutes={}", 400),
        ("/questions/stuck_now?{}=1", 400),
        ("/records?find={}", 200),
        ("/records?find={}:0:0", 200),
        ("/{}", 404),
    ],
)
def test_nothing_of_an_address_is_run(window: Visit, address: str, status: int) -> None:
    page = window.open(address.format(quote(MARKUP, safe="")), status)
    if status != 200:  # a browser logs the status of each answer
        assert [problem for problem in window.problems() if "Failed to load resource" not in problem] == []
    assert page.locator(MADE).count() == 0


def test_a_value_is_downloaded_and_never_opened(window: Visit) -> None:
    page = window.open(LETTER)
    with page.expect_download() as given:
        page.get_by_role("link", name="Download").click()
    assert given.value.suggested_filename == "value.bin"
    assert Path(given.value.path()).read_bytes() == canary("value").encode()
    assert page.url.endswith(LETTER)
