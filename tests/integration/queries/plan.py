"""What a query did according to EXPLAIN (ANALYZE): which tables it read whole, how many rows and blocks it touched."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import psycopg

LARGE = {"wait", "dead_letter", "late_outcome", "quarantine", "sweep"}
# Bodies and headers in one of these would be carried through a sort or a hash table.
CARRYING = {"Sort", "Incremental Sort", "Aggregate", "Hash", "Materialize", "Memoize", "WindowAgg"}
WIDE = (".body", ".headers", ".original_headers", ".error_stacktrace")


@dataclass(frozen=True, slots=True)
class Plan:
    nodes: list[dict[str, Any]]

    def read_whole(self) -> set[str]:
        """Return the large tables that were read from beginning to end."""
        return {node["Relation Name"] for node in self._scans() if node["Node Type"] == "Seq Scan"}

    def read_whole_again(self) -> set[str]:
        """Return those of them that were read so more than once: the inner side of a nested loop."""
        return {n["Relation Name"] for n in self._scans() if n["Node Type"] == "Seq Scan" and n["Actual Loops"] > 1}

    def rows(self) -> int:
        """Return how many rows of large tables were looked at."""
        removed = ("Rows Removed by Filter", "Rows Removed by Index Recheck")
        looked_at = (
            (node["Actual Rows"] + sum(node.get(name, 0) for name in removed)) * node["Actual Loops"]
            for node in self._scans()
        )
        return int(sum(looked_at))

    def blocks(self) -> int:
        """Return how many blocks of 8 kB were read, from memory or disk."""
        top = self.nodes[0]
        return int(top["Shared Hit Blocks"]) + int(top["Shared Read Blocks"])

    def sorted_kb(self) -> int:
        """Return the largest space that one sort used, kB."""
        return max((int(node.get("Sort Space Used", 0)) for node in self.nodes), default=0)

    def carried(self) -> list[str]:
        """Return the bodies and headers that went through a sort or a hash table."""
        return [
            column
            for node in self.nodes
            if node["Node Type"] in CARRYING
            for column in node.get("Output", ())
            if column.endswith(WIDE)
        ]

    def _scans(self) -> Iterator[dict[str, Any]]:
        return (node for node in self.nodes if node.get("Relation Name") in LARGE)


def executed(connection: psycopg.Connection[Any], sql: str, parameters: Mapping[str, str] | Sequence[Any]) -> Plan:
    explain = f"explain (analyze, buffers, verbose, timing off, format json) {sql}"
    row = connection.execute(explain.encode(), parameters).fetchone()
    assert row is not None
    plans = row[0] if isinstance(row[0], list) else json.loads(row[0])
    return Plan(list(nodes_of(plans[0]["Plan"])))


def nodes_of(node: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield a node and all below it; a modified name (``Parallel ...``) doesn't occur without workers."""
    yield node
    for part in node.get("Plans", ()):
        yield from nodes_of(part)
