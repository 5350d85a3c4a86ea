"""The console: where it listens, who may see and do what, and how long a page may take."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field, SecretStr

from wait_registry.settings import Section


class Authentication(StrEnum):
    """How the console knows who looks."""

    NONE = "none"
    BASIC = "basic"
    PROXY = "proxy"
    OIDC = "oidc"


class OidcSettings(Section):
    """OpenID Connect: the issuer at which people log in, and what of its ID tokens names them."""

    issuer: str = ""
    """address of the issuer, exactly as it calls itself, e.g. https://login.example/realms/staff"""
    client_id: str = ""
    """what the console is registered as there"""
    client_secret: SecretStr | None = None
    """secret of that registration; without it, the console is a public client"""
    scopes: tuple[str, ...] = ("openid", "profile")
    """scopes that a login asks for; openid is needed"""
    name_claim: str = Field("sub", min_length=1)
    """claim with the name of the person; one that they can't change themselves"""
    groups_claim: str = Field("groups", min_length=1)
    """claim with the names of their groups"""


class ConsoleSettings(Section):
    """The web console for support staff; it only reads, unless you let it act."""

    read_only: bool = True
    """whether pages only show; false lets operators redrive, archive and restore dead letters, which needs the Kafka
    permissions of deploy/kafka/redrive.sh
    """
    edit: bool = False
    """whether operators may send a dead letter's record with changes; it needs read_only = false"""
    host: str = "127.0.0.1"
    """address to listen on; loopback unless you set another"""
    port: int = Field(8088, ge=0, le=65_535)
    """port to listen on; 0 takes a free one"""
    hosts: tuple[str, ...] = ()
    """names by which browsers reach it, besides those of loopback; requests for others are refused"""
    authentication: Authentication = Authentication.NONE
    """who looks: 'none' (all users of this machine; they see all), 'basic' (name and password), 'proxy' (a proxy in
    front of it names them) or 'oidc' (they log in at an issuer of OpenID Connect)
    """
    behind_tls: bool = False
    """confirm that browsers reach it by TLS; needed for passwords and logins if it isn't on loopback"""
    users: str = ""
    """file with the lines of `waitreg console --password-of NAME`"""
    proxies: tuple[str, ...] = ()
    """networks of the proxies whose headers are believed, as CIDR"""
    user_header: str = Field("X-Forwarded-User", min_length=1)
    """header in which a proxy names the person"""
    groups_header: str = ""
    """header in which a proxy names their groups, with commas in between; by default no groups"""
    oidc: OidcSettings = OidcSettings()
    """login at an issuer of OpenID Connect"""
    signing_key: SecretStr | None = Field(None, min_length=32)
    """signs forms and sessions, at least 32 characters; consoles with the same one accept each other's; by default
    random, so that a restart ends all of them
    """
    grants: tuple[str, ...] = ()
    """who may see what: WHO ROLE [GROUP [TOPIC]], e.g. 'group:support support payments* *'; roles: viewer (rows),
    support (and contents), operator (and downloads, redrives, archives, edits), admin (and what is hidden, many at
    once, what can be done twice, and edits of keys)
    """
    bulk_above: int | None = Field(1000, ge=0)
    """a job of more dead letters needs the role admin, whatever it does with them"""
    masks: tuple[str, ...] = ()
    """what is hidden, except from an admin who gives a reason: TOPIC PART, where PART is key, value, value.PATH or
    header:NAME, e.g. 'orders* value.card.number'
    """
    page_timeout_s: float = Field(5.0, gt=0, le=60)
    """how long Postgres may take for one question, s"""
