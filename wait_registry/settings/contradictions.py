"""What settings of several sections can get wrong in the same way."""

from __future__ import annotations

from collections.abc import Iterator

from wait_registry.diagnosis import Diagnosis, error


def pem_problems(name: str, text: str | None) -> Iterator[Diagnosis]:
    """Refuse a text that isn't PEM."""
    if text is not None and "-----BEGIN" not in text:
        yield error(
            f"{name} isn't PEM text (it has no '-----BEGIN' line): give the text, or the path of its file as "
            f"{name}_file"
        )


def pair_problems(section: str, use: str, **values: object) -> Iterator[Diagnosis]:
    """Refuse one of two settings without the other; ``use`` is what needs both."""
    given = [name for name, value in values.items() if value is not None]
    if len(given) == 1:
        (absent,) = set(values) - set(given)
        yield error(f"{section}.{given[0]} is set without {section}.{absent}: {use} needs both")


def more_than(low: str, low_value: float, high: str, high_value: float, why: str = "", unit: str = "") -> Diagnosis:
    """Return the error of a value that is larger than the one which it must not exceed."""
    seen, limit = f"{low_value:.16g}{unit}", f"{high_value:.16g}{unit}"
    return error(f"{low} is {seen}, more than {high} = {limit}{why}: lower the first or raise the second")
