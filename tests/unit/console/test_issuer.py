"""An issuer that isn't what the settings say, or doesn't work: the console sends no one and nothing there."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from pydantic import SecretStr

from console.http import issuer as issuer_module
from console.http.issuer import Issuer
from console.http.login import Login
from wait_registry.errors import ConfigurationError, PermanentError, TransientError
from wait_registry.settings.console import OidcSettings

LOGIN = Login("state", "/", "nonce", "verifier")
REDIRECT = "https://console.example/login/callback"


def well_known(address: str) -> dict[str, Any]:
    names = ("authorization_endpoint", "token_endpoint", "jwks_uri")
    return {"issuer": address, **{name: f"{address}/{name}" for name in names}}


def answering(status: int, **body: Any) -> Callable[[str], web.Response]:
    """Return what answers with a JSON object."""
    return lambda _: web.json_response(body, status=status)


@asynccontextmanager
async def an_issuer(
    discovery: Callable[[str], web.Response] | None = None,
    token: Callable[[str], web.Response] | None = None,
    **settings: Any,
) -> AsyncIterator[tuple[Issuer, list[web.BaseRequest]]]:
    """Serve an issuer; what is yielded asks it, and has the requests that came."""
    seen: list[web.BaseRequest] = []

    async def answer(request: web.BaseRequest) -> web.Response:
        await request.read()
        seen.append(request)
        address = f"http://{request.host}"
        if request.path == "/token_endpoint":
            return (token or answering(200, id_token="the token"))(address)
        return (discovery or answering(200, **well_known(address)))(address)

    application = web.Application()
    application.router.add_route("*", "/{path:.*}", answer)
    async with TestServer(application) as server:
        yield Issuer(OidcSettings(issuer=f"http://127.0.0.1:{server.port}", client_id="a client", **settings)), seen


async def test_a_browser_is_sent_with_all_that_the_answer_must_fit() -> None:
    async with an_issuer(scopes=("openid", "profile", "groups")) as (issuer, seen):
        address = await issuer.login_address(LOGIN, REDIRECT)
        again = await issuer.login_address(LOGIN, REDIRECT)
    assert address.path == "/authorization_endpoint"
    assert dict(address.query) == {
        "response_type": "code",
        "client_id": "a client",
        "redirect_uri": REDIRECT,
        "scope": "openid profile groups",
        "state": "state",
        "nonce": "nonce",
        "code_challenge": LOGIN.challenge,
        "code_challenge_method": "S256",
    }
    assert (again, len(seen)) == (address, 1)


@pytest.mark.parametrize(
    ("secret", "authorization", "in_form"),
    [("a b:c%", "Basic YStjbGllbnQ6YStiJTNBYyUyNQ==", False), (None, None, True)],
)
async def test_a_code_is_exchanged_by_the_client_alone(
    secret: str | None, authorization: str | None, in_form: bool
) -> None:
    given = None if secret is None else SecretStr(secret)
    async with an_issuer(client_secret=given) as (issuer, seen):
        assert await issuer.id_token("the code", LOGIN, REDIRECT) == "the token"
        form = dict(await seen[-1].post())
    assert seen[-1].headers.get("Authorization") == authorization
    assert ("client_id" in form) == in_form
    assert (form["code"], form["code_verifier"], form["redirect_uri"]) == ("the code", "verifier", REDIRECT)


@pytest.mark.parametrize(
    ("discovery", "error", "says"),
    [
        (lambda address: web.json_response(well_known(f"{address}/")), ConfigurationError, "each character"),
        (answering(200), ConfigurationError, "calls itself None"),
        (
            lambda address: web.json_response(well_known(address) | {"token_endpoint": "http://login.example/token"}),
            ConfigurationError,
            "token_endpoint of the issuer",
        ),
        (lambda address: web.json_response(well_known(address) | {"jwks_uri": 7}), ConfigurationError, "jwks_uri"),
        (answering(404, error="no such realm"), PermanentError, "status 404 no such realm"),
        (answering(503), TransientError, "status 503"),
        (lambda _: web.Response(text="<html>"), TransientError, "doesn't answer with JSON"),
        (lambda _: web.Response(status=302, headers={"Location": "/"}), PermanentError, "status 302"),
        (lambda _: web.json_response([]), TransientError, "a JSON object"),
    ],
)
async def test_a_wrong_answer_says_what_is_wrong(
    discovery: Callable[[str], web.Response], error: type[Exception], says: str
) -> None:
    async with an_issuer(discovery) as (issuer, _):
        with pytest.raises(error, match=re.escape(says)):
            await issuer.login_address(LOGIN, REDIRECT)


@pytest.mark.parametrize(
    ("token", "says"),
    [
        (answering(400, error="invalid_grant", error_description="expired"), "status 400 invalid_grant: expired"),
        (answering(200, access_token="x"), "gave no ID token"),
        (answering(200, id_token=7), "gave no ID token"),
    ],
)
async def test_a_refused_code_says_why(token: Callable[[str], web.Response], says: str) -> None:
    async with an_issuer(token=token) as (issuer, _):
        with pytest.raises(PermanentError, match=re.escape(says)):
            await issuer.id_token("the code", LOGIN, REDIRECT)


async def test_an_issuer_that_never_answers_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(issuer_module, "LIMIT_S", 0.2)
    async with await asyncio.start_server(lambda *_: asyncio.sleep(0), "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        issuer = Issuer(OidcSettings(issuer=f"http://127.0.0.1:{port}", client_id="a client"))
        with pytest.raises(TransientError, match=r"no answer within 0\.2 s"):
            await issuer.login_address(LOGIN, REDIRECT)


@pytest.mark.parametrize("address", ["", "login.example", "http://login.example", "ftp://login.example", "https://"])
def test_an_issuer_needs_encryption(address: str) -> None:
    with pytest.raises(ConfigurationError, match="begins with https://"):
        Issuer(OidcSettings(issuer=address, client_id="a client"))
