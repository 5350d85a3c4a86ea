"""What an ID token must have to be believed: each case differs from a good one in one thing."""

from __future__ import annotations

import hmac
from base64 import urlsafe_b64encode
from typing import Any

import orjson
import pytest
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, RSAKey
from joserfc.jws import JWSRegistry

from console.http.id_token import Expected, list_claim, text_claim, verified
from wait_registry.errors import PermanentError

NOW_S = 1_800_000_000
EXPECTED = Expected("https://login.example", "console", "the nonce")
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
    assert verified(text, KEYS, EXPECTED, NOW_S)["sub"] == "1"


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
        verified(token(changed), KEYS, EXPECTED, NOW_S)


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
        verified(text, KEYS, EXPECTED, NOW_S)


@pytest.mark.parametrize("keys", [{}, {"keys": []}, {"keys": None}, {"keys": ["x"]}, {"keys": [{"kid": "rsa"}]}])
def test_without_keys_nothing_is_believed(keys: Any) -> None:
    with pytest.raises(PermanentError, match="can't be believed"):
        verified(token(GOOD), keys, EXPECTED, NOW_S)


def test_names_are_texts() -> None:
    assert text_claim({"name": " anna "}, "name") == "anna"
    for claims in ({}, {"name": " "}, {"name": 1}, {"name": ["anna"]}):
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
