"""What settings of several sections can get wrong in the same way."""

from __future__ import annotations

from collections.abc import Iterator
from urllib.parse import urlsplit

from pydantic import SecretStr

from wait_registry.diagnosis import Diagnosis, error


def tls_problems(
    section: str, unused: str, ca: str | None, certificate: str | None = None, key: SecretStr | None = None
) -> Iterator[Diagnosis]:
    """Refuse texts that aren't PEM, a certificate without its key, and what isn't used; ``unused`` says why, if so."""
    secret = None if key is None else key.get_secret_value()
    for name, text in {"ca": ca, "certificate": certificate, "key": secret}.items():
        if text is not None and "-----BEGIN" not in text:
            yield error(
                f"{section}.{name} isn't PEM text (it has no '-----BEGIN' line): give the text, or the path of its "
                f"file as {section}.{name}_file"
            )
        if text and unused:
            yield error(f"{section}.{name} is set, but {unused}")
    yield from pair_problems(section, "mutual TLS", certificate=certificate, key=key)


def pair_problems(section: str, use: str, **values: object) -> Iterator[Diagnosis]:
    """Refuse one of two settings without the other; ``use`` is what needs both."""
    given = [name for name, value in values.items() if value is not None]
    if len(given) == 1:
        (absent,) = set(values) - set(given)
        yield error(f"{section}.{given[0]} is set without {section}.{absent}: {use} needs both")


def server_problems(section: str, url: str, username: str | None, password: object) -> Iterator[Diagnosis]:
    """Refuse what is no http(s) address of a server, or several with commas, and a user in it or without a password."""
    addresses = [urlsplit(each.strip()) for each in url.split(",")]
    if any("@" in one.netloc for one in addresses):
        yield error(f"{section}.url names a user: give {section}.username and {section}.password instead")
    elif not all(one.scheme in ("http", "https") and one.hostname for one in addresses):
        yield error(f"{section}.url is {url!r}: expected http(s)://host:port, or several with commas")
    yield from pair_problems(section, "basic authentication", username=username, password=password)


def more_than(low: str, low_value: float, high: str, high_value: float, why: str = "", unit: str = "") -> Diagnosis:
    """Return the error of a value that is larger than the one which it must not exceed."""
    seen, limit = f"{low_value:.16g}{unit}", f"{high_value:.16g}{unit}"
    return error(f"{low} is {seen}, more than {high} = {limit}{why}: lower the first or raise the second")
