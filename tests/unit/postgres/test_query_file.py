"""The incident queries' files: what is read from them, and that those committed are well-formed."""

from __future__ import annotations

from importlib.resources import files

import pytest

from wait_registry.postgres.query_file import KINDS, load_query, parse_query, query_names

_TEXT = """\
-- What is it?
-- What to do: look
-- again.
-- Kind: the system
\\if :{?minutes} \\else \\set minutes 10 \\endif

select '100%'::text, cast(:'minutes' as int), :'topic', :'topic'
"""


def test_a_file_is_taken_apart() -> None:
    query = parse_query("it", _TEXT)
    assert query.question == "What is it?"
    assert query.advice == "What to do: look\nagain."
    assert query.kind == "the system"
    assert query.defaults == {"minutes": "10"}
    assert query.parameters == ("minutes", "topic")
    assert query.numbers == {"minutes": 2**31 - 1}
    assert query.sql == "select '100%%'::text, cast(%(minutes)s as int), %(topic)s, %(topic)s"


@pytest.mark.parametrize("name", query_names())
def test_every_query_says_which_question_it_answers_and_what_to_do(name: str) -> None:
    query = load_query(name)
    assert "?" in query.question
    assert query.advice.startswith("What to do: ")
    assert query.kind in KINDS
    assert query.sql.endswith(";")
    assert query.sql.count(";") == 1
    assert set(query.defaults) <= set(query.parameters)
    text = (files("wait_registry_sql") / "queries" / f"{name}.sql").read_text("utf-8")
    assert text.count("\n\\") == len(query.defaults), "defaults are the only lines for psql"
