"""The console's pages of an incident: each is there, says what the tables say, and leads to the next."""

from __future__ import annotations

import logging
import re
from base64 import b64encode
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any
from unittest.mock import ANY

import pytest
from psycopg.types.json import Jsonb

from console.access.grants import Person
from console.access.masks import Masks
from console.access.passwords import line_of
from console.page import Fixed
from console.pages import questions
from console.pages.routes import ROUTES
from console.service import ConsoleService
from console.tables import open_tables
from tests.support.console import NO_OUTCOMES, Answer, ask, running_console
from tests.support.database import Database
from wait_registry.errors import ConfigurationError
from wait_registry.postgres.query_file import load_query, query_names
from wait_registry.settings.console import Authentication
from wait_registry.settings.root import Settings

LONG = "since=365d"


Ask = Callable[..., Answer]


@contextmanager
def served(incident: Settings, **console: Any) -> Iterator[Ask]:
    """Serve the incident with these settings of the console; what is yielded gets a page."""
    with running_console(incident, **console) as port:
        yield partial(ask, port)


@pytest.fixture(scope="module")
def get(incident: Settings) -> Iterator[Ask]:
    """Get a page of a console that shows the incident to everybody."""
    with served(incident) as get:
        yield get


@pytest.mark.parametrize(
    "path", [route.path for route in ROUTES if "{" not in route.path and not isinstance(route.view, Fixed)]
)
def test_each_page_is_there_with_the_age_of_the_tables(get: Ask, path: str) -> None:
    answer = get(path)
    assert answer.status == 200, answer.text
    assert "tables of " in answer.text or "no tables yet" in answer.text


def test_a_probe_needs_neither_a_name_of_the_console_nor_a_password(incident: Settings, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text(line_of("alice", "a long one"))
    with served(incident, authentication=Authentication.BASIC, users=str(users), grants=("alice viewer",)) as ask:
        assert ask("/health/ready", Host="10.1.2.3:8088") == (200, ANY, b"ok\n")


@pytest.mark.parametrize("name", query_names())
def test_each_question_has_a_page(get: Ask, name: str) -> None:
    answer = get(f"/questions/{name}")
    assert answer.status == 200, answer.text
    assert f"/questions/{name}" in get("/help").text


def test_dead_letters_are_found_from_the_counts_to_the_bytes(get: Ask, incident: Settings) -> None:
    counted = get(f"/dead-letters?{LONG}")
    rows = {link for path in counted.links("by=none") for link in get(path).links(r"^/dead-letters/")}
    with Database(incident.postgres.url.get_secret_value()).connect(incident) as connection:
        places = connection.execute(
            'select topic, partition, "offset", body, error_message from dead_letter'
        ).fetchall()
    assert rows == {f"/dead-letters/{topic}/{partition}/{offset}" for topic, partition, offset, *_ in places}
    for topic, partition, offset, body, message in places:
        page = get(f"/dead-letters/{topic}/{partition}/{offset}")
        assert page.status == 200
        assert (message or "").split("\n")[0][:100] in page.text
        value = get(f"/dead-letters/{topic}/{partition}/{offset}/value")
        assert (value.status, value.body) == ((404, value.body) if body is None else (200, body))


def test_pages_of_the_list_follow_one_another(get: Ask, incident: Settings) -> None:
    with Database(incident.postgres.url.get_secret_value()).connect(incident) as connection:
        connection.execute(
            'insert into dead_letter (topic, partition, "offset", dead_letter_time) '
            "select 'many.dlq', 0, number, now() - make_interval(secs => number) from generate_series(1, 250) as number"
        )
        connection.commit()
    path, seen = "/dead-letters?where=dlq%3Dmany.dlq", []
    while path:
        page = get(path)
        seen += page.links("^/dead-letters/")
        path = next(iter(page.links("after=")), "")
    with Database(incident.postgres.url.get_secret_value()).connect(incident) as connection:
        connection.execute("delete from dead_letter where topic = 'many.dlq'")
        connection.commit()
    assert seen == [f"/dead-letters/many.dlq/0/{number}" for number in range(1, 251)]


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/dead-letters?where=nothing", 400, "is no condition"),
        ("/dead-letters?by=nothing", 400, "counted by state"),
        ("/dead-letters?by=none&after=x", 400, "is no cursor"),
        ("/dead-letters/a/0/1", 404, "no dead letter a:0:1"),
        ("/questions/nothing", 404, "no question 'nothing'"),
        ("/questions/stuck_now?minutes=x", 400, "invalid input syntax for type integer"),
        ("/questions/stuck_now?hours=1", 400, "has no parameter 'hours'"),
        ("/dead-letters?since=0001-01-01T00:00%2B05:00", 400, "expected a time ago"),
        ("/elsewhere", 404, "no such page"),
        ("/static/../service.py", 404, "no such page"),
    ],
)
def test_a_page_that_can_not_be_shown_says_why(get: Ask, path: str, status: int, says: str) -> None:
    answer = get(path)
    assert (answer.status, says in answer.text) == (status, True), answer.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_changed(get: Ask, method: str) -> None:
    assert get("/", method).status == 405


@pytest.mark.parametrize("host", ["attacker.example", "127.0.0.1.attacker.example:8088", ""])
def test_other_hosts_are_refused(get: Ask, host: str) -> None:
    assert get("/", Host=host).status == 421


@pytest.mark.parametrize("path", ["/", "/help", "/elsewhere", "/static/console.css", "/dead-letters?where=x"])
def test_every_answer_forbids_what_no_page_needs(get: Ask, path: str) -> None:
    headers = get(path).headers
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Server"] == "waitreg"


def test_what_a_producer_wrote_is_text_and_never_markup(get: Ask, incident: Settings) -> None:
    canary = "<script>alert(1)</script>\"'>&\x1b[31m\u202e"
    with Database(incident.postgres.url.get_secret_value()).connect(incident) as connection:
        connection.execute(
            'insert into dead_letter (topic, partition, "offset", dead_letter_time, key, body, headers, '
            "original_topic, original_partition, original_offset, consumer_group, instance, reason, delivery, "
            "error_class, error_message, error_stacktrace, wait_expiration_uuid, idempotency_key) "
            "values ('hostile.dlq', 0, 0, now(), %(b)s, %(b)s, '[]', %(t)s, 0, 0, %(t)s, %(t)s, 'failed', 1, "
            "%(t)s, %(t)s, %(t)s, %(t)s, %(t)s)",
            {"b": canary.encode(), "t": canary},
        )
        connection.commit()
        pages = ["/dead-letters", "/dead-letters?by=none", "/dead-letters/hostile.dlq/0/0", "/", "/timeline"]
        pages += [f"/questions/{name}" for name in query_names()]
        shown = {path: get(path).body.decode() for path in pages}
        connection.execute("delete from dead_letter where topic = 'hostile.dlq'")
        connection.commit()
    assert sum("&lt;script&gt;" in text for text in shown.values()) >= 4
    for path, text in shown.items():
        ours = [text.count(f'<script src="/static/{name}.js" defer></script>') for name in ("live", "keys")]
        assert (text.count("<script"), ours) == (2, [1, 1]), path
        assert "\x1b" not in text and "\u202e" not in text, path


BY_PROXY = {
    "authentication": Authentication.PROXY,
    "proxies": ("127.0.0.0/8",),
    "groups_header": "X-Forwarded-Groups",
}
_PAGES = [route.path for route in ROUTES if "{" not in route.path]


def every_page(get: Ask, places: Sequence[str], **headers: str) -> dict[str, str]:
    """Return the text of every page: those without values, each question, each dead letter, each record."""
    paths = [*_PAGES, *(f"/questions/{name}" for name in query_names()), f"/dead-letters?{LONG}&by=none", *places]
    return {path: get(path, **headers).text for path in paths}


@pytest.fixture(scope="module")
def written(incident: Settings, get: Ask) -> dict[str, list[str]]:
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


def test_somebody_without_a_grant_to_a_group_sees_nothing_of_it(
    incident: Settings, written: dict[str, list[str]]
) -> None:
    grants = ("bob operator other-*", "eve operator * other")
    with served(incident, **BY_PROXY, grants=grants) as get:
        for user in ("bob", "eve"):
            pages = every_page(get, written["places"], X_Forwarded_User=user)
            for path, text in pages.items():
                assert [name for name in (*written["names"], *written["contents"]) if name in text] == [], path
            assert get("/questions/quarantined", X_Forwarded_User=user).status == 403
            assert get(f"{written['places'][0]}/value", X_Forwarded_User=user).status == 404


def test_a_grant_to_one_group_shows_its_rows_alone(incident: Settings, get: Ask) -> None:
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
    "console",
    [
        {**BY_PROXY, "grants": ("alice viewer",)},
        {**BY_PROXY, "grants": ("alice operator",), "masks": ("* key", "* value", "* header:x")},
    ],
)
def test_hidden_contents_are_on_no_page(
    incident: Settings, written: dict[str, list[str]], console: dict[str, Any]
) -> None:
    alice = {"X_Forwarded_User": "alice"}
    with served(incident, **console) as get:
        for path, text in every_page(get, written["places"], **alice).items():
            assert [content for content in written["contents"] if content in text] == [], path
        for path in ("/dead-letters?where=key%3Dx", "/dead-letters?where=message~x", "/records?key=x"):
            assert get(path, **alice).status == 403, path
        for place in written["places"]:
            assert get(place, **alice).status == 200
            assert get(f"{place}/value", **alice).status == 403


@pytest.mark.parametrize(
    "console", [{"grants": ("alice viewer",)}, {"grants": ("alice operator",), "masks": ("* value",)}]
)
def test_what_can_not_be_read_is_not_shown_with_contents(incident: Settings, console: dict[str, Any]) -> None:
    with Database(incident.postgres.url.get_secret_value()).connect(incident) as connection:
        key, error = b"secret-of-a-key", "secret-of-a-header"
        connection.execute(
            'insert into quarantine (topic, partition, "offset", record_time, error, key, headers) '
            "values ('wait', 3, 999, now(), %s, %s, '[[\"ORIGINAL_TOPIC\", \"b3JkZXJz\"]]')",
            (error, key),
        )
        connection.commit()
        with served(incident, **BY_PROXY, **console) as get:
            shown = every_page(get, [], X_Forwarded_User="alice")
            refused = get("/questions/quarantined", X_Forwarded_User="alice").status
        connection.execute('delete from quarantine where "offset" = 999')
        connection.commit()
    assert refused == 403
    assert [path for path, text in shown.items() if "secret-of" in text] == []


def test_no_rollback_lifts_the_time_limit(incident: Settings) -> None:
    with open_tables(incident, lambda _: "", NO_OUTCOMES, Masks(), lambda _: None, Person("x", ())) as tables:
        tables.connection.rollback()
        assert tables.connection.execute("show statement_timeout").fetchone() == ("5s",)
        tables.connection.rollback()
        assert tables.connection.execute("show transaction_read_only").fetchone() == ("on",)


def test_a_masked_path_hides_that_part_alone(incident: Settings) -> None:
    with Database(incident.postgres.url.get_secret_value()).connect(incident) as connection:
        connection.execute(
            'insert into dead_letter (topic, partition, "offset", dead_letter_time, body, original_topic) values '
            '(\'cards.dlq\', 0, 0, now(), \'{"card": {"number": "4111", "year": 30}}\', \'cards\')'
        )
        connection.commit()
        with served(incident, **BY_PROXY, grants=("alice support",), masks=("car* value.card.number",)) as get:
            text = get("/dead-letters/cards.dlq/0/0", X_Forwarded_User="alice").text
        connection.execute("delete from dead_letter where topic = 'cards.dlq'")
        connection.commit()
    assert "4111" not in text
    assert '"year": 30' in text


def test_the_log_says_who_saw_contents_of_which_dead_letter(
    incident: Settings, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "console")
    with Database(incident.postgres.url.get_secret_value()).connect(incident) as connection:
        connection.execute(
            'insert into dead_letter (topic, partition, "offset", dead_letter_time, key, body, error_message) values '
            "('cards.dlq', 0, 7, now(), 'of-a-card', '4111', '4111')"
        )
        connection.commit()
        with served(incident, **BY_PROXY, grants=("vera viewer", "sara support", "otto operator")) as get:
            for user in ("vera", "sara", "otto"):
                for path in ("/dead-letters/cards.dlq/0/7", "/dead-letters/cards.dlq/0/7/value", "/dead-letters/a/0/1"):
                    get(path, X_Forwarded_User=user)
        connection.execute("delete from dead_letter where topic = 'cards.dlq'")
        connection.commit()
    assert [record.message for record in caplog.records if "contents" in record.message] == [
        "contents of cards.dlq:0:7 shown to sara",
        "contents of cards.dlq:0:7 shown to otto",
        "contents of cards.dlq:0:7 downloaded by otto",
    ]
    assert "4111" not in caplog.text and "of-a-card" not in caplog.text


def test_headers_that_quote_hidden_contents_are_hidden(incident: Settings) -> None:
    with Database(incident.postgres.url.get_secret_value()).connect(incident) as connection:
        connection.execute(
            'insert into dead_letter (topic, partition, "offset", dead_letter_time, body, original_topic, headers) '
            "values ('cards.dlq', 0, 0, now(), '{\"card\": 4111}', 'cards', %s)",
            (Jsonb([["DLQ_ERROR_MESSAGE", b64encode(b"no card 4111").decode()], ["shop", b64encode(b"7").decode()]]),),
        )
        connection.commit()
        with served(incident, **BY_PROXY, grants=("alice support",), masks=("cards value.card",)) as get:
            text = get("/dead-letters/cards.dlq/0/0", X_Forwarded_User="alice").text
        connection.execute("delete from dead_letter where topic = 'cards.dlq'")
        connection.commit()
    assert "4111" not in text
    assert "DLQ_ERROR_MESSAGE" in text and "<dd>7</dd>" in text


def test_passwords(incident: Settings, tmp_path: Path) -> None:
    file = tmp_path / "passwords"
    file.write_text(f"{line_of('alice', 'right: ä')}\n")
    basic = {"authentication": Authentication.BASIC, "users": str(file), "grants": ("alice viewer",)}

    def credentials(name: str, password: str) -> str:
        return f"Basic {b64encode(f'{name}:{password}'.encode()).decode()}"

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


def test_of_wrong_passwords_at_the_same_time_no_more_are_compared(incident: Settings, tmp_path: Path) -> None:
    file = tmp_path / "users"
    file.write_text(f"{line_of('alice', 'right')}\n")
    basic = {"authentication": Authentication.BASIC, "users": str(file), "grants": ("alice viewer",)}

    def tried(password: str) -> int:
        return get("/", Authorization=f"Basic {b64encode(f'alice:{password}'.encode()).decode()}").status

    with served(incident, **basic) as get, ThreadPoolExecutor(16) as pool:
        assert list(pool.map(tried, ["right"] * 16)) == [200] * 16
        assert Counter(pool.map(tried, map(str, range(16)))) == {401: 5, 429: 11}


def test_a_proxy_must_be_known_and_name_one_person(incident: Settings) -> None:
    grants = ("alice viewer",)
    with served(incident, authentication=Authentication.PROXY, proxies=("10.0.0.0/8",), grants=grants) as get:
        assert get("/", X_Forwarded_User="alice", X_Forwarded_For="10.0.0.1").status == 403
    with served(incident, **BY_PROXY, grants=grants) as get:
        assert get("/").status == 401
        assert get("/", X_Forwarded_User=" ").status == 401
        assert get("/", X_Forwarded_User="alice").status == 200
        assert get("/", X_Forwarded_User="bob").status == 403


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
        ({"authentication": Authentication.PROXY, "grants": ("a viewer",)}, "console.proxies isn't set"),
        ({**BY_PROXY, "proxies": ("10.0.0.1/8",), "grants": ("a viewer",)}, "has host bits set"),
        ({**BY_PROXY}, "console.grants is empty"),
        ({**BY_PROXY, "grants": ("alice king",)}, "is no grant"),
        ({**BY_PROXY, "grants": ("alice viewer",), "masks": ("orders",)}, "is no mask"),
        ({"authentication": Authentication.BASIC, "grants": ("a viewer",)}, "console.users isn't set"),
        ({"authentication": Authentication.BASIC, "grants": ("a viewer",), "host": "::"}, "without encryption"),
        (
            {"authentication": Authentication.BASIC, "grants": ("a viewer",), "users": "/nowhere"},
            "can't be read",
        ),
    ],
)
def test_settings_that_let_in_too_many_are_refused(incident: Settings, console: dict[str, Any], says: str) -> None:
    settings = incident.model_copy(update={"console": incident.console.model_copy(update=console)})
    with pytest.raises(ConfigurationError, match=re.escape(says)):
        ConsoleService(settings, lambda _: "", NO_OUTCOMES)


def test_one_slow_question_does_not_take_its_page(incident: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = replace(load_query("overdue"), sql="select pg_sleep(10)")
    monkeypatch.setattr(questions, "load_query", lambda name: slow if name == "overdue" else load_query(name))
    with served(incident, page_timeout_s=1.0) as get:
        answer = get("/")
    assert answer.status == 200
    assert answer.text.count("This took too long.") == 1
    assert "/questions/dead_letters_by_reason" in answer.text


@pytest.mark.parametrize(("destination", "status"), [("document", 200), ("image", 403), ("empty", 403)])
def test_another_site_may_only_link_to_a_page(get: Ask, destination: str, status: int) -> None:
    assert get("/help", Sec_Fetch_Site="cross-site", Sec_Fetch_Dest=destination).status == status
    assert get("/help", Sec_Fetch_Site="same-origin", Sec_Fetch_Dest="image").status == 200


@pytest.fixture
def job(incident: Settings) -> Iterator[str]:
    """A job that archived dead letters, whose conditions quote a key."""
    with Database(incident.postgres.url.get_secret_value()).connect(incident) as connection:
        connection.execute(
            """
            insert into operation (
                job, kind, consumer_group, state, requested_at, requested_by, authenticated, via, reason, conditions,
                allowed, target, rate, ends, expected, counts, changed_at, changed_by
            )
            values (
                'job-1', 'archive', 'payments', 'finished', now(), 'anna', false, 'command', 'test orders',
                '{key=4711}', '{}', 'redelivery', 10, '{}', '{}', '{"archived": 3, "conflict": 1}', now(), 'anna'
            )
            """
        )
    yield "job-1"
    with Database(incident.postgres.url.get_secret_value()).connect(incident) as connection:
        connection.execute("delete from operation")


def test_jobs_say_who_did_what_and_why(get: Ask, job: str) -> None:
    page = get("/jobs")
    assert page.links("^/jobs/") == [f"/jobs/{job}"]
    one = get(f"/jobs/{job}")
    for text in ("anna", "archive", "test orders", "key=4711", "archived: 3, conflict: 1"):
        assert text in page.text and text in one.text
    assert get("/jobs/another").status == 404


def test_conditions_of_a_job_are_hidden_with_what_they_quote(incident: Settings, job: str) -> None:
    with served(incident, masks=("* key",)) as get:
        for path in ("/jobs", f"/jobs/{job}"):
            assert get(path).status == 200
            assert "4711" not in get(path).text


def test_what_our_services_say_stays_visible_beside_a_mask(incident: Settings, job: str) -> None:
    with Database(incident.postgres.url.get_secret_value()).connect(incident) as connection:
        connection.execute("update operation set conditions = '{group=payments,idempotency_key=abc}'")
    with served(incident, masks=("* key",)) as get:
        assert re.search(r"expires 20.*, then dlq", get("/records?id=w-overdue").text)
        for path in ("/jobs", f"/jobs/{job}", "/audit"):
            page = get(path).text
            assert "test orders" in page and "group=payments idempotency_key=abc" in page, path
