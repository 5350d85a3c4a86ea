"""The token of a dry run is for one person, one job and a quarter of an hour."""

from __future__ import annotations

import pytest

from console.acting.job_token import LIFETIME_S, MOST_BYTES, JobTokens
from tests.unit.console.test_permission import job
from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Replacement


def test_a_token_has_its_job_and_ages() -> None:
    times_s = iter((0.0, LIFETIME_S, LIFETIME_S + 1))
    tokens, shown = JobTokens(lambda: next(times_s)), job("key=\\xff", ends={"dlq": {0: 7}})
    token = tokens.sign("olga", shown)
    assert tokens.read("olga", token) == (shown, True)
    assert tokens.read("olga", token) == (shown, False)


def test_a_token_of_an_edit_is_for_this_edit_alone() -> None:
    tokens, edit = JobTokens(lambda: 0.0), Replacement(edited="0" * 64, value=bytes(MOST_BYTES))
    token, plain = tokens.sign("olga", job(replacement=edit)), tokens.sign("olga", job())
    assert tokens.read("olga", token, edit) == (job(replacement=edit), True)
    for given, sent in ((token, None), (token, edit.model_copy(update={"value": b"other"})), (plain, edit)):
        with pytest.raises(ConfigurationError, match="review it again"):
            tokens.read("olga", given, sent)


def test_no_other_token_is_read() -> None:
    tokens = JobTokens(lambda: 0.0)
    token = tokens.sign("olga", job())
    content, _, signature = token.partition(".")
    with pytest.raises(ConfigurationError, match="another person"):
        tokens.read("eve", token)
    for other in ("", ".", content, f".{signature}", f"{content}.", f"{token}=", f"{token[:-2]}", "\ud800.ä"):
        with pytest.raises(ConfigurationError, match="didn't make this form"):
            tokens.read("olga", other)
    for index in range(len(token)):
        changed = f"{token[:index]}{'A' if token[index] != 'A' else 'B'}{token[index + 1 :]}"
        with pytest.raises(ConfigurationError):
            tokens.read("olga", changed)
    with pytest.raises(ConfigurationError, match="perhaps it was restarted"):
        JobTokens(lambda: 0.0).read("olga", token)


def test_a_job_that_no_form_can_hold_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="named one by one"):
        JobTokens(lambda: 0.0).sign("olga", job("error=" + "x" * MOST_BYTES))
