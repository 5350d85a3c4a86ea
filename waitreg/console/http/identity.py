"""Who looks at a page: any user of this machine, a name with its password, whom a proxy names, or who has logged in."""

from __future__ import annotations

import asyncio
import base64
import hashlib
import logging
import time
import unicodedata
from collections import deque
from collections.abc import Awaitable, Callable, Sequence
from ipaddress import ip_address, ip_network
from pathlib import Path
from typing import Final, NamedTuple, TypeAlias

from aiohttp import web

from wait_registry.display import is_text
from wait_registry.errors import ConfigurationError
from wait_registry.settings.console import Authentication, ConsoleSettings
from waitreg.console.access.grants import ALL, GROUP, ROLES, Grant, Person, parse_grants, person
from waitreg.console.access.passwords import Passwords
from waitreg.console.http.oidc import OidcLogin
from waitreg.console.refusals import NotAdmitted

log = logging.getLogger(__name__)

Identify: TypeAlias = Callable[[web.Request], Awaitable[Person]]
# Wrong passwords for one name from one address in one minute; then not even the right one is accepted.
_MOST_FAILURES, _FAILURES_S = 5, 60.0
# A password that was right is not hashed again for this long.
_KNOWN_S: Final = 300.0
_MOST_KNOWN: Final = 1_000


class Identity(NamedTuple):
    """How it is known who looks.

    ``identify`` returns who sends a request. ``routes`` are where people log in and out, without which they can't be
    known. ``answered`` is called with each answer before it is sent.
    """

    identify: Identify
    routes: Sequence[web.RouteDef] = ()
    answered: Callable[[web.Request, web.StreamResponse], None] | None = None


def identification(settings: ConsoleSettings) -> Identity:
    """Return how it is known who looks.

    Raises:
        ConfigurationError: the settings don't fit together, or would let in more people than they say.
    """
    loopback = _is_loopback(settings.host)
    if settings.authentication is Authentication.NONE:
        if not loopback:
            raise ConfigurationError(
                f"console.host {settings.host!r} can be reached by others, who would see everything without a "
                "password: set console.authentication to 'basic', 'proxy' or 'oidc', or console.host to 127.0.0.1"
            )
        everybody = Person("any user of this machine", (Grant(ALL, ROLES["admin"]),), authenticated=False)
        return Identity(lambda _: _now(everybody))
    grants = parse_grants(settings.grants)
    if not grants:
        raise ConfigurationError(
            "console.grants is empty, so all pages would be refused: add at least one, e.g. 'alice operator'"
        )
    if settings.authentication is Authentication.PROXY:
        return Identity(_ByProxy(settings, grants))
    if not loopback and not settings.behind_tls:
        raise ConfigurationError(
            f"console.host {settings.host!r} can be reached by others, and passwords or sessions would be sent without "
            "encryption: put a proxy with TLS in front and set console.behind_tls to true"
        )
    if settings.authentication is Authentication.OIDC:
        login = OidcLogin(settings, grants)
        return Identity(login.identify, login.routes(), login.renew)
    if not settings.users:
        raise ConfigurationError(
            "console.authentication is 'basic', and console.users isn't set: write the lines of "
            "`waitreg console --password-of NAME` into a file"
        )
    return Identity(_ByPassword(Passwords(Path(settings.users)), grants))


class _ByPassword:
    """Names with passwords, as RFC 7617 has it; wrong ones are limited by name and address: a proxy has one for all."""

    def __init__(self, passwords: Passwords, grants: list[Grant]) -> None:
        self._passwords = passwords
        self._grants = grants
        self._failures: dict[tuple[str, str], deque[float]] = {}
        self._hashing = asyncio.Lock()
        self._known: dict[bytes, float] = {}

    async def __call__(self, request: web.Request) -> Person:
        header, now_s = request.headers.get("Authorization", ""), time.monotonic()
        if not header:
            raise _asks("Give your name and password.")
        digest = hashlib.sha256(header.encode(errors="surrogateescape")).digest()
        name, password = _credentials(header)
        tried = (request.remote or "", name)
        # Before known passwords are let in: otherwise the answers would say which guess is right.
        self._require_tries(tried, now_s)
        if now_s - self._known.get(digest, -_KNOWN_S) < _KNOWN_S:
            return person(name, (), self._grants)
        # One after the other: of tries at the same time too, no more are compared than the limit allows.
        async with self._hashing:
            self._require_tries(tried, now_s)
            await self._compare(tried, password, now_s)
        if len(self._known) >= _MOST_KNOWN:
            self._known.clear()
        self._known[digest] = now_s
        return person(name, (), self._grants)

    def _require_tries(self, tried: tuple[str, str], now_s: float) -> None:
        failures = self._failures.get(tried, deque())
        if len(failures) == _MOST_FAILURES and now_s - failures[0] < _FAILURES_S:
            log.warning("too many wrong passwords of %s from %s", ascii(tried[1]), tried[0])
            raise NotAdmitted(429, "Too many wrong passwords. Wait a minute.", {"Retry-After": "60"})

    async def _compare(self, tried: tuple[str, str], password: str, now_s: float) -> None:
        address, name = tried
        if await asyncio.to_thread(self._passwords.are_of, name, password):
            return
        self._failures.setdefault(tried, deque(maxlen=_MOST_FAILURES)).append(now_s)
        if len(self._failures) > _MOST_KNOWN:
            self._failures.pop(next(iter(self._failures)))
        log.warning("a wrong password of %s from %s", ascii(name), address)
        raise _asks("Name or password is wrong.")


class _ByProxy:
    """Whom a proxy names. Only its own address counts, which no header can change."""

    def __init__(self, settings: ConsoleSettings, grants: list[Grant]) -> None:
        if not settings.proxies:
            raise ConfigurationError(
                "console.authentication is 'proxy', and console.proxies isn't set, so no header could be "
                "believed: set the networks of your proxies, e.g. 10.1.2.3/32"
            )
        try:
            self._networks = [ip_network(text) for text in settings.proxies]
        except ValueError as error:
            raise ConfigurationError(f"console.proxies: {error}; expected networks such as 10.1.2.0/24") from error
        self._user, self._groups = settings.user_header, settings.groups_header
        self._grants = [grant._replace(who=_without_case(grant.who)) for grant in grants]

    async def __call__(self, request: web.Request) -> Person:
        peer = ip_address(request.remote or "0.0.0.0")
        if not any(peer in network for network in self._networks):
            raise NotAdmitted(
                403, "This console is reached through a proxy, and your address is none of console.proxies."
            )
        names = request.headers.getall(self._user, [])
        if len(names) != 1 or not names[0].strip():
            raise NotAdmitted(401, f"The proxy must send the header {self._user} once; it came {len(names)} times.")
        if not is_text(names[0].encode(errors="surrogatepass")):
            raise NotAdmitted(401, f"The proxy must send the header {self._user} in UTF-8.")
        groups = request.headers.getall(self._groups, []) if self._groups else []
        if len(groups) > 1:
            raise NotAdmitted(401, f"The proxy must send the header {self._groups} once; it came {len(groups)} times.")
        named = (group.strip() for text in groups for group in text.split(","))
        # A directory behind the proxy may ignore case. Then a person could approve what they asked for themselves.
        return person(_without_case(names[0].strip()), filter(None, named), self._grants)


def _without_case(name: str) -> str:
    """Return the one spelling of a person's name; names of groups stay as they are."""
    return name if name.startswith(GROUP) else unicodedata.normalize("NFKC", name).casefold()


def _asks(sentence: str) -> NotAdmitted:
    return NotAdmitted(401, sentence, {"WWW-Authenticate": 'Basic realm="wait-registry", charset="UTF-8"'})


def _credentials(header: str) -> tuple[str, str]:
    scheme, _, text = header.partition(" ")
    try:
        name, colon, password = base64.b64decode(text.strip(), validate=True).decode().partition(":")
    except ValueError:
        colon = ""
    if scheme.lower() != "basic" or not colon:
        raise _asks("Give your name and password as HTTP Basic authentication.")
    return name, password


def _is_loopback(host: str) -> bool:
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


async def _now(value: Person) -> Person:
    return value
