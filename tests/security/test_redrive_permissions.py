"""`waitreg dlq redrive` and `purge` with the permissions of redrive.sh and purge.sh, and without one of them."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import UTC, datetime

import pytest

from tests.integration.console.acting import acting
from tests.integration.redrive.scenario import Scenario
from tests.refusals.secured_settings import SecuredSettings
from tests.support.database import Database
from tests.support.rights import Right, grant, rights_in, rights_of
from tests.support.settings import changed
from wait_registry.dead_letters.outcome import Outcome
from wait_registry.dead_letters.outcome_reader import OutcomeReader
from wait_registry.diagnosis import Severity
from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Kind, Requested, State
from wait_registry.settings.kafka import KafkaSettings
from wait_registry.settings.sink import SinkKind
from wait_registry.settings.tree import Settings
from waitreg.doctor.kafka_permissions import permissions
from waitreg.redrive.operator_events import change
from waitreg.redrive.records_deletion import deletion
from waitreg.redrive.request import Asker

PASSWORD = "SASL_PLAINTEXT"
ANNA = Asker("anna", authenticated=False, via="command")


@pytest.fixture
def of_operator(secured_settings: SecuredSettings) -> Settings:
    """The settings of an operator without any permission."""
    return secured_settings.of("processor", PASSWORD, granted=False)


@pytest.fixture
def at(of_operator: Settings, secured_settings: SecuredSettings, database: Database) -> Scenario:
    """Two dead letters, one of them redriven already, whose mark the tables don't show yet."""
    database.install(of_operator)
    plain = of_operator.model_copy(update={"kafka": KafkaSettings(bootstrap_servers=secured_settings.secured.operator)})
    prepared = Scenario(plain, secured_settings.topics, database)
    prepared.show_dead_letters(2)
    prepared.execute(prepared.request(job="earlier", limit=1).job)
    return prepared


def rights_of_redrive(settings: Settings, at: Scenario) -> list[Right]:
    variables = {
        "GROUP": at.group,
        "REDELIVERY_TOPICS": at.target,
        "OPERATIONS_TOPIC": settings.operations.topic,
        "WAIT_TOPIC": settings.wait.topic,
        "DEAD_LETTER_TOPICS": settings.dead_letter.topic,
    }
    return rights_in("redrive.sh", variables)


def allow(own: SecuredSettings, rights: list[Right], names: Iterable[str] = (), left: tuple[str, ...] = ()) -> None:
    """Grant rights to the operator, but of those with a name or for a kind of resource only what is left."""
    for right in rights:
        operations = left if {right.name, right.resource} & {*names} else right.operations
        if operations:
            grant(own.secured, own.user("processor"), [right._replace(operations=operations)])


def asked(at: Scenario) -> Requested:
    """Return a job for all dead letters."""
    return at.request().job


def test_a_redrive_needs_the_permissions_of_its_file(
    at: Scenario, of_operator: Settings, secured_settings: SecuredSettings
) -> None:
    allow(secured_settings, rights_of_redrive(of_operator, at))
    own = Scenario(of_operator, secured_settings.topics, at.database)
    ended = own.execute(asked(at))
    assert dict(ended.counts) == {"already_redriven": 1, "redriven": 1}
    assert len(at.sent()) == 2
    at.read_waits()
    at.read()
    with at.database.connect(of_operator) as connection:
        assert dict(OutcomeReader(of_operator, connection).of("job-1")) == {Outcome.NOT_CONSUMED: 1}


def test_the_console_acts_with_the_permissions_of_the_file(
    at: Scenario, of_operator: Settings, secured_settings: SecuredSettings
) -> None:
    allow(secured_settings, rights_of_redrive(of_operator, at))
    at.pause(at.request(job="paused").job)
    with acting(of_operator) as browser:
        assert browser.post("/jobs/paused/pause").status == 303
        job = browser.start(browser.dry_run(f"group={at.group}"))
        assert "already_redriven: 1" in browser.wait_state(job, "finished").text
        assert browser.post("/jobs/paused/resume").status == 303
        assert "already_redriven: 2" in browser.wait_state("/jobs/paused", "finished").text
    assert len(at.sent()) == 2


@pytest.mark.parametrize(
    ("missing", "left", "said"),
    [
        ("{operations}", ("READ",), "Topic authorization failed"),
        ("{operations}", ("WRITE",), "Topic authorization failed"),
        ("waitreg.redrive.{operations}", (), "Group authorization failed"),
        ("waitreg.redrive.{group}", (), "Transactional Id authorization failed"),
        ("{group}", (), "Group authorization failed"),
    ],
)
def test_a_redrive_without_a_permission_names_it_and_sends_nothing(
    missing: str,
    left: tuple[str, ...],
    said: str,
    at: Scenario,
    of_operator: Settings,
    secured_settings: SecuredSettings,
) -> None:
    name = missing.format(operations=of_operator.operations.topic, group=at.group)
    allow(secured_settings, rights_of_redrive(of_operator, at), [name], left)
    own = Scenario(of_operator, secured_settings.topics, at.database)
    with pytest.raises(ConfigurationError, match=said):
        own.execute(asked(at))
    assert len(at.sent()) == 1


def purge(settings: Settings) -> None:
    """Delete all records of the dead letter topic."""
    with deletion(settings, settings.dead_letter.topic, datetime(2999, 1, 1, tzinfo=UTC)) as found:
        found.run(ANNA, "old")


def kept(settings: Settings, at: Scenario) -> int:
    """Return how many records the dead letter topic has."""
    return len(at.topics.read(settings.dead_letter.topic))


def test_an_event_of_a_user_without_any_permission_is_refused(of_operator: Settings) -> None:
    with pytest.raises(ConfigurationError, match=r"asking that job j be paused failed: .*authorization failed"):
        change(of_operator, "j", State.PAUSED, ANNA, "")


@pytest.fixture
def rights_of_purge(at: Scenario, of_operator: Settings) -> list[Right]:
    """What purge.sh grants; no dead letter is open."""
    at.execute(at.request(kind=Kind.ARCHIVE, job="archiving", allowed=("already_redriven",)).job)
    variables = {"OPERATIONS_TOPIC": of_operator.operations.topic, "DEAD_LETTER_TOPICS": of_operator.dead_letter.topic}
    return rights_in("purge.sh", variables)


def test_a_purge_needs_the_permissions_of_its_file(
    at: Scenario, of_operator: Settings, secured_settings: SecuredSettings, rights_of_purge: list[Right]
) -> None:
    allow(secured_settings, rights_of_purge)
    purge(of_operator)
    assert kept(of_operator, at) == 0


@pytest.mark.parametrize(
    ("resource", "left", "said"),
    [
        ("dlq", ("READ",), r"grant the user of kafka\.security DELETE on .*\.dlq \(deploy/kafka/purge\.sh\)"),
        ("dlq", ("DELETE",), r"Grant the user of kafka\.security READ on it"),
        ("operations", ("READ",), r"kafka\.security WRITE on .*\.operations \(deploy/kafka/purge\.sh\)"),
        ("operations", ("WRITE",), r"Grant the user of kafka\.security READ on it"),
        ("group", (), r"DESCRIBE on the consumer group"),
    ],
)
def test_a_purge_without_a_permission_names_it_and_deletes_nothing(
    resource: str,
    left: tuple[str, ...],
    said: str,
    at: Scenario,
    of_operator: Settings,
    secured_settings: SecuredSettings,
    rights_of_purge: list[Right],
) -> None:
    named = {"dlq": of_operator.dead_letter.topic, "operations": of_operator.operations.topic}
    allow(secured_settings, rights_of_purge, [named.get(resource, resource)], left)
    before = len(at.events())
    with pytest.raises(ConfigurationError, match=said):
        purge(of_operator)
    assert (kept(of_operator, at), len(at.events())) == (2, before)


@pytest.mark.parametrize("left", [(), ("WRITE",), ("DESCRIBE_CONFIGS",)])
def test_a_topic_that_may_not_be_written_to_is_a_category(
    left: tuple[str, ...], at: Scenario, of_operator: Settings, secured_settings: SecuredSettings
) -> None:
    allow(secured_settings, rights_of_redrive(of_operator, at), [at.target], left)
    own = Scenario(of_operator, secured_settings.topics, at.database)
    assert dict(own.execute(asked(at)).counts) == {"already_redriven": 1, "target_missing": 1}
    assert len(at.sent()) == 1


@pytest.mark.parametrize("kind", list(SinkKind))
def test_doctor_names_each_permission_of_a_redrive_that_is_missing(
    kind: SinkKind, of_operator: Settings, secured_settings: SecuredSettings
) -> None:
    settings, user = changed(of_operator, "sink", kind=kind), secured_settings.user("processor")
    rights = rights_of("redrive", settings)
    grant(secured_settings.secured, user, rights)
    [line] = permissions("redrive", settings)
    assert line.severity is Severity.OK
    for right in rights:
        if right.resource == "transactional_id":
            continue
        for operation in right.operations:
            secured_settings.secured.revoke(user, right.resource, right.name, [operation])
            [line] = permissions("redrive", settings)
            assert line.severity is Severity.ERROR
            assert operation in line.message and f" on {right.resource} {right.name} not allowed" in line.message
            assert right.name in line.fix
            grant(secured_settings.secured, user, [right._replace(operations=(operation,))])


@pytest.mark.parametrize("missing", ["topic", "group"])
def test_alongside_connect_a_redrive_needs_to_see_how_old_the_tables_are(
    missing: str, at: Scenario, of_operator: Settings, secured_settings: SecuredSettings
) -> None:
    settings, user = changed(of_operator, "sink", kind=SinkKind.CONNECT), secured_settings.user("processor")
    grant(secured_settings.secured, user, rights_of("redrive", settings))
    own = Scenario(settings, secured_settings.topics, at.database)
    job = own.request().job
    name = {"topic": settings.wait.topic, "group": settings.sink.connect_group}[missing]
    for right in rights_of("redrive", settings):
        if right.name == name:
            secured_settings.secured.revoke(user, right.resource, right.name, right.operations)
    with pytest.raises(ConfigurationError, match="authorization failed"):
        own.execute(job)
    assert len(at.sent()) == 1
