"""The project's pages as text: their headings, links, code spans and code blocks."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from tests.evidence import ROOT

_FENCE = re.compile(r"^( *)(```+)([a-z]*) *\n(.*?)^\1\2 *$", re.MULTILINE | re.DOTALL)
_SPAN = re.compile(r"`([^`]+)`")
_LINK = re.compile(r"(?<!!)\[[^\]]*\]\(([^)\s]+)\)")
_HEADING = re.compile(r"^#{1,6} +(.+?) *$", re.MULTILINE)


@dataclass(frozen=True)
class Page:
    """One Markdown file; ``name`` is its path from the project's root."""

    name: str
    text: str

    @property
    def prose(self) -> str:
        return _FENCE.sub("", self.text)

    @property
    def blocks(self) -> list[str]:
        return [match[4] for match in _FENCE.finditer(self.text)]

    @property
    def spans(self) -> list[str]:
        return [" ".join(span.split()) for span in _SPAN.findall(self.prose)]

    @property
    def links(self) -> list[str]:
        return _LINK.findall(self.prose)

    @property
    def anchors(self) -> set[str]:
        """Return the anchors of its headings, as GitHub makes them."""
        seen: Counter[str] = Counter()
        found: set[str] = set()
        for heading in _HEADING.findall(self.prose):
            slug = re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")
            found.add(f"{slug}-{seen[slug]}" if seen[slug] else slug)
            seen[slug] += 1
        return found

    def commands(self, program: str) -> Iterator[str]:
        """Yield what is to be typed: lines of code blocks and code spans that run ``program``, one line each."""
        runs = re.compile(rf"^\s*(?:[A-Z_]+=\S* )*({program} .*)$")
        for line in [line for block in self.blocks for line in block.replace("\\\n", " ").splitlines()] + self.spans:
            if match := runs.match(line):
                yield match[1]


def pages() -> list[Page]:
    files = [
        *ROOT.glob("*.md"),
        *ROOT.glob("docs/**/*.md"),
        *ROOT.glob("examples/**/*.md"),
        *ROOT.glob("deploy/**/*.md"),
        *ROOT.glob("connect-configs/*.md"),
    ]
    return [read(file) for file in sorted(files)]


def read(file: Path) -> Page:
    return Page(str(file.relative_to(ROOT)), file.read_text(encoding="utf-8"))
