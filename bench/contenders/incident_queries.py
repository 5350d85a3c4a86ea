"""The incident queries, timed as `waitreg query` asks them."""

from __future__ import annotations

import time
from statistics import median
from typing import Final

from bench.contenders.product import connection_to
from bench.contenders.wait_log import CUSTOMERS, INPUT_PARTITIONS, INPUT_TOPIC
from bench.harness.row import Bench
from wait_registry.cli.query_file import bind, load_query, query_names
from wait_registry.settings.root import Settings

# Of a row that stands in every registry of the benchmark (see `standing_rows`).
STANDING_ROW: Final = 17
PARAMETERS: Final = {
    "id": f"00000000-0000-8000-8000-{STANDING_ROW:012x}",
    "key": f"customer-{STANDING_ROW * 7919 % CUSTOMERS}",
    "topic": INPUT_TOPIC,
    "partition": str(STANDING_ROW % INPUT_PARTITIONS),
    "offset": str(STANDING_ROW // INPUT_PARTITIONS),
    "instance": f"host-{STANDING_ROW % 16}",
}
# Their answer is about every row of `wait`, which they read once; an index answers the others.
COUNTING: Final = frozenset(
    {
        *("burst_timeline", "growth_per_day", "instance_in_flight", "oldest_waits", "stuck_now"),
        *("waiting_by_group", "waiting_by_instance", "waiting_by_partition", "waiting_by_topic"),
    }
)


def measure_queries(bench: Bench, settings: Settings) -> dict[str, float]:
    """Ask every query; return the median time of each, and the slowest of those that count and of the others, ms."""
    took_ms: dict[str, float] = {}
    with connection_to(settings) as connection:
        connection.read_only = True
        for name in query_names():
            query = load_query(name)
            known = {wanted: PARAMETERS[wanted] for wanted in query.parameters if wanted not in query.defaults}
            times = []
            for _ in range(bench.size(1, 3)):
                began = time.perf_counter()
                connection.execute(query.sql.encode(), bind(query, known)).fetchall()
                times.append((time.perf_counter() - began) * 1000)
            took_ms[name] = median(times)
    return {
        **{f"{name}_ms": value for name, value in took_ms.items()},
        "slowest_count_ms": max(value for name, value in took_ms.items() if name in COUNTING),
        "slowest_look_up_ms": max(value for name, value in took_ms.items() if name not in COUNTING),
    }
