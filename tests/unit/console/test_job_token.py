"""The token of a dry run is for one person, one job and a quarter of an hour."""

from __future__ import annotations

import pytest

from console.acting.job_token import LIFETIME_S, MOST_BYTES, JobTokens
from tests.unit.console.test_permission import job
from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Replacement

KEY = b"k" * 32


def test_a_token_has_its_job_and_ages() -> None:
    now_s = [0.0]
    tokens, shown = JobTokens(KEY, lambda: now_s[0]), job("key=\\xff", ends={"dlq": {0: 7}})
    token = tokens.sign("olga", shown)
    now_s[0] = LIFETIME_S - 1
    assert tokens.read("olga", token) == (shown, True)
    now_s[0] = LIFETIME_S
    assert tokens.read("olga", token) == (shown, False)


def test_a_token_of_an_edit_is_for_this_edit_alone() -> None:
    tokens, edit = JobTokens(KEY, lambda: 0.0), Replacement(edited="0" * 64, value=bytes(MOST_BYTES))
    token, plain = tokens.sign("olga", job(replacement=edit)), tokens.sign("olga", job())
    assert tokens.read("olga", token, edit) == (job(replacement=edit), True)
    for given, sent in ((token, None), (token, edit.model_copy(update={"value": b"other"})), (plain, edit)):
        with pytest.raises(ConfigurationError, match="review it again"):
            tokens.read("olga", given, sent)


def test_no_other_token_is_read() -> None:
    tokens = JobTokens(KEY, lambda: 0.0)
    token = tokens.sign("olga", job())
    with pytest.raises(ConfigurationError, match="another person"):
        tokens.read("eve", token)
    for other in ("", ".", token[1:], f"{token}A", f"{token}=", token[:-2], "\ud800.ä"):
        with pytest.raises(ConfigurationError, match="didn't make this form"):
            tokens.read("olga", other)
    for index in range(len(token)):
        changed = f"{token[:index]}{'A' if token[index] != 'A' else 'B'}{token[index + 1 :]}"
        with pytest.raises(ConfigurationError):
            tokens.read("olga", changed)
    with pytest.raises(ConfigurationError, match="perhaps it was restarted"):
        JobTokens(b"x" * 32, lambda: 0.0).read("olga", token)
    assert JobTokens(KEY, lambda: 1.0).read("olga", token) == (job(), True)


def test_a_job_that_no_form_can_hold_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="named one by one"):
        JobTokens(KEY, lambda: 0.0).sign("olga", job("error=" + "x" * MOST_BYTES))
