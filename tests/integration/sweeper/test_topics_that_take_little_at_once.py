"""However little a topic takes at once: what fits into it record by record gets there (P4)."""

from __future__ import annotations

import pytest

from sweeper.result import RowOutcome
from tests.integration.sweeper.conftest import ScenarioFactory

# Far more in one transaction than any of these topics takes in one batch, also when it is compressed.
ROWS = 1_000


@pytest.mark.guarantee("P4.9")
def test_a_wait_topic_of_a_small_limit_takes_the_tombstones_of_many_due_rows(scenario: ScenarioFactory) -> None:
    at = scenario({"wait.max_message_bytes": 10_000})
    # They came few at a time; here all come at once.
    at.set_config(at.settings.wait.topic, "max.message.bytes", "1000000")
    registered = at.register([at.wait_record(number) for number in range(ROWS)])
    at.set_config(at.settings.wait.topic, "max.message.bytes", "10000")
    at.show()

    result = at.sweep()

    assert (result.skip, result.reason, result.counts[RowOutcome.EXPORTED]) == (None, "", ROWS)
    assert at.dead_lettered_ids() == sorted(item.wait_id for item in registered)


@pytest.mark.guarantee("P4.9")
def test_a_registrations_own_dead_letter_topic_of_a_small_limit_takes_them_as_well(scenario: ScenarioFactory) -> None:
    at = scenario()
    foreign = f"{at.settings.dead_letter.topic}.foreign"
    at.topics.create(foreign, 1, max__message__bytes="4000")
    registered = at.register(
        [at.wait_record(number, dead_letter_topic=foreign) for number in range(0, ROWS, 2)]
        + [at.wait_record(number) for number in range(1, ROWS, 2)]
    )
    at.show()

    result = at.sweep()

    assert (result.skip, result.reason, result.counts[RowOutcome.EXPORTED]) == (None, "", ROWS)
    there = sorted(record.text("WAIT_EXPIRATION_UUID") for record in at.topics.read(foreign))
    assert sorted([*there, *at.dead_lettered_ids()]) == sorted(item.wait_id for item in registered)
    assert len(there) == ROWS // 2
