"""Who may act in the console, and what it refuses: each address for each role, in each mode."""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Final

import pytest

from tests.integration.console.acting import BY_PROXY, OWN_PAGE, Browser, acting
from tests.integration.redrive.scenario import Scenario
from tests.support.console import Answer, running_console
from tests.support.jobs import ask_for_approval
from wait_registry.records.operation import Mark, Requested
from waitreg.console.actions import tokens as signed
from waitreg.console.pages.routes import ACTING, EDITING, ROUTES, Route

GRANTS: Final = ("vera viewer", "sue support", "olga operator", "ada admin", "otto operator other-group")
PEOPLE: Final = ("nina", "vera", "sue", "olga", "ada", "otto")
ALL_SEE: Final = (403, 200, 200, 200, 200, 200)
MAY_CHANGE: Final = (403, 403, 403, 303, 303, 403)
MAY_EDIT: Final = (403, 403, 403, 200, 200, 404)
# What each of `PEOPLE` gets from each address of a console that may act. For otto, there are no such dead letters; a
# form for a start is for those alone whose dry run it was.
EXPECTED: Final = {
    "GET /": ALL_SEE,
    "GET /instances": ALL_SEE,
    "GET /timeline": ALL_SEE,
    "GET /system": ALL_SEE,
    "GET /questions/{name}": ALL_SEE,
    "GET /records": ALL_SEE,
    "GET /dead-letters": ALL_SEE,
    "GET /dead-letters/{topic}/{partition}/{offset}": (403, 200, 200, 200, 200, 404),
    "GET /dead-letters/{topic}/{partition}/{offset}/value": (403, 403, 403, 200, 200, 404),
    "GET /jobs": ALL_SEE,
    "GET /jobs/{job}": (403, 200, 200, 200, 200, 404),
    "GET /audit": ALL_SEE,
    "GET /help": ALL_SEE,
    "GET /{kind}/new": (403, 403, 403, 200, 200, 400),
    "POST /{kind}/new": (403, 400, 400, 303, 303, 400),
    "POST /dead-letters/{topic}/{partition}/{offset}/reveal": (403, 403, 403, 403, 303, 404),
    "POST /jobs/{job}/approve": MAY_CHANGE,
    "POST /jobs/{job}/rate": MAY_CHANGE,
    "POST /jobs/{job}/pause": MAY_CHANGE,
    "POST /jobs/{job}/resume": MAY_CHANGE,
    "POST /jobs/{job}/cancel": MAY_CHANGE,
    "GET /edit/{topic}/{partition}/{offset}": MAY_EDIT,
    "PUT /edit/{topic}/{partition}/{offset}": MAY_EDIT,
    "PUT /edit/{topic}/{partition}/{offset}/send": (403, 403, 403, 303, 303, 404),
}
# A dead letter of the same group and another topic, and one of another group.
OTHERS: Final = """
insert into dead_letter (
    topic, partition, "offset", dead_letter_time, consumer_group, original_topic, original_partition, original_offset,
    reason, wait_expiration_uuid
)
values
    ('others.dlq', 0, 0, now(), %(group)s, 'others', 0, 0, 'failed', 'others'),
    ('others.dlq', 0, 1, now(), 'other', 'others', 0, 1, 'failed', 'other')
"""
EVERY_ROUTE: Final[tuple[Route[Any], ...]] = (*ROUTES, *ACTING, *EDITING)
# What varies in addresses, for requests that are refused before it counts.
ANY: Final = {"topic": "orders.dlq", "partition": "0", "offset": "0", "job": "job-1", "kind": "redrive"}
_VARYING: Final = re.compile(r"\{(\w+)(?::(?:[^{}]|\{[^{}]*\})*)?\}")


@pytest.fixture
def dead(at: Scenario) -> Scenario:
    """A group with dead letters that the tables show."""
    at.show_dead_letters(3)
    return at


def name_of(route: Route[Any]) -> str:
    """Return the key of a route in `EXPECTED`."""
    path = _VARYING.sub(r"{\1}", route.path)
    return f"{route.method} {path}"


def address_of(route: Route[Any], values: Mapping[str, str]) -> str:
    """Return the address of a route for these values."""
    return _VARYING.sub(lambda found: values[found[1]], route.path)


def values_of(at: Scenario, job: str) -> dict[str, str]:
    """Return what varies in addresses, for the first dead letter, and its key."""
    (record,) = (one for one in at.topics.read(at.place().topic) if one.place == at.place())
    topic, partition, offset = map(str, at.place())
    place = {"topic": topic, "partition": partition, "offset": offset, "key": (record.key or b"").decode()}
    return {**place, "name": "stuck_now", "kind": "redrive", "job": job}


def asked(browser: Browser, route: Route[Any], values: Mapping[str, str], group: str, token: str) -> Answer:
    """Return the answer to the request that a page of the console makes for a route."""
    path = address_of(route, values)
    if route.method == "GET":
        return browser.dry_run(f"group={group}") if path.endswith("/new") else browser.get(path)
    if route.method == "PUT":
        answer = browser.put(path, b"edited", key=["text", values["key"]], token=token, reason="fixed")
    else:
        answer = browser.post(path, [("token", token), ("reason", "fixed"), ("rate", "20")])
    if answer.status == 303 and not path.endswith(("reveal", "pause", "rate", "cancel")):
        browser.wait_state(answer.headers["Location"], "finished")
    return answer


def test_each_address_for_each_role(dead: Scenario) -> None:
    own = {f"{route}-{who}" for route in ("approve", "pause", "resume", "rate", "cancel") for who in ("olga", "ada")}
    for job in ("of-all", *sorted(own)):
        if job.startswith("approve-"):
            ask_for_approval(dead.settings, dead.request(job=job).job)
        else:
            dead.pause(dead.request(job=job).job)
    dead.read_operations()
    found: dict[str, tuple[int, ...]] = {}
    with acting(dead.settings, **BY_PROXY, grants=GRANTS, edit=True) as served:
        browsers = {who: Browser(served.port, X_Forwarded_User=who) for who in PEOPLE}
        acting_as = {who: browsers[who] for who in ("olga", "ada")}
        tokens = {who: browser.dry_run(f"group={dead.group}").token for who, browser in acting_as.items()}
        values = values_of(dead, "of-all")
        path, key = address_of(EDITING[1], values), ["text", values["key"]]
        edits = {who: browser.put(path, b"edited", key=key).token for who, browser in acting_as.items()}
        for route in EVERY_ROUTE:
            action = route.path.rpartition("/")[2]
            statuses = []
            for who, browser in browsers.items():
                values = values_of(dead, job if (job := f"{action}-{who}") in own else "of-all")
                made = edits if route.method == "PUT" else tokens
                token = made.get(who, made["ada"])
                statuses.append(asked(browser, route, values, dead.group, token).status)
            found[name_of(route)] = tuple(statuses)
    assert found == EXPECTED
    assert {mark.by for mark in dead.events() if isinstance(mark, Mark)} <= {"olga", "ada", "anna"}


@pytest.mark.parametrize("method", ["GET", "HEAD"])
def test_what_only_asks_changes_nothing(dead: Scenario, method: str) -> None:
    dead.pause(dead.request(job="of-all").job)
    dead.read_operations()
    before = dead.events()
    with acting(dead.settings, edit=True) as browser:
        for route in EVERY_ROUTE:
            path = f"{address_of(route, values_of(dead, 'of-all'))}?where=group%3D{dead.group}&allow=no_members"
            assert browser.ask(method, path, **OWN_PAGE).status in (200, 400, 405), path
    assert dead.events() == before
    assert dead.sent() == []


def test_a_console_that_only_reads_has_no_address_that_acts(dead: Scenario) -> None:
    with running_console(dead.settings, edit=True) as port:
        browser = Browser(port)
        for route in (*ACTING, *EDITING):
            path = address_of(route, values_of(dead, "job-1"))
            assert (browser.post(path).status, browser.put(path).status, browser.get(path).status) == (404,) * 3, path
        for page in ROUTES:
            assert browser.post(address_of(page, values_of(dead, "job-1"))).status == 405
        for path in ("/dead-letters", f"/dead-letters/{dead.place().topic}/0/0", "/jobs"):
            assert "/new" not in browser.get(path).text
    assert dead.events() == []


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Sec_Fetch_Site": "cross-site"},
        {"Sec_Fetch_Site": "same-site"},
        {"Sec_Fetch_Site": "none"},
        {"Sec_Fetch_Site": "cross-site", "Origin": "{own}"},
        {"Origin": "null"},
        {"Origin": "http://attacker.example"},
        {"Origin": "{own}.attacker.example"},
        {"Origin": "http://localhost:1"},
        {"Referer": "{own}/jobs"},
        {"Sec_Fetch_Site": "same-origin", "Host": "attacker.example"},
    ],
    ids=str,
)
def test_no_page_of_another_site_can_act(at: Scenario, headers: dict[str, str]) -> None:
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    with acting(at.settings, edit=True) as browser:
        own = f"http://127.0.0.1:{browser.port}"
        sent = {name: value.format(own=own) for name, value in headers.items()}
        for route in ACTING:
            if route.method != "GET":
                path = address_of(route, ANY)
                status = browser.ask("POST", path, "token=x", **form, **sent).status
                assert status == (421 if "Host" in headers else 403), path
                assert browser.ask("POST", path, "token=x", **form, Origin=own).status == 400
        for route in EDITING[1:]:
            path = address_of(route, {"topic": "orders.dlq", "partition": "0", "offset": "0"})
            assert browser.put(path, b"", sent).status == (421 if "Host" in headers else 403), path
            assert browser.put(path, b"", {"Origin": own}).status == 404


def test_behind_tls_the_origin_has_tls(at: Scenario) -> None:
    form = {"Content_Type": "application/x-www-form-urlencoded"}
    with acting(at.settings, behind_tls=True) as browser:
        for scheme, status in (("http", 403), ("https", 400)):
            origin = f"{scheme}://127.0.0.1:{browser.port}"
            assert browser.ask("POST", "/redrive/new", "token=x", **form, Origin=origin).status == status


def test_a_form_of_another_person_or_time_starts_nothing(dead: Scenario, monkeypatch: pytest.MonkeyPatch) -> None:
    with acting(dead.settings, **BY_PROXY, grants=("* operator",)) as served:
        olga, eve = (Browser(served.port, X_Forwarded_User=who) for who in ("olga", "eve"))
        token = olga.dry_run(f"group={dead.group}").token
        tampered = f"{token[:40]}{'A' if token[40] != 'A' else 'B'}{token[41:]}"
        for person, given, says in (
            (eve, token, "for another person"),
            (olga, tampered, "didn't make this form"),
            (olga, token[:-9], "didn't make this form"),
            (olga, "ä", "didn't make this form"),
            (olga, "", "didn't make this form"),
        ):
            refused = person.post("/redrive/new", [("token", given), ("reason", "fixed")])
            assert (refused.status, says in refused.text) == (400, True), refused.text
        for reason in ("", "  ", "x" * 501, "two\nlines", "nul\0"):
            refused = olga.post("/redrive/new", [("token", token), ("reason", reason)])
            assert (refused.status, "give a reason" in refused.text) == (400, True), refused.text
        monkeypatch.setattr(signed, "DRY_RUN_S", -1.0)
        refused = olga.post("/redrive/new", [("token", token), ("reason", "fixed")])
        assert (refused.status, "older than 15 minutes" in refused.text) == (400, True)
    assert dead.events() == []


def test_who_has_lost_the_role_since_the_dry_run_starts_nothing(dead: Scenario) -> None:
    groups = {"groups_header": "X-Forwarded-Groups"}
    with acting(dead.settings, **BY_PROXY, **groups, grants=("* viewer", "group:ops operator")) as served:
        before = Browser(served.port, X_Forwarded_User="olga", X_Forwarded_Groups="ops")
        after = Browser(served.port, X_Forwarded_User="olga")
        token = before.dry_run(f"group={dead.group}").token
        refused = after.post("/redrive/new", [("token", token), ("reason", "fixed")])
        assert (refused.status, "you need the role operator" in refused.text) == (403, True)
    assert dead.events() == []


def test_no_filter_reaches_beyond_the_grants(dead: Scenario) -> None:
    dead.database.execute(dead.settings, OTHERS, {"group": dead.group})
    grants = ("* viewer", f"olga operator {dead.group} {dead.input}", "otto operator other")
    with acting(dead.settings, **BY_PROXY, grants=grants) as served:
        olga, otto = (Browser(served.port, X_Forwarded_User=who) for who in ("olga", "otto"))
        for conditions in (
            (f"group={dead.group}",),
            (f"group={dead.group}", "topic=*"),
            (f"group={dead.group}", f"topic={dead.input}", "topic=others", "topic~o"),
        ):
            shown = olga.dry_run(*conditions)
            assert shown.status == 200, shown.text
            assert "Redrive 3 dead letters" in shown.text
            assert f"<code>topic={dead.input}</code>" in shown.text and "<code>topic=others" not in shown.text
            assert "No others are part of this" in shown.text
        assert olga.dry_run(f"group={dead.group}", "topic=others").status == 403
        assert olga.dry_run("group=other").status == 403
        assert otto.dry_run(f"group={dead.group}").status == 403
        several = olga.dry_run("topic=*")
        assert (several.status, "several groups" in several.text) == (400, True)
        job = olga.start(olga.dry_run(f"group={dead.group}", "topic=*"))
        assert "redriven: 3" in olga.wait_state(job, "finished").text
    assert len(dead.sent()) == 3


def test_who_sees_one_topic_sees_their_own_jobs_alone(dead: Scenario) -> None:
    dead.pause(dead.request(job="of-all").job)
    grants = (f"pia operator {dead.group} {dead.input}", f"quinn operator {dead.group} {dead.input}")
    with acting(dead.settings, **BY_PROXY, grants=grants) as served:
        pia, quinn = (Browser(served.port, X_Forwarded_User=who) for who in ("pia", "quinn"))
        job = pia.start(pia.dry_run(f"group={dead.group}"))
        assert quinn.get(job).status == 404
        pia.wait_state(job, "finished")
        dead.read_operations()
        assert f'href="{job}"' in pia.get("/jobs").text and "of-all" not in pia.get("/jobs").text
        assert "finished" in pia.get(job).text and pia.get("/jobs/of-all").status == 404
        assert "No jobs that you may see." in quinn.get("/jobs").text and quinn.get(job).status == 404
        assert pia.post("/jobs/of-all/resume").status == 403


def test_many_at_once_need_the_role_admin(dead: Scenario) -> None:
    with acting(dead.settings, **BY_PROXY, grants=GRANTS, bulk_above=2) as served:
        olga, ada = (Browser(served.port, X_Forwarded_User=who) for who in ("olga", "ada"))
        refused = olga.dry_run(f"group={dead.group}")
        assert (refused.status, "the role admin" in refused.text, "3 dead letters" in refused.text) == (403, True, True)
        assert olga.dry_run(f"group={dead.group}", limit="2").status == 200
        dead.pause(dead.request(job="of-all").job)
        assert olga.post("/jobs/of-all/resume").status == 403
        assert ada.post("/jobs/of-all/resume").status == 303
        ada.wait_state("/jobs/of-all", "finished")


IMPOSSIBLE: Final = (
    ("/redrive/new", "no dead letter is named"),
    ("/redrive/new?where=", "no dead letter is named"),
    ("/redrive/new?since=24h", "no dead letter is named"),
    ("/archive/new?where=state%3Dopen&where=before%3D1h", "no dead letter is named"),
    ("/redrive/new?where=nothing", "is no place of a record"),
    ("/redrive/new?where=group%3Dx", "there is no dead letter with"),
    ("/redrive/new?where={group}&allow=conflict", "can't be allowed"),
    ("/redrive/new?where={group}&to=elsewhere", "is no target"),
    ("/redrive/new?where={group}&rate=501", "redrive.max_rate allows 500"),
    ("/redrive/new?where={group}&rate=nan", "redrive.max_rate allows 500"),
    ("/redrive/new?where={group}&rate=x", "rate is a number"),
    ("/redrive/new?where={group}&limit=0", "limit and canary are numbers"),
    ("/redrive/new?where={group}&canary=0", "limit and canary are numbers"),
    ("/redrive/new?where={group}&limit=9999999999", "limit and canary are numbers"),
)
LARGE: Final = "x" * 70_000
# Body, content type, status.
FORMS: Final = (
    ("&".join("a=b" for _ in range(201)), "application/x-www-form-urlencoded", 400),
    (f"token={LARGE}", "application/x-www-form-urlencoded", 413),
    ("token=%FF", "application/x-www-form-urlencoded", 400),
    (b"token=\xff", "application/x-www-form-urlencoded", 400),
    ("token", "application/x-www-form-urlencoded", 400),
    ('{"token": "x"}', "application/json", 415),
    ("token=x", "text/plain", 415),
    ("token=x", "multipart/form-data; boundary=x", 415),
)


def test_what_is_not_possible_says_why(dead: Scenario) -> None:
    group = f"group%3D{dead.group}"
    with acting(dead.settings) as browser:
        for path, says in IMPOSSIBLE:
            answer = browser.get(path.format(group=group))
            assert (answer.status, says in answer.text) == (400, True), (path, answer.text)
        for body, content_type, status in FORMS:
            given = browser.ask("POST", "/redrive/new", body, Content_Type=content_type, **OWN_PAGE)
            assert given.status == status, (body[:20], given.text)
        ticked = [("where", f"place={dead.place().topic}:0:{number}") for number in range(200)]
        assert browser.get("/redrive/new", *ticked, ("allow", "no_members")).status == 200
    assert dead.events() == []


def test_no_header_of_a_browser_says_who_acts(dead: Scenario) -> None:
    claimed = {"X_Forwarded_User": "ada", "X_Forwarded_Groups": "ops", "X_Forwarded_For": "127.0.0.1"}
    with acting(dead.settings) as served:
        browser = Browser(served.port, **claimed)
        browser.wait_state(browser.start(browser.dry_run(f"group={dead.group}")), "finished")
    assert {event.by for event in dead.events() if isinstance(event, Requested)} == {"any user of this machine"}
    elsewhere = {**BY_PROXY, "proxies": ("10.0.0.0/8",), "grants": ("ada admin",)}
    with acting(dead.settings, **elsewhere) as served:
        browser = Browser(served.port, **claimed)
        for route in ACTING:
            path = address_of(route, ANY)
            assert (browser.post(path) if route.method != "GET" else browser.get(path)).status == 403, path


def test_refused_attempts_are_logged(dead: Scenario, caplog: pytest.LogCaptureFixture) -> None:
    with acting(dead.settings, **BY_PROXY, grants=GRANTS) as served, caplog.at_level(logging.WARNING):
        vera = Browser(served.port, X_Forwarded_User="vera")
        assert vera.dry_run(f"group={dead.group}").status == 403
        assert vera.post("/redrive/new", Origin="http://attacker.example").status == 403
    assert "refused to 'vera': To redrive these dead letters" in caplog.text
    assert "refused a change from 127.0.0.1: Only the console's own pages" in caplog.text


def test_buttons_of_what_is_not_allowed_name_the_role(dead: Scenario) -> None:
    place = f"/dead-letters/{dead.place().topic}/{dead.place().partition}/{dead.place().offset}"
    listed = f"/dead-letters?where=group%3D{dead.group}&by=none"
    dead.pause(dead.request(job="of-all").job)
    dead.read_operations()
    with acting(dead.settings, **BY_PROXY, grants=GRANTS) as served:
        vera, olga = (Browser(served.port, X_Forwarded_User=who) for who in ("vera", "olga"))
        for path in (place, listed, "/jobs/of-all"):
            assert "disabled" in vera.get(path).text and "needs the role operator" in vera.get(path).text
            assert "disabled" not in olga.get(path).text and "needs the role" not in olga.get(path).text
