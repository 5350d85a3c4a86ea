"""P4, P8: a sweeper whose link to Postgres breaks goes on by itself, exports each row once and holds up no reader."""

from __future__ import annotations

from collections.abc import Callable

from tests.faults.behind_a_link import behind_link, link_to_postgres
from tests.faults.sweeping import Sweeping
from tests.integration.sweeper.conftest import ScenarioFactory
from tests.integration.sweeper.scenario import Registered, Scenario
from tests.support.network import Link
from tests.support.waiting import wait_until

ROWS = 3


def test_a_link_that_is_cut_refused_half_open_or_stalled(scenario: ScenarioFactory) -> None:
    at = scenario({"postgres.connect_timeout_s": 2})
    at.show()  # a sink's first word, without which nothing is exported
    with link_to_postgres(at.database.url) as link:
        with Sweeping(behind_link(at.settings, link)) as sweeping:
            rounds = Rounds(at, sweeping)
            rounds.go_on("at first")
            assert link.cut() > 0
            rounds.go_on("after the cut")

            link.refuse()
            rounds.fall_due()
            link.allow()
            rounds.wait_exported("after the refusals")

            for break_link, mend in ((link.half_open, link.flow), (link.stall, link.flow), (link.stall, link.cut)):
                rounds.stand_still(break_link, link)
                mend()
                link.flow()
                rounds.wait_exported("when the link flows again")


class Rounds:
    """Rows that fall due again and again, and whether each has been exported once."""

    def __init__(self, at: Scenario, sweeping: Sweeping) -> None:
        self._at = at
        self._sweeping = sweeping
        self._due: list[Registered] = []

    def fall_due(self) -> None:
        """Have some rows fall due."""
        self._due += self._at.register([self._at.wait_record(len(self._due) + number) for number in range(ROWS)])
        self._at.show()

    def wait_exported(self, when: str) -> None:
        """Wait until each row has its one dead letter."""
        wait_until(self._are_exported, 120, f"the export {when}")

    def go_on(self, when: str) -> None:
        """Both."""
        self.fall_due()
        self.wait_exported(when)

    def stand_still(self, break_link: Callable[[], None], link: Link) -> None:
        """Break the link until the sweeper waits for an answer; nobody else waits for it then."""
        before = link.figures.bytes_held_back
        break_link()
        self.fall_due()
        wait_until(lambda: link.figures.bytes_held_back > before, what="bytes that are held back")
        self._at.topics.wait_settled(self._at.settings.wait.topic)

    def _are_exported(self) -> bool:
        assert self._sweeping.error is None
        return self._at.dead_lettered_ids() == sorted(item.wait_id for item in self._due)
