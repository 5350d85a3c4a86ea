"""An ID token: what is checked before it is believed, and whom it names (OpenID Connect Core 1.0, section 3.1.3.7)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet
from joserfc.jws import JWSRegistry

from wait_registry.display import is_text
from wait_registry.errors import PermanentError
from wait_registry.settings.console import OidcSettings

# Signatures that only the issuer can make: neither `none` nor those with a secret that the console has too.
_ALGORITHMS: Final = (
    "RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA", "Ed25519",
)  # fmt: skip
_SKEW_S: Final = 60


def verified(token: str, keys: Any, settings: OidcSettings, nonce: str, now_s: float) -> Mapping[str, Any]:
    """Return the claims of a token.

    Args:
        token: as the issuer gave it.
        keys: the issuer's JWKS, as parsed JSON.
        settings: the issuer and the client that it must be of.
        nonce: of the login that it must be for.
        now_s: the time, in s since the epoch; clocks may differ by a minute.

    Raises:
        PermanentError: the token must not be believed; the message says why.
    """
    registry = jwt.JWTClaimsRegistry(
        now=int(now_s),
        leeway=_SKEW_S,
        iss={"essential": True, "value": settings.issuer},
        aud={"essential": True, "value": settings.client_id},
        nonce={"essential": True, "value": nonce},
        sub={"essential": True},
        exp={"essential": True},
        iat={"essential": True},
        azp={"value": settings.client_id},
    )
    try:
        # RFC 7515, 4: what isn't understood in a header is ignored, unless it is critical.
        algorithms = JWSRegistry(algorithms=_ALGORITHMS, strict_check_header=False)
        claims = jwt.decode(token, KeySet.import_key_set(keys), registry=algorithms).claims
        registry.validate(claims)
    except (JoseError, ValueError, KeyError, TypeError) as error:
        raise PermanentError(f"the ID token can't be believed: {error}") from error
    return claims


def text_claim(claims: Mapping[str, Any], name: str) -> str:
    """Return a claim that is a text.

    Raises:
        PermanentError: there is none, or it is something else.
    """
    value = claims.get(name)
    # Neither topics nor tables take NUL or half a surrogate pair in a name.
    if not isinstance(value, str) or not value.strip() or not is_text(value.encode(errors="surrogatepass")):
        raise PermanentError(f"the ID token has no claim {name!r} with a text; see console.oidc.name_claim")
    return value.strip()


def list_claim(claims: Mapping[str, Any], name: str) -> list[str]:
    """Return a claim that is a list of texts, or one text; none if there is no such claim.

    Raises:
        PermanentError: it is something else, or the issuer left it out because it is too long.
    """
    value = claims.get(name, [])
    texts = [value] if isinstance(value, str) else value
    if not isinstance(texts, list) or not all(isinstance(text, str) for text in texts):
        raise PermanentError(f"the claim {name!r} of the ID token isn't a list of texts; see console.oidc.groups_claim")
    # OpenID Connect Core, 5.6.2: a claim of which the token has only the place. Entra does this beyond 200 groups.
    if name in claims.get("_claim_names", {}):
        raise PermanentError(
            f"the ID token has no claim {name!r}, because the person is in too many groups: have the issuer send only "
            "the groups that are assigned to this application"
        )
    return texts
