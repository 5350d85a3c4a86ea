"""What an issuer and its ID tokens must have to be believed: each case differs from a good one in one thing."""

from __future__ import annotations

import asyncio
import hmac
import re
from base64 import urlsafe_b64encode
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import orjson
import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey
from joserfc.jws import JWSRegistry
from pydantic import SecretStr

from wait_registry.errors import ConfigurationError, PermanentError, TransientError
from wait_registry.settings.console import OidcSettings
from waitreg.console.http import issuer as issuer_module
from waitreg.console.http.id_token import list_claim, text_claim, verified
from waitreg.console.http.issuer import Issuer
from waitreg.console.http.login import Login

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
async def test_only_the_client_exchanges_a_code(secret: str | None, authorization: str | None, in_form: bool) -> None:
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


NOW_S = 1_800_000_000
EXPECTED = (OidcSettings(issuer="https://login.example", client_id="console"), "the nonce")
GOOD: dict[str, Any] = {
    "iss": "https://login.example",
    "aud": "console",
    "sub": "1",
    "nonce": "the nonce",
    "iat": NOW_S - 5,
    "exp": NOW_S + 300,
}
RSA = RSAKey.generate_key(2048, {"kid": "rsa", "use": "sig"})
EC = ECKey.generate_key("P-256", {"kid": "ec", "use": "sig"})
ENCRYPTING = RSAKey.generate_key(2048, {"kid": "enc", "use": "enc", "alg": "RSA-OAEP"})
KEYS: dict[str, Any] = {
    "keys": [*KeySet([ENCRYPTING, RSA, EC]).as_dict()["keys"], {"kty": "of the future", "kid": "future"}]
}

LENIENT = JWSRegistry(algorithms=["RS256", "PS512", "ES256"], strict_check_header=False)


def token(claims: dict[str, Any], algorithm: str = "RS256", key: Any = RSA, **header: Any) -> str:
    return jwt.encode({"alg": algorithm, "kid": key.kid, **header}, claims, key, registry=LENIENT)


def by_hand(claims: dict[str, Any], algorithm: str, key: bytes | None = None) -> str:
    """Return a token that the library wouldn't make: without a signature, or with a public key as a secret."""
    header = {"alg": algorithm, "kid": "rsa"}
    text = ".".join(map(encoded, map(orjson.dumps, (header, claims))))
    return f"{text}.{'' if key is None else encoded(hmac.digest(key, text.encode(), 'sha256'))}"


def encoded(data: bytes) -> str:
    return urlsafe_b64encode(data).decode().rstrip("=")


@pytest.mark.parametrize(
    "claims",
    [
        {},
        {"aud": ["console"]},
        {"aud": ["console", "other"], "azp": "console"},
        {"exp": NOW_S - 55},
        {"iat": NOW_S + 55},
        {"exp": NOW_S + 0.5},
    ],
)
@pytest.mark.parametrize(("algorithm", "key"), [("RS256", RSA), ("PS512", RSA), ("ES256", EC)])
def test_a_good_token_is_believed(claims: dict[str, Any], algorithm: str, key: Any) -> None:
    text = token({**GOOD, **claims}, algorithm, key, x_of_the_issuer="1")
    assert verified(text, KEYS, *EXPECTED, NOW_S)["sub"] == "1"


@pytest.mark.parametrize(
    "claims",
    [
        {"iss": "https://login.example/"},
        {"iss": ["https://login.example"]},
        {"iss": None},
        {"aud": "other"},
        {"aud": []},
        {"aud": None},
        {"aud": ["console", "other"], "azp": "other"},
        {"azp": "other"},
        {"nonce": "another"},
        {"nonce": ""},
        {"nonce": None},
        {"exp": NOW_S - 61},
        {"exp": str(NOW_S + 300)},
        {"exp": None},
        {"iat": NOW_S + 61},
        {"iat": None},
        {"nbf": NOW_S + 61},
        {"sub": None},
        {"sub": ""},
    ],
)
def test_other_claims_are_refused(claims: dict[str, Any]) -> None:
    changed = {name: value for name, value in {**GOOD, **claims}.items() if value is not None}
    with pytest.raises(PermanentError, match="can't be believed"):
        verified(token(changed), KEYS, *EXPECTED, NOW_S)


MISUSED = RSAKey.import_key(ENCRYPTING.as_pem(private=True), {"kid": "enc"})
STRANGE = RSAKey.generate_key(2048, {"kid": "rsa"})


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(by_hand(GOOD, "none"), id="no signature"),
        pytest.param(token(GOOD, key=STRANGE), id="another key of the same name"),
        pytest.param(token(GOOD, kid="unknown"), id="no such key"),
        pytest.param(token(GOOD, kid="future"), id="a key of an unknown type"),
        pytest.param(token(GOOD, key=MISUSED), id="a key for encryption"),
        pytest.param(by_hand(GOOD, "HS256", RSA.as_pem(private=False)), id="the public key as a secret"),
        pytest.param(f"{token(GOOD)[:-8]}AAAAAAAA", id="a changed signature"),
        pytest.param(token(GOOD).replace(".", "..", 1), id="four parts"),
        pytest.param("", id="nothing"),
        pytest.param("a.b.c", id="no token"),
        pytest.param("é", id="no ASCII"),
    ],
)
def test_other_signatures_are_refused(text: str) -> None:
    with pytest.raises(PermanentError, match="can't be believed"):
        verified(text, KEYS, *EXPECTED, NOW_S)


@pytest.mark.parametrize("keys", [{}, {"keys": []}, {"keys": None}, {"keys": ["x"]}, {"keys": [{"kid": "rsa"}]}])
def test_without_keys_nothing_is_believed(keys: Any) -> None:
    with pytest.raises(PermanentError, match="can't be believed"):
        verified(token(GOOD), keys, *EXPECTED, NOW_S)


def test_names_are_texts() -> None:
    assert text_claim({"name": " anna "}, "name") == "anna"
    for claims in ({}, {"name": " "}, {"name": 1}, {"name": ["anna"]}, {"name": "a\0"}, {"name": "\ud800"}):
        with pytest.raises(PermanentError, match=r"console\.oidc\.name_claim"):
            text_claim(claims, "name")


def test_groups_are_a_list_of_texts_or_one() -> None:
    assert list_claim({"groups": ["a", "b c"]}, "groups") == ["a", "b c"]
    assert list_claim({"groups": "a"}, "groups") == ["a"]
    assert list_claim({}, "groups") == []
    for value in (1, [1], {"a": 1}, None):
        with pytest.raises(PermanentError, match=r"console\.oidc\.groups_claim"):
            list_claim({"groups": value}, "groups")


def test_too_many_groups_are_no_groups_at_all() -> None:
    with pytest.raises(PermanentError, match="too many groups"):
        list_claim({"_claim_names": {"groups": "src1"}, "_claim_sources": {"src1": {}}}, "groups")
