"""Login by OpenID Connect: the authorization code flow with PKCE, a session after it, and its end."""

from __future__ import annotations

import hmac
import logging
import time
from collections.abc import Callable, Iterable
from typing import Final

from aiohttp import web

from wait_registry.display import safe
from wait_registry.errors import ConfigurationError, PermanentError, TransientError, WaitRegistryError
from wait_registry.settings.console import ConsoleSettings
from waitreg.console.access.grants import Grant, Person, groups_named, person
from waitreg.console.http.id_token import list_claim, text_claim, verified
from waitreg.console.http.issuer import Issuer
from waitreg.console.http.login import LONGEST_S as LOGIN_S
from waitreg.console.http.login import Login, Logins
from waitreg.console.http.responses import failure, response
from waitreg.console.http.session import Session, Sessions
from waitreg.console.page import address
from waitreg.console.refusals import NotAdmitted
from waitreg.console.signing import signing_key

log = logging.getLogger(__name__)

# Browsers drop a longer cookie without a word (RFC 6265, 6.1), and the login would begin again and again.
_MOST_COOKIE_BYTES: Final = 4_000
_CALLBACK: Final = "/login/callback"
_SESSION: Final = web.RequestKey("session", Session)
_STATUS: Final = {TransientError: 503, PermanentError: 403, ConfigurationError: 500}


class OidcLogin:
    """Knows people by their session, and gives them one when an issuer has named them.

    Args:
        settings: the issuer, and whether browsers come by TLS.
        grants: what people may see.
        clock: returns the time, in s since the epoch.

    Raises:
        ConfigurationError: a setting is missing, or can't be used.
    """

    def __init__(
        self, settings: ConsoleSettings, grants: Iterable[Grant], clock: Callable[[], float] = time.time
    ) -> None:
        self._settings = settings.oidc
        if not settings.oidc.issuer or not settings.oidc.client_id or "openid" not in settings.oidc.scopes:
            raise ConfigurationError(
                "console.authentication is 'oidc': set console.oidc.issuer and console.oidc.client_id, and keep openid "
                "among console.oidc.scopes"
            )
        self._issuer = Issuer(settings.oidc)
        self._grants = list(grants)
        self._clock = clock
        key = cookie_key(settings)
        self._sessions, self._logins = Sessions(key, clock), Logins(key, clock)
        # Browsers take a cookie with this prefix from this host alone, by TLS alone (RFC 6265bis, 4.1.3.2).
        self._tls = settings.behind_tls
        prefix = "__Host-" if self._tls else ""
        self._cookie, self._login_cookie = f"{prefix}waitreg", f"{prefix}waitreg-login"

    def routes(self) -> list[web.RouteDef]:
        """Return the addresses that need no session."""
        return [
            web.get("/login", self._login, allow_head=False),
            web.get(_CALLBACK, self._callback, allow_head=False),
            web.post("/logout", self._logout),
        ]

    async def identify(self, request: web.Request) -> Person:
        """Return the person whose session a request has.

        Raises:
            NotAdmitted: there is none; browsers are led to the login.
        """
        session = self._session(request)
        if session is None:
            target = request.path_qs if request.method == "GET" else "/"
            # Not by a redirect: one that follows a form must not leave this host (form-action in the policy).
            refresh = f"0; url={address('/login', ('to', target))}"
            raise NotAdmitted(401, "Log in first: you are led to the login.", {"Refresh": refresh})
        request[_SESSION] = session
        return person(session.name, session.groups, self._grants)._replace(has_session=True)

    def renew(self, request: web.Request, answer: web.StreamResponse) -> None:
        """Give a session that is in use a younger cookie."""
        session = request.get(_SESSION)
        if session is not None:
            cookie = self._sessions.renewed(request.cookies[self._cookie], session)
            if cookie is not None:
                self._set(answer, self._cookie, cookie)

    async def _login(self, request: web.Request) -> web.StreamResponse:
        login = self._logins.begin(request.query.get("to", "/"))
        try:
            location = await self._issuer.login_address(login, self._redirect(request))
        except WaitRegistryError as error:
            return _failed(error)
        answer = web.Response(status=302, headers={"Location": str(location)})
        self._set(answer, self._login_cookie, self._logins.cookie(login), int(LOGIN_S))
        return answer

    async def _callback(self, request: web.Request) -> web.StreamResponse:
        cookie, state = request.cookies.get(self._login_cookie, ""), request.query.get("state", "")
        login = self._logins.find(cookie, state)
        if login is None:
            return _failed(
                PermanentError(
                    "this browser has begun no such login within the last ten minutes; open the console again"
                )
            )
        try:
            session = await self._begun(request, login)
        except WaitRegistryError as error:
            answer: web.StreamResponse = _failed(error)
        else:
            log.info("%s has logged in", safe(session.name))
            answer = web.Response(status=303, headers={"Location": login.target})
            self._set(answer, self._cookie, self._sessions.cookie(session))
        self._delete(answer, self._login_cookie)
        return answer

    async def _begun(self, request: web.Request, login: Login) -> Session:
        code = request.query.get("code")
        if not code:
            raise PermanentError(f"the issuer didn't log you in: {request.query.get('error', 'it gave no code')}")
        token = await self._issuer.id_token(code, login, self._redirect(request))
        claims = verified(token, await self._issuer.keys(), self._settings, login.nonce, self._clock())
        # Of all groups of a large company, those that matter here.
        named = groups_named(self._grants)
        groups = [group for group in list_claim(claims, self._settings.groups_claim) if group in named]
        session = self._sessions.begin(text_claim(claims, self._settings.name_claim), groups)
        if len(self._sessions.cookie(session)) > _MOST_COOKIE_BYTES:
            raise PermanentError("console.grants names too many of your groups: a cookie has no room for all of them")
        return session

    async def _logout(self, request: web.Request) -> web.StreamResponse:
        session = self._session(request)
        if session is not None:
            self._sessions.end(session)
            log.info("%s has logged out", safe(session.name))
        sentence = "The console has ended your session. You may still be logged in at the issuer."
        answer = response(failure(200, "You are logged out", sentence))
        self._delete(answer, self._cookie)
        return answer

    def _session(self, request: web.Request) -> Session | None:
        return self._sessions.find(request.cookies.get(self._cookie, ""))

    def _redirect(self, request: web.Request) -> str:
        # The host is one of console.hosts, or it would have been refused.
        return f"{'https' if self._tls else 'http'}://{request.host}{_CALLBACK}"

    def _set(self, answer: web.StreamResponse, name: str, text: str, max_age_s: int | None = None) -> None:
        answer.set_cookie(name, text, max_age=max_age_s, path="/", secure=self._tls, httponly=True, samesite="Lax")

    def _delete(self, answer: web.StreamResponse, name: str) -> None:
        answer.del_cookie(name, path="/", secure=self._tls, httponly=True, samesite="Lax")


def cookie_key(settings: ConsoleSettings) -> bytes:
    """Return what signs the cookies; with the same setting, consoles at another issuer don't know its sessions."""
    issuer = f"{settings.oidc.issuer} {settings.oidc.client_id}"
    return hmac.digest(signing_key(settings), issuer.encode(), "sha256")


def _failed(error: WaitRegistryError) -> web.Response:
    log.warning("a login failed: %s", safe(str(error)))
    text = str(error)
    return response(failure(_STATUS[type(error)], "You can't be logged in", f"{text[:1].upper()}{text[1:]}."))
