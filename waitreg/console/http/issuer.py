"""The issuer of OpenID Connect: where its endpoints are, its keys, and the exchange of a code for an ID token."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Any, Final, NamedTuple
from urllib.parse import quote_plus

import aiohttp
from yarl import URL

from wait_registry.errors import ConfigurationError, PermanentError, TransientError
from wait_registry.settings.console import OidcSettings
from waitreg.console.http.login import Login

LIMIT_S: Final = 10.0
_AT_ONCE: Final = 8
# Endpoints hardly ever change. Keys are asked for at each login, so that a new one is known.
_KNOWN_S: Final = 300.0
_LOOPBACK: Final = ("127.0.0.1", "localhost", "::1")


class Endpoints(NamedTuple):
    """The addresses of an issuer (OpenID Connect Discovery 1.0)."""

    authorization: URL
    token: URL
    keys: URL


class Issuer:
    """Asks one issuer.

    Args:
        settings: its address, and what the console is registered as.

    Raises:
        ConfigurationError: the address can't be used.
    """

    def __init__(self, settings: OidcSettings) -> None:
        self._settings = settings
        self._endpoints: Endpoints | None = None
        self._asked_s = 0.0
        # Those who aren't known yet can have the console ask: a few at once, so that its other pages have connections.
        self._at_once = asyncio.Semaphore(_AT_ONCE)
        _address("console.oidc.issuer", settings.issuer)

    async def login_address(self, login: Login, redirect: str) -> URL:
        """Return where a browser is sent to log in.

        Raises:
            TransientError: the issuer doesn't answer.
            ConfigurationError: what it answers doesn't fit the settings.
        """
        query = {
            "response_type": "code",
            "client_id": self._settings.client_id,
            "redirect_uri": redirect,
            "scope": " ".join(self._settings.scopes),
            "state": login.state,
            "nonce": login.nonce,
            "code_challenge": login.challenge,
            "code_challenge_method": "S256",
        }
        return (await self._known()).authorization.update_query(query)

    async def id_token(self, code: str, login: Login, redirect: str) -> str:
        """Return the ID token for a code, which an issuer gives once.

        Raises:
            PermanentError: the issuer refuses the code, or gives no ID token for it.
            TransientError, ConfigurationError: as for ``login_address``.
        """
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect,
            "code_verifier": login.verifier,
        }
        headers = {}
        if self._settings.client_secret is None:
            form["client_id"] = self._settings.client_id
        else:
            # RFC 6749, 2.3.1: both are encoded as in a form.
            secret = quote_plus(self._settings.client_secret.get_secret_value())
            headers["Authorization"] = aiohttp.encode_basic_auth(quote_plus(self._settings.client_id), secret)
        answer = await self._asked("POST", (await self._known()).token, data=form, headers=headers)
        token = answer.get("id_token")
        if not isinstance(token, str):
            raise PermanentError("the issuer gave no ID token; console.oidc.scopes needs openid")
        return token

    async def keys(self) -> Mapping[str, Any]:
        """Return the keys that tokens are signed with now.

        Raises:
            TransientError, ConfigurationError: as for ``login_address``.
        """
        return await self._asked("GET", (await self._known()).keys)

    async def _known(self) -> Endpoints:
        now_s = time.monotonic()
        if self._endpoints is None or now_s - self._asked_s > _KNOWN_S:
            self._endpoints, self._asked_s = await self._discovered(), now_s
        return self._endpoints

    async def _discovered(self) -> Endpoints:
        issuer = self._settings.issuer
        found = await self._asked("GET", URL(f"{issuer.rstrip('/')}/.well-known/openid-configuration"))
        if found.get("issuer") != issuer:
            raise ConfigurationError(
                f"console.oidc.issuer is {issuer!r}, and the issuer calls itself {found.get('issuer')!r}: they must be "
                "equal, each character"
            )
        names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
        return Endpoints(*(_address(f"{name} of the issuer", found.get(name)) for name in names))

    async def _asked(self, method: str, url: URL, **request: Any) -> Mapping[str, Any]:
        try:
            async with asyncio.timeout(LIMIT_S), self._at_once, aiohttp.ClientSession() as session:
                async with session.request(method, url, allow_redirects=False, **request) as response:
                    if response.status >= 500:
                        raise TransientError(
                            f"the issuer doesn't work: {url.host} answers with status {response.status}"
                        )
                    found = await response.json(content_type=None)
        except aiohttp.ClientResponseError as error:  # its own text has the whole address
            raise TransientError(f"the issuer doesn't work: {url.host}: {error.status}, {error.message}") from None
        except (aiohttp.ClientError, TimeoutError) as error:
            reason = error if str(error) else f"no answer within {LIMIT_S:g} s"
            raise TransientError(f"the issuer can't be reached: {url.host}: {reason}") from error
        except ValueError as error:
            raise TransientError(f"the issuer doesn't work: {url.host} doesn't answer with JSON") from error
        if response.status != 200:
            raise PermanentError(_refusal(url, response.status, found))
        if not isinstance(found, dict):
            raise TransientError(f"the issuer doesn't work: {url.host} doesn't answer with a JSON object")
        return found


def _refusal(url: URL, status: int, answer: Any) -> str:
    given = answer if isinstance(answer, dict) else {}
    said = ": ".join(str(given[name]) for name in ("error", "error_description") if name in given)
    return f"the issuer refuses: {url.host}{url.path} answers with status {status} {said}".rstrip()


def _address(what: str, text: object) -> URL:
    try:
        url = URL(text if isinstance(text, str) else "")
    except ValueError:
        url = URL()
    if not (url.host and (url.scheme == "https" or (url.scheme == "http" and url.host in _LOOPBACK))):
        raise ConfigurationError(f"{what} is {text!r}: expected an address that begins with https://")
    return url
