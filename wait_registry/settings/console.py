"""The console: where it listens, who may see and do what, and how long a page may take."""

from __future__ import annotations

from enum import StrEnum

from pydantic import Field

from wait_registry.settings import Section


class Authentication(StrEnum):
    """How the console knows who looks."""

    NONE = "none"
    BASIC = "basic"
    PROXY = "proxy"


class ConsoleSettings(Section):
    """The web console for support staff; it only reads, unless you let it act."""

    read_only: bool = Field(
        True,
        description="whether pages only show; false lets operators redrive, archive and restore dead letters, which"
        " needs the Kafka permissions of deploy/kafka/redrive.sh",
    )
    host: str = Field("127.0.0.1", description="address to listen on; loopback unless you set another")
    port: int = Field(8088, ge=0, le=65_535, description="port to listen on; 0 takes a free one")
    hosts: tuple[str, ...] = Field(
        (), description="names by which browsers reach it, besides those of loopback; requests for others are refused"
    )
    authentication: Authentication = Field(
        Authentication.NONE,
        description="who looks: 'none' (all users of this machine; they see all), 'basic' (name and password)"
        " or 'proxy' (a proxy in front of it names them)",
    )
    behind_tls: bool = Field(
        False, description="confirm that browsers reach it by TLS; needed for passwords if it isn't on loopback"
    )
    users: str = Field("", description="file with the lines of `waitreg console --password-of NAME`")
    proxies: tuple[str, ...] = Field((), description="networks of the proxies whose headers are believed, as CIDR")
    user_header: str = Field("X-Forwarded-User", min_length=1, description="header in which a proxy names the person")
    groups_header: str = Field(
        "", description="header in which a proxy names their groups, with commas in between; by default no groups"
    )
    grants: tuple[str, ...] = Field(
        (),
        description="who may see what: WHO ROLE [GROUP [TOPIC]], e.g. 'group:support support payments* *';"
        " roles: viewer (rows), support (and contents), operator (and downloads, redrives, archives), admin (and what"
        " can be done twice)",
    )
    masks: tuple[str, ...] = Field(
        (),
        description="what is hidden from everybody: TOPIC PART, where PART is key, value, value.PATH or header:NAME,"
        " e.g. 'orders* value.card.number'",
    )
    page_timeout_s: float = Field(5.0, gt=0, le=60, description="how long Postgres may take for one question, s")
