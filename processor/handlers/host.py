"""Whether a host in an address can be looked up; apart from the clients, so that each loads only its own packages."""

from __future__ import annotations

from ipaddress import AddressValueError, IPv4Address


def can_be_looked_up(host: str) -> bool:
    """Return whether a text is a host name or an address; an IPv6 address comes without its brackets."""
    try:
        if host.replace(".", "").isdigit():
            IPv4Address(host)
        elif ":" not in host:
            host.encode("idna")
    except (AddressValueError, UnicodeError):
        return False
    return True
