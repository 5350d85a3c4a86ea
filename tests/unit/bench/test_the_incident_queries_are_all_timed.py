"""The incident queries of row 6: each is asked with parameters that it has, and counted as what it is."""

from __future__ import annotations

from bench.contenders.incident_queries import COUNTING, PARAMETERS
from tests.integration.queries.test_plans_stay_cheap_on_a_million_rows import RULES
from wait_registry.cli.query_file import bind, load_query, query_names


def test_the_queries_that_count_are_those_whose_plans_may_read_the_whole_table() -> None:
    assert {name for name, rule in RULES.items() if "wait" in rule.whole} == COUNTING


def test_every_query_has_its_parameters() -> None:
    for name in query_names():
        query = load_query(name)
        given = {name: PARAMETERS[name] for name in query.parameters if name not in query.defaults}
        assert set(bind(query, given)) == set(query.parameters)
