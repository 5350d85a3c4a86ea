"""The console's pages of an incident: each is there, says what the tables say, and leads to the next."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from unittest.mock import ANY
from urllib.parse import urlencode

import pytest

from tests.integration.console.served_console import LONG, Get, served
from tests.support.database import Database
from wait_registry.postgres.query_file import load_query, query_names
from wait_registry.settings.console import Authentication
from wait_registry.settings.tree import Settings
from waitreg.console.access.grants import Person
from waitreg.console.access.passwords import line_of
from waitreg.console.page import Fixed
from waitreg.console.pages import questions
from waitreg.console.pages.routes import ROUTES
from waitreg.console.tables import TablesReader


@pytest.mark.parametrize(
    "path", [route.path for route in ROUTES if "{" not in route.path and not isinstance(route.view, Fixed)]
)
def test_each_page_is_there_with_the_age_of_the_tables(get: Get, path: str) -> None:
    answer = get(path)
    assert answer.status == 200, answer.text
    assert "tables of " in answer.text or "no tables yet" in answer.text


def test_a_probe_needs_neither_a_name_of_the_console_nor_a_password(incident: Settings, tmp_path: Path) -> None:
    users = tmp_path / "users"
    users.write_text(line_of("alice", "a long one"))
    with served(incident, authentication=Authentication.BASIC, users=str(users), grants=("alice viewer",)) as ask:
        assert ask("/health/ready", Host="10.1.2.3:8088") == (200, ANY, b"ok\n")


@pytest.mark.parametrize("name", query_names())
def test_each_question_has_a_page(get: Get, name: str) -> None:
    answer = get(f"/questions/{name}")
    assert answer.status == 200, answer.text
    assert f"/questions/{name}" in get("/help").text


def test_dead_letters_are_found_from_the_counts_to_the_bytes(get: Get, incident: Settings) -> None:
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


def test_each_count_of_what_came_lately_leads_to_its_dead_letters(get: Get, incident: Settings) -> None:
    counts = get("/questions/dead_letters_by_reason?hours=9000").links("since=")
    assert counts
    found = [link for path in counts for link in get(path).links("^/dead-letters/")]
    with Database(incident.postgres.url.get_secret_value()).connect(incident) as connection:
        expected = connection.execute("select count(*) from dead_letter").fetchone()
    assert expected == (len(found),) == (len(set(found)),)


def test_a_record_leads_to_its_dead_letter(get: Get, incident: Settings) -> None:
    with Database(incident.postgres.url.get_secret_value()).connect(incident) as connection:
        key, *place = connection.execute(
            'select wait_registry_key(key), topic, partition, "offset" from dead_letter '
            "where wait_expiration_uuid is not null and key is not null limit 1"
        ).fetchone() or ("none",)
    page = get(f"/records?{urlencode({'find': f' {key} '})}")
    link = "/dead-letters/{}/{}/{}".format(*place)
    assert link in page.links("^/dead-letters/")
    of_place = get(f"/records?{urlencode({'find': '{}:{}:{}'.format(*place)})}")
    assert link in of_place.links("^/dead-letters/")
    assert "no trace" not in of_place.text


def test_pages_of_the_list_follow_one_another(get: Get, incident: Settings) -> None:
    Database(incident.postgres.url.get_secret_value()).execute(
        incident,
        'insert into dead_letter (topic, partition, "offset", dead_letter_time) '
        "select 'many.dlq', 0, number, now() - make_interval(secs => number) from generate_series(1, 250) as number",
    )
    path, seen = "/dead-letters?where=dlq%3Dmany.dlq", []
    while path:
        page = get(path)
        seen += page.links("^/dead-letters/")
        path = next(iter(page.links("after=")), "")
    Database(incident.postgres.url.get_secret_value()).execute(
        incident, "delete from dead_letter where topic = 'many.dlq'"
    )
    assert seen == [f"/dead-letters/many.dlq/0/{number}" for number in range(1, 251)]


@pytest.mark.parametrize(
    ("path", "status", "says"),
    [
        ("/dead-letters?where=nothing", 400, "is no condition"),
        ("/dead-letters?by=nothing", 400, "counted by state"),
        ("/dead-letters?by=none&after=x", 400, "is no cursor"),
        ("/dead-letters/a/0/1", 404, "no dead letter a:0:1"),
        ("/questions/nothing", 404, "no question 'nothing'"),
        ("/questions/stuck_now?minutes=x", 400, "minutes: 'x' isn't a whole number"),
        ("/questions/stuck_now?minutes=9999999999", 400, "minutes: '9999999999' is too large"),
        ("/records?find=a%00", 400, "id: 'a\\x00' isn't text without NUL"),
        ("/questions/burst_timeline?from=soon", 400, "'soon' isn't a time, such as 2026"),
        ("/questions/burst_timeline?from=soon+ago", 400, "'soon ago' isn't a time, such as 2026"),
        ("/questions/burst_timeline?from=2026-13-01", 400, "'2026-13-01' isn't a time, such as 2026"),
        ("/questions/stuck_now?hours=1", 400, "has no parameter 'hours'"),
        ("/dead-letters?since=0001-01-01T00:00%2B05:00", 400, "expected a time ago"),
        ("/records?find=unknown", 200, "Nothing with exactly this ID or key waits or has failed."),
        ("/records?find=orders:0:999999", 200, "no trace"),
        ("/elsewhere", 404, "no such page"),
        ("/static/../service.py", 404, "no such page"),
    ],
)
def test_a_page_that_can_not_be_shown_says_why(get: Get, path: str, status: int, says: str) -> None:
    answer = get(path)
    assert (answer.status, says in answer.text) == (status, True), answer.text


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS"])
def test_nothing_can_be_changed(get: Get, method: str) -> None:
    assert get("/", method).status == 405


@pytest.mark.parametrize("host", ["attacker.example", "127.0.0.1.attacker.example:8088", ""])
def test_other_hosts_are_refused(get: Get, host: str) -> None:
    assert get("/", Host=host).status == 421


@pytest.mark.parametrize("path", ["/", "/help", "/elsewhere", "/static/console.css", "/dead-letters?where=x"])
def test_every_answer_forbids_what_no_page_needs(get: Get, path: str) -> None:
    headers = get(path).headers
    assert "default-src 'none'" in headers["Content-Security-Policy"]
    assert "unsafe" not in headers["Content-Security-Policy"]
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"
    assert headers["Server"] == "waitreg"


def test_no_rollback_lifts_the_time_limit(incident: Settings) -> None:
    with TablesReader(incident).open(Person("x", ())) as tables:
        tables.connection.rollback()
        assert tables.connection.execute("show statement_timeout").fetchone() == ("5s",)
        tables.connection.rollback()
        assert tables.connection.execute("show transaction_read_only").fetchone() == ("on",)


def test_one_slow_question_does_not_take_its_page(incident: Settings, monkeypatch: pytest.MonkeyPatch) -> None:
    slow = replace(load_query("overdue"), sql="select pg_sleep(10)")
    monkeypatch.setattr(questions, "load_query", lambda name: slow if name == "overdue" else load_query(name))
    with served(incident, page_timeout_s=1.0) as get:
        answer = get("/")
    assert answer.status == 200
    assert answer.text.count("This took too long.") == 1
    assert "/questions/dead_letters_by_reason" in answer.text


@pytest.mark.parametrize(("destination", "status"), [("document", 200), ("image", 403), ("empty", 403)])
def test_another_site_may_only_link_to_a_page(get: Get, destination: str, status: int) -> None:
    assert get("/help", Sec_Fetch_Site="cross-site", Sec_Fetch_Dest=destination).status == status
    assert get("/help", Sec_Fetch_Site="same-origin", Sec_Fetch_Dest="image").status == 200


def test_jobs_say_who_did_what_and_why(get: Get, job: str) -> None:
    page = get("/jobs")
    assert page.links("^/jobs/") == [f"/jobs/{job}"]
    one = get(f"/jobs/{job}")
    for text in ("anna", "archive", "test orders", "key=4711", "archived: 3, conflict: 1"):
        assert text in page.text and text in one.text
    assert get("/jobs/another").status == 404
