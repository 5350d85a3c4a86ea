"""On a secured cluster, with the rights of deploy/ only, the services do all that they do, and give nothing away.

P3, P4, P8 with TLS, SASL, certificates, an authorizer and roles; what they say holds no secret and no payload.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator, Mapping

import pytest

from tests.security.secured_story import ENDS, MARKED, SERVICES, SecuredStory
from tests.support.secured_broker import SecuredBroker
from tests.support.secured_postgres import SecuredPostgres
from tests.support.waiting import wait_until
from wait_registry.diagnosis import Severity

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def story(
    secured: SecuredBroker, secured_postgres: SecuredPostgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredStory]:
    """Three services on a secured cluster, after everything has happened."""
    with SecuredStory(secured, secured_postgres, tmp_path_factory.mktemp("secured-story")) as played:
        played.play()
        yield played


def forms(mark: str) -> Iterator[str]:
    """Yield how a text may be written: as it is, in hexadecimal, in base64 wherever it begins within a longer one."""
    raw = mark.encode()
    yield mark
    yield raw.hex()
    for before in range(3):
        encoded = base64.b64encode(bytes(before) + raw).decode().rstrip("=")
        # What depends on its neighbours doesn't count.
        yield encoded[4 if before else 0 : -2]


def shown(marks: Mapping[str, str], places: Mapping[str, str]) -> list[str]:
    """Return where which mark is shown, with the text around it.

    Args:
        marks: a mark's meaning -> the mark.
        places: where something was said -> what was said.
    """
    found: list[str] = []
    for meaning, mark in marks.items():
        for where, text in places.items():
            lower = text.lower()
            at = [lower.find(form.lower()) for form in forms(mark)]
            for place in [place for place in at if place >= 0]:
                found.append(f"{meaning} in {where}: ...{text[max(0, place - 200) : place + 100]}...")
    return found


def test_with_exactly_these_permissions_every_record_is_settled(story: SecuredStory) -> None:
    letters = list(story.topics.read(story.settings["sink"].dead_letter.topic))
    reasons = sorted(letter.text("DLQ_REASON") for letter in letters)
    assert reasons == sorted([*ENDS.values(), "malformed", "expired"])
    assert all(letter.key and MARKED.encode() in letter.key for letter in letters), "what is looked for was there"
    assert story.ended == {"sink": 0, "sweeper": 0}
    counts = "select (select count(*) from dead_letter), (select count(*) from quarantine), (select count(*) from wait)"
    assert story.database.rows(story.settings["sink"], counts) == [(len(letters), 3, 1)]


def test_doctor_finds_every_right_that_a_service_needs(story: SecuredStory) -> None:
    for service, found in story.doctor.items():
        rights = [line for line in found.lines if "permissions" in line.id]
        assert rights, service
        assert [line for line in rights if line.severity is not Severity.OK] == []
        assert [line for line in found.lines if line.severity is Severity.ERROR] == []


def test_a_reporter_is_answered(story: SecuredStory) -> None:
    ended = story.ask("dead_letters_by_reason", "--json")
    assert ended.code == 0, ended.errors
    assert '"expired"' in ended.output


def test_no_secret_is_shown_anywhere(story: SecuredStory) -> None:
    places = {**story.said, **{f"the command line of {who}": line for who, line in story.command_lines.items()}}
    assert any(where.startswith("Spark's page") for where in places)
    assert any(where.startswith("the file") for where in places)
    assert any("java" in where for where in places)
    assert shown(story.secrets, places) == []


def test_no_payload_is_shown_anywhere(story: SecuredStory) -> None:
    logs = {where: text for where, text in story.said.items() if where.startswith(("the log", "/"))}
    for service in SERVICES:
        assert '"level":"DEBUG"' in logs[f"the log of the {service}"], "at the least severe level"
    assert "dead-lettered to" in logs["the log of the processor"]
    assert "the sink failed" in logs["the log of the sink"]
    assert "expired registration is unsendable" in logs["the log of the sweeper"]
    assert shown({"a payload": MARKED}, logs) == []


def test_what_services_write_to_temporary_folders_is_theirs_alone(story: SecuredStory) -> None:
    assert story.open_to_others == []


def test_whatever_listens_is_on_loopback_spark_and_its_pages_too(story: SecuredStory) -> None:
    for service in SERVICES:
        assert set().union(*story.listening[service].values()) == {"127.0.0.1"}, story.listening[service]
    for service in ("sink", "sweeper"):
        assert story.listening[service]["java"] == {"127.0.0.1"}, "the JVM was looked at while it listened"


def test_a_wrong_password_ends_each_service_with_2_and_is_not_shown(story: SecuredStory) -> None:
    started = story.start_with_wrong_passwords()
    wait_until(lambda: all(service.process.poll() is not None for service in started), 240, "the refusals")
    for service in started:
        said = service.log.read_text("utf-8")
        assert service.process.returncode == 2, said
        assert "Check kafka.security" in said.splitlines()[-1]
        assert "Traceback" not in said
        assert shown(story.secrets, {service.name: said}) == []
