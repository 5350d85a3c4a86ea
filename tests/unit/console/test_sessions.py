"""Sessions, logins and dry runs in tokens: what they hold, how long, and that no other text is one."""

from __future__ import annotations

import base64
import hashlib
import io
import string
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.console.test_permission import job
from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Replacement
from waitreg.console.access.passwords import Passwords
from waitreg.console.actions.tokens import DRY_RUN_S, MOST_BYTES, JobTokens
from waitreg.console.http import login, session
from waitreg.console.http.login import Logins
from waitreg.console.http.session import Session, Sessions
from waitreg.console.signing import Signer
from waitreg.main import main

KEY = bytes(range(32))


class SteppedClock:
    """A clock that only the test moves."""

    def __init__(self) -> None:
        self.now_s = 1.8e9

    def __call__(self) -> float:
        return self.now_s


def test_a_session_is_found_by_its_cookie_with_all_that_it_has() -> None:
    sessions = Sessions(KEY)
    begun = sessions.begin("anna ä", ["a", "b c"])
    assert sessions.find(sessions.cookie(begun)) == begun
    assert Sessions(KEY).find(sessions.cookie(begun)) == begun
    assert Sessions(bytes(32)).find(sessions.cookie(begun)) is None
    assert begun.id != sessions.begin("anna ä", ["a", "b c"]).id


def test_a_session_in_use_lasts_8_hours() -> None:
    clock = SteppedClock()
    sessions = Sessions(KEY, clock)
    begun = sessions.begin("anna", [])
    cookie = sessions.cookie(begun)
    for _ in range(16):
        assert sessions.find(cookie) == begun
        clock.now_s += session.LONGEST_S / 16
        cookie = sessions.renewed(cookie, begun) or cookie
    assert sessions.find(cookie) is None


def test_a_session_without_use_lasts_an_hour() -> None:
    clock = SteppedClock()
    sessions = Sessions(KEY, clock)
    begun = sessions.begin("anna", [])
    cookie = sessions.cookie(begun)
    assert sessions.renewed(cookie, begun) is None
    clock.now_s += session.IDLE_S - 1
    assert sessions.find(cookie) == begun
    clock.now_s += 1
    assert sessions.find(cookie) is None


def test_an_ended_session_is_remembered_for_as_long_as_it_could_have_lasted() -> None:
    clock = SteppedClock()
    sessions = Sessions(KEY, clock)
    ended = sessions.begin("anna", [])
    cookie = sessions.cookie(ended)
    sessions.end(ended)
    assert sessions.find(cookie) is None
    clock.now_s += session.LONGEST_S - 1
    sessions.end(sessions.begin("ben", []))
    assert sessions.find(sessions.cookie(ended)) is None


def test_a_login_is_found_by_its_state_for_ten_minutes() -> None:
    clock = SteppedClock()
    logins = Logins(KEY, clock)
    begun, other = logins.begin("/help"), logins.begin("/help")
    cookie = logins.cookie(begun)
    assert logins.find(cookie, begun.state) == begun
    for state in (other.state, "", begun.state[:-1], "\udcff"):
        assert logins.find(cookie, state) is None
    assert logins.find(logins.cookie(other), begun.state) is None
    clock.now_s += login.LONGEST_S
    assert logins.find(cookie, begun.state) is None


def test_what_must_stay_secret_of_a_login_is_neither_in_its_cookie_nor_the_same_twice() -> None:
    logins = Logins(KEY)
    begun = [logins.begin("/") for _ in range(3)]
    for one in begun:
        data = base64.urlsafe_b64decode(f"{logins.cookie(one)}===").decode(errors="ignore")
        assert one.state in data
        assert one.verifier not in data and one.nonce not in data
        digest = base64.urlsafe_b64encode(hashlib.sha256(one.verifier.encode()).digest()).decode()
        assert one.challenge == digest.rstrip("=")
        assert 43 <= len(one.verifier) <= 128  # RFC 7636, 4.1
    assert len({text for one in begun for text in one}) == 3 * 3 + 1


@pytest.mark.parametrize("target", ["/", "/help", "/dead-letters?where=a%3Db&since=1d", "/a//b", "/" + "a" * 2000])
def test_a_login_leads_to_a_path_of_this_console(target: str) -> None:
    assert Logins(KEY).begin(target).target == target


@pytest.mark.parametrize(
    "target",
    [
        "",
        "help",
        "//a",
        "/\\a",
        "/\t/a",
        "/\n/a",
        "\t//a",
        "https://a",
        "javascript:x",
        "/a\r\nX: y",
        "/é",
        "/" + "a" * 2001,
    ],
)
def test_a_login_leads_nowhere_else(target: str) -> None:
    assert Logins(KEY).begin(target).target == "/"


@given(st.text(alphabet=string.printable) | st.binary().map(lambda data: base64.urlsafe_b64encode(data).decode()))
def test_no_other_text_is_read(text: str) -> None:
    assert Signer(KEY, "x", lambda: 0.0).read(text, 60) is None


def test_a_signer_reads_neither_what_has_another_purpose_nor_what_is_changed() -> None:
    signer = Signer(KEY, "x", lambda: 1.5)
    text = signer.sign(["a", 1])
    assert signer.read(text, 60) == ["a", 1]
    assert Signer(KEY, "y", lambda: 1.5).read(text, 60) is None
    data = base64.urlsafe_b64decode(f"{text}===")
    for at in range(len(data)):
        changed = bytes([*data[:at], data[at] ^ 1, *data[at + 1 :]])
        assert signer.read(base64.urlsafe_b64encode(changed).decode(), 60) is None


def test_a_cookie_of_many_groups_is_short_enough_for_browsers() -> None:
    groups = [f"{number:036d}" for number in range(50)]
    assert len(Sessions(KEY).cookie(Session("i" * 22, 1.8e9, "anna@example.com", tuple(groups)))) < 4_000


def test_a_piped_password_becomes_a_line_that_lets_its_name_in(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO("a long one\n"))
    assert main(["console", "--password-of", "alice"]) == 0
    users = tmp_path / "users"
    users.write_text(capsys.readouterr().out)
    assert Passwords(users).are_of("alice", "a long one")
    assert not Passwords(users).are_of("alice", "")


@pytest.mark.parametrize(
    ("piped", "said"), [("", "the password of 'alice' is empty"), ("gr\udcfcn\n", "the password isn't text in UTF-8")]
)
def test_a_password_that_is_none_is_refused(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], piped: str, said: str
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(piped))
    assert main(["console", "--password-of", "alice"]) == 2
    assert said in capsys.readouterr().err


def test_a_token_has_its_job_and_ages() -> None:
    now_s = [0.0]
    tokens, shown = JobTokens(KEY, lambda: now_s[0]), job("key=\\xff", ends={"dlq": {0: 7}})
    token = tokens.sign("olga", shown)
    now_s[0] = DRY_RUN_S - 1
    assert tokens.read("olga", token) == (shown, True)
    now_s[0] = DRY_RUN_S
    assert tokens.read("olga", token) == (shown, False)


def test_a_token_of_an_edit_is_for_this_edit_alone() -> None:
    tokens, edit = JobTokens(KEY, lambda: 0.0), Replacement(edited="0" * 64, value=bytes(MOST_BYTES))
    token, plain = tokens.sign("olga", job(replacement=edit)), tokens.sign("olga", job())
    assert tokens.read("olga", token, edit) == (job(replacement=edit), True)
    for form, sent in ((token, None), (token, edit.model_copy(update={"value": b"other"})), (plain, edit)):
        with pytest.raises(ConfigurationError, match="review it again"):
            tokens.read("olga", form, sent)


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
