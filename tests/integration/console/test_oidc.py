"""Login to the console at a certified OpenID provider, and each way in which a login must not succeed."""

from __future__ import annotations

import json
import re
import time
from base64 import urlsafe_b64encode
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlencode, urlsplit
from urllib.request import Request, urlopen

import pytest
from pydantic import SecretStr

from tests.integration.console.login_browser import LoginBrowser, Shown
from tests.support.console import running_console
from tests.support.node_packages import NodeProgram
from tests.support.settings import changed
from wait_registry.errors import ConfigurationError
from wait_registry.settings.console import Authentication, ConsoleSettings, OidcSettings
from wait_registry.settings.tree import Settings
from waitreg.console.http.oidc import cookie_key
from waitreg.console.http.session import Session, Sessions
from waitreg.console.service import ConsoleService
from waitreg.local.ports import LOOPBACK, free_ports

CLIENT_ID, CLIENT_SECRET = "console", "secret: of %the+console"


class OidcProvider(NodeProgram):
    """One that runs with new keys.

    Args:
        folder: where it may write.
        accounts: the groups of each account; all passwords are right.
        port: 0 for any free one.
    """

    def __init__(self, folder: Path, accounts: Mapping[str, Sequence[str]], port: int = 0) -> None:
        super().__init__("oidc_provider", folder, {"PORT": str(port), "ACCOUNTS": json.dumps(accounts)})

    @property
    def issuer(self) -> str:
        return f"http://127.0.0.1:{self.port}"

    def spoil(self, fault: str) -> None:
        """Have its ID tokens spoiled from now on, see server.js; ``none`` ends this."""
        with urlopen(Request(f"{self.issuer}/fault/{fault}", method="POST"), timeout=30) as answer:
            assert answer.status == 204


KEY = "a key of the tests, of 32 characters and more"
MANY = [f"group-with-a-long-name-{number}" for number in range(200)]
ACCOUNTS = {"alice": ["support", "others"], "bob": [], "carl": ["admins"], "dora": ["support", *MANY]}
GRANTS = ("group:support support payments*", "carl operator")
CALLBACK = "/login/callback"


def oidc(issuer: str, **update: Any) -> OidcSettings:
    """Return the settings of a console that logs in at an issuer."""
    secret = SecretStr(CLIENT_SECRET)
    given = {"client_id": CLIENT_ID, "name_claim": "preferred_username", "client_secret": secret, **update}
    return OidcSettings(issuer=issuer, **given)


def console_for(issuer: str, **update: Any) -> AbstractContextManager[int]:
    """Serve a console that logs in at an issuer."""
    own = {"oidc": oidc(issuer), "signing_key": SecretStr(KEY)}
    console = {"authentication": Authentication.OIDC, "grants": GRANTS, **own}
    return running_console(Settings(), **{**console, **update})


def sessions(issuer: str, ago_s: float = 0, key: str = KEY, **update: Any) -> Sessions:
    """Return what makes the cookies of that console, some time ago."""
    settings = ConsoleSettings(oidc=oidc(issuer, **update), signing_key=SecretStr(key))
    return Sessions(cookie_key(settings), lambda: time.time() - ago_s)


@pytest.fixture(scope="module")
def provider(tmp_path_factory: pytest.TempPathFactory) -> Iterator[OidcProvider]:
    with OidcProvider(tmp_path_factory.mktemp("provider"), ACCOUNTS) as provider:
        yield provider


@pytest.fixture(scope="module")
def console(provider: OidcProvider) -> Iterator[str]:
    """The address of a console."""
    with console_for(provider.issuer) as port:
        yield f"http://{LOOPBACK}:{port}"


@pytest.fixture
def browser(console: str) -> LoginBrowser:
    return LoginBrowser(console)


def planted(browser: LoginBrowser, text: str) -> Shown:
    """Return what a browser sees of a page with this session cookie."""
    return LoginBrowser(browser.console).open("/help", Cookie=f"waitreg={text}")


def test_a_login_leads_to_the_page_that_was_asked_for(browser: LoginBrowser, console: str) -> None:
    asked = browser.open("/help?a=1&b=%2F%3F")
    assert (asked.status, browser.has_cookie()) == (401, False)
    shown = browser.log_in("alice", "/help?a=1&b=%2F%3F")
    assert (shown.status, shown.url) == (200, f"{console}/help?a=1&b=%2F%3F")
    assert "alice" in shown.text
    assert 'action="/logout"' in shown.text
    assert not browser.has_cookie("waitreg-login")
    assert browser.open("/help").status == 200


def test_groups_become_grants(browser: LoginBrowser, console: str) -> None:
    assert "You see only: group payments*, all topics." in browser.log_in("alice").text
    carl = LoginBrowser(console).log_in("carl")
    assert (carl.status, "You see only" in carl.text) == (200, False)


def test_groups_that_matter_must_have_room_in_a_cookie(browser: LoginBrowser, provider: OidcProvider) -> None:
    assert browser.log_in("dora").status == 200
    with console_for(provider.issuer, grants=[f"group:{name} viewer" for name in MANY]) as port:
        shown = LoginBrowser(f"http://{LOOPBACK}:{port}").log_in("dora")
    assert (shown.status, "too many of your groups" in shown.text) == (403, True)


def test_without_a_grant_there_is_a_page_that_says_so(browser: LoginBrowser) -> None:
    shown = browser.log_in("bob")
    assert shown.status == 403
    assert "No grant of console.grants is to 'bob'." in shown.text
    assert 'action="/logout"' in shown.text


@pytest.mark.parametrize("tls", [True, False])
def test_cookies_are_for_this_host_and_for_no_script(provider: OidcProvider, tls: bool) -> None:
    with console_for(provider.issuer, behind_tls=tls) as port:
        browser = LoginBrowser(f"http://{LOOPBACK}:{port}")
        begun = browser.open("/login?to=/help")
        cookie = sessions(provider.issuer, 100).cookie(Session("i", time.time(), "carl", ()))
        name = "__Host-waitreg" if tls else "waitreg"
        renewed = browser.open("/help", Cookie=f"{name}={cookie}")
    assert (begun.status, renewed.status) == (302, 200)
    for answer, expected in ((begun, f"{name}-login"), (renewed, name)):
        first, *attributes = answer.headers["Set-Cookie"].split("; ")
        assert first.startswith(f"{expected}=")
        wanted = {"HttpOnly", "Path=/", "SameSite=Lax", *(["Secure"] if tls else [])}
        assert {one for one in attributes if not one.startswith("Max-Age")} == wanted
    redirect = parse_qs(urlsplit(begun.headers["Location"]).query)["redirect_uri"]
    assert redirect == [f"{'https' if tls else 'http'}://{LOOPBACK}:{port}/login/callback"]


def test_a_changed_cookie_is_no_session(browser: LoginBrowser, provider: OidcProvider) -> None:
    browser.log_in("alice")
    cookie = browser.cookie().value or ""
    middle = len(cookie) // 2
    changed = f"{cookie[:middle]}{'A' if cookie[middle] != 'A' else 'B'}{cookie[middle + 1 :]}"
    forged = urlsafe_b64encode(bytes(32) + json.dumps([time.time(), ["i", time.time(), "carl", []]]).encode()).decode()
    begun = Session("i", time.time(), "carl", ())
    assert planted(browser, sessions(provider.issuer).cookie(begun)).status == 200
    others = [
        sessions(provider.issuer, key=f"another {KEY}"),
        sessions(provider.issuer, client_id="another client"),
        sessions("https://another.example"),
    ]
    for text in (*(one.cookie(begun) for one in others), changed, cookie[:-4], forged, "", "x", "\xe9", "A" * 3000):
        assert planted(browser, text).status == 401, text
    login = LoginBrowser(browser.console)
    login.open("/login")
    assert planted(browser, login.cookie("waitreg-login").value or "").status == 401


def test_a_session_that_was_planted_before_a_login_is_not_kept(browser: LoginBrowser, provider: OidcProvider) -> None:
    known = sessions(provider.issuer)
    earlier = LoginBrowser(browser.console)
    earlier.log_in("carl")
    browser.jar.set_cookie(earlier.cookie())
    assert "carl" in browser.open("/help").text
    browser.log_in("alice", "/login?to=/help")
    before, after = (known.find(one.cookie().value or "") for one in (earlier, browser))
    assert before is not None and after is not None
    assert (after.name, after.id == before.id) == ("alice", False)


def test_an_answer_to_another_login_is_refused(browser: LoginBrowser, console: str) -> None:
    answer = browser.log_in("alice", stop=CALLBACK).url
    other = LoginBrowser(console)
    assert other.open(answer).status == 403  # a browser that has begun no login
    other.open("/login")
    shown = other.open(answer)
    assert (shown.status, other.has_cookie()) == (403, False)
    assert "This browser has begun no such login" in shown.text
    wrong = browser.open(f"{CALLBACK}?{urlencode({'code': 'x', 'state': 'wrong'})}")
    assert (wrong.status, browser.has_cookie()) == (403, False)


def test_a_code_is_good_once(browser: LoginBrowser, console: str) -> None:
    answer = browser.log_in("alice", stop=CALLBACK).url
    cookie = f"waitreg-login={browser.cookie('waitreg-login').value}"
    assert browser.open(answer).status == 303
    assert browser.open(answer).status == 403
    thief = LoginBrowser(console)
    shown = thief.open(answer, Cookie=cookie)
    assert (shown.status, thief.has_cookie()) == (403, False)
    assert "invalid_grant" in shown.text


def test_a_token_that_can_not_be_believed_gives_no_session(browser: LoginBrowser, provider: OidcProvider) -> None:
    provider.spoil("nonce")
    try:
        shown = browser.log_in("alice")
    finally:
        provider.spoil("none")
    assert (shown.status, browser.has_cookie()) == (403, False)
    assert "nonce" in shown.text


def test_a_login_that_is_canceled_at_the_issuer_gives_no_session(browser: LoginBrowser) -> None:
    form = browser.go("/help")
    shown = browser.go(f"{form.url}/abort")
    assert (shown.status, browser.has_cookie()) == (403, False)
    assert "access_denied" in shown.text


def test_a_logout_ends_the_session_with_all_its_cookies(browser: LoginBrowser, console: str) -> None:
    browser.log_in("alice")
    cookie = browser.cookie().value or ""
    for headers in (
        {},
        {"Origin": "http://attacker.example"},
        {"Sec_Fetch_Site": "cross-site", "Sec_Fetch_Dest": "document"},
        {"Sec_Fetch_Site": "same-site", "Origin": console},
    ):
        assert browser.open("/logout", {}, **headers).status == 403
    assert browser.open("/logout").status == 405
    assert planted(browser, cookie).status == 200
    assert browser.open("/logout", {}, Origin=console).status == 200
    assert not browser.has_cookie()
    assert planted(browser, cookie).status == 401
    browser.log_in("alice")
    assert browser.open("/logout", {}, Sec_Fetch_Site="same-origin").status == 200


def test_other_keys_of_the_issuer_are_known_at_once(tmp_path: Path) -> None:
    (port,) = free_ports(1)
    folders = [tmp_path / name for name in ("first", "second")]
    with console_for(f"http://{LOOPBACK}:{port}") as console_port:
        for folder in folders:
            folder.mkdir()
            with OidcProvider(folder, ACCOUNTS, port):
                assert LoginBrowser(f"http://{LOOPBACK}:{console_port}").log_in("alice").status == 200


def test_sessions_continue_while_the_issuer_is_away(tmp_path: Path) -> None:
    with OidcProvider(tmp_path, ACCOUNTS) as provider:
        with console_for(provider.issuer) as port:
            browser = LoginBrowser(f"http://{LOOPBACK}:{port}")
            browser.log_in("alice")
            cookie = browser.cookie().value or ""
    with console_for(provider.issuer) as port:
        browser = LoginBrowser(f"http://{LOOPBACK}:{port}")
        assert planted(browser, cookie).status == 200
        shown = browser.go("/help")
    assert shown.status == 503
    assert "The issuer can't be reached" in shown.text


@pytest.mark.parametrize(
    ("console", "says"),
    [
        ({"oidc": OidcSettings(client_id="x")}, "set console.oidc.issuer"),
        ({"oidc": OidcSettings(issuer="https://login.example")}, "set console.oidc.issuer"),
        ({"oidc": oidc("https://login.example", scopes=("profile",))}, "keep openid"),
        ({"oidc": oidc("http://login.example")}, "begins with https://"),
        ({"oidc": oidc("login.example")}, "begins with https://"),
        ({"oidc": oidc("https://login.example"), "host": "0.0.0.0"}, "without encryption"),
        ({"oidc": oidc("https://login.example"), "grants": ()}, "console.grants is empty"),
    ],
)
def test_settings_that_can_not_be_meant_are_refused(console: dict[str, Any], says: str) -> None:
    given = {"authentication": Authentication.OIDC, "grants": GRANTS, **console}
    with pytest.raises(ConfigurationError, match=re.escape(says)):
        ConsoleService(changed(Settings(), "console", **given))
