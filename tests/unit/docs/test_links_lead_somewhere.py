"""Every link within the pages leads to a file that exists, and to a heading that is in it."""

from __future__ import annotations

import pytest

from tests.evidence import ROOT
from tests.support.pages import Page, pages, read

LINKS = [(page, link) for page in pages() for link in page.links if not link.startswith(("http://", "https://"))]


@pytest.mark.parametrize(("page", "link"), LINKS, ids=[f"{page.name}->{link}" for page, link in LINKS])
def test_a_link_leads_somewhere(page: Page, link: str) -> None:
    path, _, anchor = link.partition("#")
    target = (ROOT / page.name).parent / path if path else ROOT / page.name
    assert target.exists(), f"{page.name} links to {path}, which is not there"
    if anchor:
        assert target.suffix == ".md"
        assert anchor in read(target.resolve()).anchors, f"{path or page.name} has no heading #{anchor}"
