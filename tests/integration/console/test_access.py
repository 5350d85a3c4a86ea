"""Who sees which rows and contents in the console, and who is let in."""

from __future__ import annotations

import logging
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from psycopg.types.json import Jsonb

from tests.integration.console.served_console import LONG, Get, every_page, served
from tests.support.database import Database
from tests.support.settings import changed
from wait_registry.errors import ConfigurationError
from wait_registry.settings.console import Authentication
from wait_registry.settings.tree import Settings
from waitreg.console.access.passwords import line_of
from waitreg.console.service import ConsoleService

PROXY, BASIC = Authentication.PROXY, Authentication.BASIC
BY_PROXY = {"authentication": PROXY, "proxies": ("127.0.0.0/8",), "groups_header": "X-Forwarded-Groups"}


@pytest.fixture(scope="module")
def written(incident: Settings, get: Get) -> dict[str, list[str]]:
    """What of the incident only its rows have: the addresses of its dead letters, its names, its contents."""
    with Database(incident.postgres.url.get_secret_value()).connect(incident) as connection:
        rows = connection.execute(
            'select topic, partition, "offset", consumer_group, original_topic, instance, wait_expiration_uuid, '
            "key, body, error_message, error_stacktrace from dead_letter"
        ).fetchall()
        waiting = connection.execute("select original_key, body from wait").fetchall()
    names = {str(name) for row in rows for name in row[3:7] if name}
    found = [text for row in rows for text in row[7:] if text] + [text for row in waiting for text in row if text]
    texts = [text.decode(errors="ignore") if isinstance(text, bytes) else text for text in found]
    # Not those that the questions have too.
    contents = {
        line for text in texts for line in text.splitlines() if len(line) > 10 and line not in get("/help").text
    }
    return {
        "places": [f"/dead-letters/{topic}/{partition}/{offset}" for topic, partition, offset, *_ in rows],
        "names": sorted(name for name in names if len(name) > 3),
        "contents": sorted(contents),
    }


def test_without_a_grant_to_a_group_nothing_of_it_is_shown(incident: Settings, written: dict[str, list[str]]) -> None:
    grants = ("bob operator other-*", "eve operator * other")
    with served(incident, **BY_PROXY, grants=grants) as get:
        for user in ("bob", "eve"):
            pages = every_page(get, written["places"], X_Forwarded_User=user)
            for path, text in pages.items():
                assert [name for name in (*written["names"], *written["contents"]) if name in text] == [], path
            assert get("/questions/quarantined", X_Forwarded_User=user).status == 403
            assert get(f"{written['places'][0]}/value", X_Forwarded_User=user).status == 404


def test_a_grant_to_one_group_shows_its_rows_alone(incident: Settings, get: Get) -> None:
    everything = get(f"/dead-letters?{LONG}&by=none").links("^/dead-letters/")
    groups = get(f"/dead-letters?{LONG}&by=group").links("by=none")
    seen: list[str] = []
    for link in groups:
        group = re.search(r"where=group%3D([^&]+)", link)
        if group is None:
            continue
        with served(incident, **BY_PROXY, grants=(f"group:support viewer {group[1]}",)) as of_group:
            page = of_group(f"/dead-letters?{LONG}&by=none", X_Forwarded_User="x", X_Forwarded_Groups="y, support")
            assert page.links("^/dead-letters/") == get(link).links("^/dead-letters/")
            seen += page.links("^/dead-letters/")
    assert seen
    assert set(seen) <= set(everything)


@pytest.mark.parametrize(
    ("console", "remedy"),
    [
        ({**BY_PROXY, "grants": ("alice viewer",)}, "needs the role support"),
        (
            {**BY_PROXY, "grants": ("alice operator",), "masks": ("* key", "* value", "* header:x")},
            "with the condition topic=TOPIC",
        ),
    ],
)
def test_hidden_contents_are_on_no_page(
    incident: Settings, written: dict[str, list[str]], console: dict[str, Any], remedy: str
) -> None:
    alice = {"X_Forwarded_User": "alice"}
    with served(incident, **console) as get:
        for path, text in every_page(get, written["places"], **alice).items():
            assert [content for content in written["contents"] if content in text] == [], path
        for path in ("/dead-letters?where=key%3Dx", "/dead-letters?where=message~x", "/questions/record_by_key?key=x"):
            refused = get(path, **alice)
            assert (refused.status, remedy in refused.text) == (403, True), path
        for content in written["contents"]:
            said = get(f"/records?find={quote(content)}", **alice).text
            assert "Nothing with exactly this ID" in said and remedy in said
        for place in written["places"]:
            assert get(place, **alice).status == 200
            assert get(f"{place}/value", **alice).status == 403


def test_a_mask_of_one_topic_lets_others_be_found_by_what_they_contain(incident: Settings) -> None:
    grants = ("alice operator", "bob viewer", "bob support payments orders")
    with served(incident, **BY_PROXY, grants=grants, masks=("refunds key",)) as get:

        def status(user: str, *conditions: str) -> int:
            where = "&".join(f"where={quote(one)}" for one in (*conditions, "message~e"))
            found = get(f"/dead-letters?{LONG}&by=none&{where}", X_Forwarded_User=user)
            by_message = get(f"/dead-letters?{LONG}&by=message&{where}", X_Forwarded_User=user)
            assert found.status == by_message.status
            return found.status

        assert status("alice", "topic=orders") == 200
        for conditions in ("", "topic=refunds", "topic=orders topic=refunds", "topic=ord*", "topic!=refunds"):
            assert status("alice", *conditions.split()) == 403, conditions
        assert status("bob", "topic=orders") == 403
        assert status("bob", "topic=orders", "group=payments") == 200
        assert status("bob", "topic=orders", "group=payments", "group~s") == 403


@pytest.mark.parametrize(
    "console", [{"grants": ("alice viewer",)}, {"grants": ("alice operator",), "masks": ("* value",)}]
)
def test_what_can_not_be_read_is_not_shown_with_contents(incident: Settings, console: dict[str, Any]) -> None:
    database = Database(incident.postgres.url.get_secret_value())
    insert = """
        insert into quarantine (topic, partition, "offset", record_time, error, key, headers)
        values ('wait', 3, 999, now(), 'secret-of-a-header', 'secret-of-a-key', '[["ORIGINAL_TOPIC", "b3JkZXJz"]]')
    """
    database.execute(incident, insert)
    with served(incident, **BY_PROXY, **console) as get:
        shown = every_page(get, [], X_Forwarded_User="alice")
        refused = get("/questions/quarantined", X_Forwarded_User="alice").status
    database.execute(incident, 'delete from quarantine where "offset" = 999')
    assert refused == 403
    assert [path for path, text in shown.items() if "secret-of" in text] == []


@pytest.fixture
def card(incident: Settings) -> Iterator[str]:
    """The address of a dead letter with the number of a card in its value, its message and a header."""
    headers = [["DLQ_ERROR_MESSAGE", b64encode(b"no card 4111").decode()], ["shop", b64encode(b"7").decode()]]
    database = Database(incident.postgres.url.get_secret_value())
    insert = """
        insert into dead_letter (
            topic, partition, "offset", dead_letter_time, key, body, error_message, original_topic, headers
        )
        values ('cards.dlq', 0, 7, now(), 'of-a-card', '{"card": 4111, "year": 30}', 'no card 4111', 'cards', %s)
    """
    database.execute(incident, insert, (Jsonb(headers),))
    yield "/dead-letters/cards.dlq/0/7"
    database.execute(incident, "delete from dead_letter where topic = 'cards.dlq'")


def test_the_log_says_who_saw_which_contents(incident: Settings, card: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "waitreg.console")
    with served(incident, **BY_PROXY, grants=("vera viewer", "sara support", "otto operator")) as get:
        for user in ("vera", "sara", "otto"):
            for path in (card, f"{card}/value", "/dead-letters/a/0/1"):
                get(path, X_Forwarded_User=user)
    assert [record.message for record in caplog.records if "contents" in record.message] == [
        "contents of cards.dlq:0:7 shown to sara",
        "contents of cards.dlq:0:7 shown to otto",
        "contents of cards.dlq:0:7 downloaded by otto",
    ]
    assert "4111" not in caplog.text and "of-a-card" not in caplog.text


def test_a_masked_path_hides_that_part_and_the_headers_that_quote_it(incident: Settings, card: str) -> None:
    with served(incident, **BY_PROXY, grants=("alice support",), masks=("car* value.card",)) as get:
        text = get(card, X_Forwarded_User="alice").text
    assert "4111" not in text
    assert '"year": 30' in text
    assert "DLQ_ERROR_MESSAGE" in text and "<dd>7</dd>" in text


@pytest.fixture
def basic(tmp_path: Path) -> dict[str, Any]:
    """Settings of a console that lets alice in with her password."""
    file = tmp_path / "passwords"
    file.write_text(f"{line_of('alice', 'right: ä')}\n")
    return {"authentication": BASIC, "users": str(file), "grants": ("alice viewer",)}


def credentials(name: str, password: str) -> str:
    return f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"


def test_passwords(incident: Settings, basic: dict[str, Any]) -> None:
    with served(incident, **basic) as get:
        asked = get("/")
        assert (asked.status, asked.headers["WWW-Authenticate"].split()[0]) == (401, "Basic")
        assert get("/", Authorization="Bearer x").status == 401
        for _ in range(2):
            assert get("/", Authorization=credentials("alice", "right: ä")).status == 200
        for number in range(5):
            assert get("/", Authorization=credentials("bob", str(number))).status == 401
        assert get("/", Authorization=credentials("bob", "5")).status == 429
        assert get("/", Authorization=credentials("alice", "wrong")).status == 401
        assert get("/", Authorization=credentials("alice", "right: ä")).status == 200
        assert get("/", Authorization="Basic \xff\xfe").status == 401


def test_of_wrong_passwords_at_the_same_time_no_more_are_compared(incident: Settings, basic: dict[str, Any]) -> None:
    def tried(password: str) -> int:
        return get("/", Authorization=credentials("alice", password)).status

    with served(incident, **basic) as get, ThreadPoolExecutor(16) as pool:
        assert list(pool.map(tried, ["right: ä"] * 16)) == [200] * 16
        assert Counter(pool.map(tried, map(str, range(16)))) == {401: 5, 429: 11}
        assert tried("right: ä") == 429


def test_a_proxy_must_be_known_and_name_one_person(incident: Settings) -> None:
    grants = ("alice viewer",)
    with served(incident, authentication=PROXY, proxies=("10.0.0.0/8",), grants=grants) as get:
        assert get("/", X_Forwarded_User="alice", X_Forwarded_For="10.0.0.1").status == 403
    with served(incident, **BY_PROXY, grants=grants) as get:
        assert get("/").status == 401
        assert [get("/", X_Forwarded_User=name).status for name in (" ", "alice\xff")] == [401, 401]
        assert get("/", X_Forwarded_User="alice").status == 200
        assert get("/", X_Forwarded_User="bob").status == 403


def test_a_name_of_a_proxy_is_one_person_however_it_is_spelled(incident: Settings) -> None:
    with served(incident, **BY_PROXY, grants=("Anna viewer",)) as get:
        pages = [get("/", X_Forwarded_User=name) for name in ("anna", "Anna", "ANNA")]
    assert [page.status for page in pages] == [200, 200, 200]
    assert all("anna" in page.text and "Anna" not in page.text for page in pages)


def test_a_name_is_no_group_and_groups_are_named_once(incident: Settings) -> None:
    with served(incident, **BY_PROXY, grants=("group:staff viewer",)) as get:
        assert get("/", X_Forwarded_User="group:staff").status == 403
        assert get("/", X_Forwarded_User="bob", X_Forwarded_Groups="x,staff").status == 200
    with served(incident, **{**BY_PROXY, "groups_header": ""}, grants=("group:staff viewer",)) as get:
        assert get("/", X_Forwarded_User="bob", X_Forwarded_Groups="staff").status == 403


@pytest.mark.parametrize(
    ("console", "says"),
    [
        ({"host": "0.0.0.0"}, "would see everything without a password"),
        ({"host": "console.example"}, "would see everything without a password"),
        ({"authentication": PROXY, "grants": ("a viewer",)}, "console.proxies isn't set"),
        ({**BY_PROXY, "proxies": ("10.0.0.1/8",), "grants": ("a viewer",)}, "has host bits set"),
        ({**BY_PROXY}, "console.grants is empty"),
        ({**BY_PROXY, "grants": ("alice king",)}, "is no grant"),
        ({**BY_PROXY, "grants": ("alice viewer",), "masks": ("orders",)}, "is no mask"),
        ({"authentication": BASIC, "grants": ("a viewer",)}, "console.users isn't set"),
        ({"authentication": BASIC, "grants": ("a viewer",), "host": "::"}, "without encryption"),
        ({"authentication": BASIC, "grants": ("a viewer",), "users": "/nowhere"}, "can't be read"),
    ],
)
def test_settings_that_let_in_too_many_are_refused(incident: Settings, console: dict[str, Any], says: str) -> None:
    with pytest.raises(ConfigurationError, match=re.escape(says)):
        ConsoleService(changed(incident, "console", **console))


def test_conditions_of_a_job_are_hidden_with_what_they_quote(incident: Settings, job: str) -> None:
    with served(incident, masks=("* key",)) as get:
        for path in ("/jobs", f"/jobs/{job}"):
            assert get(path).status == 200
            assert "4711" not in get(path).text


def test_what_our_services_say_stays_visible_beside_a_mask(incident: Settings, job: str) -> None:
    Database(incident.postgres.url.get_secret_value()).execute(
        incident, "update operation set conditions = '{group=payments,idempotency_key=abc}'"
    )
    with served(incident, masks=("* key",)) as get:
        assert re.search(r"expires 20.*, then dlq", get("/records?find=w-overdue").text)
        for path in ("/jobs", f"/jobs/{job}", "/audit"):
            page = get(path).text
            assert "test orders" in page and "group=payments idempotency_key=abc" in page, path
