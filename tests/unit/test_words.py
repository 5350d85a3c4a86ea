"""The words of the product are those of the list in `tests.words`."""

from __future__ import annotations

import pytest

from tests.words import files_of, words_in

# The Linux account of this name.
ACCOUNT = "waitreg/local/account.py"


@pytest.mark.parametrize(
    "place",
    ["processor", "sink", "sweeper", "waitreg", "wait_registry", "sql", "deploy", "setup", "examples", "README.md"]
    + [
        f"docs/{page}.md"
        for page in (
            "comparison",
            "compose",
            "configuration",
            "deploy",
            "first-handler",
            "guarantees",
            "handlers",
            "kafka-connect",
            "metrics",
            "ordering",
            "refusals",
            "registration",
            "retries",
            "runbook",
            "security",
            "share-groups",
            "sizing",
        )
    ],
)
def test_no_word_of_the_list_is_used(place: str) -> None:
    found = [str(word) for path in files_of([place]) for word in words_in(path)]
    assert [line for line in found if ACCOUNT not in line] == []
