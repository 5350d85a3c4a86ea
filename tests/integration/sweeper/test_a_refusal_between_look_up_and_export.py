"""A topic that refuses after it was looked up costs its partition this sweep; in the next its rows are unsendable."""

from __future__ import annotations

import os

import pytest

from sweeper.export import fence
from sweeper.job import skip_of
from sweeper.outgoing import Obstacle
from sweeper.result import Skip
from tests.integration.sweeper.conftest import ScenarioFactory
from wait_registry.errors import PermanentError


@pytest.mark.fault("F77")
def test_the_error_names_the_topic_and_the_next_sweep_exports_the_others(scenario: ScenarioFactory) -> None:
    at = scenario()
    first, large, small = at.register(
        [at.wait_record(1), at.wait_record(2, value=os.urandom(40_000)), at.wait_record(3)]
    )
    at.show()
    with at.export(chunk_rows=1) as task:
        chunks = fence(task).snapshot().read_tail().chunks()
        next(chunks).export()  # the topic has been looked up
        at.set_config(at.settings.dead_letter.topic, "max.message.bytes", "20000")
        with pytest.raises(
            PermanentError, match=f"exporting 1 rows of .* to {at.settings.dead_letter.topic}"
        ) as refused:
            next(chunks).export()
    assert skip_of(refused.value, 0) is Skip.FAILED, "its partition is left; nothing ends the process"
    assert at.dead_lettered_ids() == [first.wait_id]

    again = at.sweep()
    assert (again.counts, again.skip) == ({"superseded": 1, "exported": 1, "unsendable": 1}, None)
    assert [(row.wait_id, row.obstacle) for row in again.named] == [(large.wait_id, Obstacle.TOO_LARGE)]
    assert at.dead_lettered_ids() == sorted([first.wait_id, small.wait_id])
