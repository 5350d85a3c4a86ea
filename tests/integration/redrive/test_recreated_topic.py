"""Dead letters of a deleted topic, which the tables keep as those of `topic@ID`, are found and redriven as others."""

from __future__ import annotations

import pytest

from sink.read.start_positions import dead_letter_start
from tests.integration.redrive.conftest import Type
from tests.integration.redrive.handling import Handling
from tests.integration.redrive.scenario import Scenario
from tests.integration.redrive.test_canary import executor, marked, sink_of
from tests.support.console import ask, running_console
from wait_registry.records.operation import Place, State


@pytest.fixture
def kept(at: Scenario) -> list[Place]:
    """The places of five dead letters whose topic was recreated, the oldest first."""
    topic = at.settings.dead_letter.topic
    at.dead_letters(5)
    at.read()
    at.topics.delete(topic)
    at.topics.create_own(at.settings)
    with at.database.connect(at.settings) as connection:
        dead_letter_start(connection, at.admin, topic)
        found = connection.execute('select topic, partition, "offset" from dead_letter order by original_offset')
        places = [Place(*row) for row in found]
    assert all(place.topic.startswith(f"{topic}@") for place in places)
    return places


def test_each_is_listed_shown_compared_edited_and_redriven_by_its_place(
    at: Scenario, kept: list[Place], typed: Type
) -> None:
    for arguments in (
        ("list", f"group={at.group}", "--rows", "2"),
        ("show", str(kept[0])),
        ("diff", str(kept[0]), str(kept[0])),
        ("edit", str(kept[0]), "--null-value", "--without-members"),
        ("redrive", str(kept[0]), "--without-members", "--send"),
    ):
        status, printed = typed(*arguments)
        assert status == 0, printed
    assert len(at.sent()) == 1
    at.read_operations()
    assert "redrive" in typed("audit", "--place", str(kept[0]))[1]


def test_the_console_leads_to_each_of_them(at: Scenario, kept: list[Place]) -> None:
    with running_console(at.settings) as port:
        links = ask(port, "/dead-letters?where=&by=none").links("^/dead-letters/")
        assert len(links) == len(kept)
        assert "This console only reads" in ask(port, "/dead-letters?where=&by=none").text
        assert {ask(port, link).status for link in links} == {200}


def test_a_job_passes_its_canary(at: Scenario, kept: list[Place], handling: Handling) -> None:
    handling.start()
    with sink_of(at):
        assert executor(at, at.request(canary=2).job)().state is State.FINISHED
    assert marked(at) == len(kept)
