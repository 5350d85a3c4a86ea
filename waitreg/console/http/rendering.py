"""Templates to HTML. Every value is escaped; a value that is missing is an error."""

from __future__ import annotations

from functools import cache

from jinja2 import Environment, PackageLoader, StrictUndefined

from wait_registry.dead_letters.filter import literal
from wait_registry.postgres.query_file import query_names
from waitreg.console.formatting import ago, cells, dead_letter_link, shown
from waitreg.console.http.theme import CURRENT, Theme
from waitreg.console.page import MOST_REASON, Page, address


def render(page: Page) -> str:
    """Return the HTML of a page, in the theme of the request that is being answered."""
    return _environment().get_template(page.template).render({**page.values, "theme": CURRENT.get()})


def _pieces(text: str) -> list[tuple[str, str]]:
    """Return a text by its names in backticks: what stands before each, and the name; the last has none."""
    parts = [*text.split("`"), ""]
    return list(zip(parts[::2], parts[1::2], strict=False))


@cache
def _environment() -> Environment:
    environment = Environment(
        loader=PackageLoader("waitreg.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    environment.globals.update(cells=cells, shown=shown, ago=ago, address=address, literal=literal, pieces=_pieces)
    environment.globals.update(most_reason=MOST_REASON, themes=tuple(Theme), questions=frozenset(query_names()))
    environment.globals.update(dead_letter_link=dead_letter_link)
    return environment
