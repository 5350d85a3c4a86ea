"""Every page of the console in a real browser: by its policy, for everybody, on any screen, in each theme."""

from __future__ import annotations

import re
from typing import Literal
from urllib.parse import urlencode

import pytest
from axe_playwright_python.sync_playwright import Axe
from playwright.sync_api import Page, expect

from tests.integration.console.addresses import ADDRESSES, PAGES, QUESTIONS
from tests.integration.console.conftest import Visitor
from tests.support.browser import NARROW, Visit, require_accessible, require_narrow
from tests.support.console import Answer, ask
from waitreg.console.pages.routes import ROUTES


def test_each_route_has_its_addresses_here() -> None:
    assert sorted(ADDRESSES) == sorted(route.path for route in ROUTES)


@pytest.mark.parametrize("address", PAGES)
def test_a_page_breaks_no_rule_of_a_browser_and_none_of_axe(window: Visit, address: str) -> None:
    page = window.open(address)
    assert page.title().endswith(" · wait-registry")
    assert page.locator("h1").count() == 1
    require_accessible(page)


def test_no_question_breaks_a_rule_of_a_browser(visit: Visitor) -> None:
    window = visit(viewport=NARROW)
    for address in QUESTIONS:
        page = window.open(address)
        assert window.problems() == [], address
        require_narrow(page)


System = Literal["light", "dark"]
GROUND = {"light": "rgb(255, 255, 255)", "dark": "rgb(21, 25, 30)"}
FORM = {"Content_Type": "application/x-www-form-urlencoded"}
OWN = {"Sec_Fetch_Site": "same-origin"}


def choose(page: Page, theme: str) -> None:
    page.get_by_label("theme").select_option(theme)
    page.get_by_role("button", name="Set").click()
    expect(page.get_by_label("theme")).to_have_value(theme)


@pytest.mark.parametrize("system", ["light", "dark"])
@pytest.mark.parametrize("scripts", [True, False])
def test_a_theme_is_kept_for_all_pages(visit: Visitor, system: System, scripts: bool) -> None:
    page = visit(color_scheme=system, java_script_enabled=scripts).open("/dead-letters?since=2d&by=none")
    expect(page.locator("body")).to_have_css("background-color", GROUND[system])
    other: System = "dark" if system == "light" else "light"
    for chosen, seen in ((other, other), (system, system), ("system", system)):
        choose(page, chosen)
        expect(page).to_have_url(re.compile(r"/dead-letters\?since=2d&by=none$"))
        page.get_by_role("link", name="Jobs", exact=True).click()
        expect(page.locator("h1")).to_have_text("Jobs")
        expect(page.locator("body")).to_have_css("background-color", GROUND[seen])
        page.go_back()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_a_chosen_theme_has_enough_contrast(visit: Visitor, theme: System) -> None:
    system: System = "dark" if theme == "light" else "light"
    window: Visit = visit(color_scheme=system)
    choose(window.open("/"), theme)
    for address in PAGES:
        page = window.open(address)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == GROUND[theme]
        found = Axe().run(page, options={"runOnly": ["color-contrast", "target-size"]})
        assert found.violations_count == 0, (address, found.generate_report())
    assert window.problems() == []


def post(origin: str, theme: str, **headers: str) -> Answer:
    port = int(origin.rpartition(":")[2])
    return ask(port, "/theme", "POST", urlencode({"theme": theme}), **{**FORM, **headers})


def test_the_cookie_is_out_of_reach_for_scripts_and_other_sites(origin: str) -> None:
    answer = post(origin, "dark", **OWN)
    assert (answer.status, answer.headers["Location"]) == (303, "/")
    cookie = answer.headers["Set-Cookie"]
    for part in ("waitreg-theme=dark", "HttpOnly", "SameSite=Lax", "Path=/"):
        assert part in cookie


@pytest.mark.parametrize(
    ("referer", "location"),
    [
        ("{origin}/jobs?x=1", "/jobs?x=1"),
        ("https://attacker.example/jobs", "/"),
        ("{origin}//attacker.example/", "/"),
        ("{origin}/\\attacker.example/", "/"),
        ("", "/"),
    ],
)
def test_it_leads_back_to_this_console_alone(origin: str, referer: str, location: str) -> None:
    answer = post(origin, "light", **OWN, Referer=referer.format(origin=origin))
    assert answer.headers["Location"] == location


def test_another_site_can_not_choose_it(origin: str) -> None:
    assert post(origin, "dark", Sec_Fetch_Site="cross-site").status == 403
    assert post(origin, "dark", Origin="https://attacker.example").status == 403


def test_what_is_no_theme_is_refused_and_ignored(origin: str) -> None:
    assert post(origin, "neon", **OWN).status == 400
    port = int(origin.rpartition(":")[2])
    page = ask(port, "/help", Cookie='waitreg-theme="><script>')
    assert page.status == 200 and b'<html lang="en">' in page.body
    assert b'<html lang="en" class="dark">' in ask(port, "/help", Cookie="waitreg-theme=dark").body
    assert b'<html lang="en" class="dark">' in ask(port, "/elsewhere", Cookie="waitreg-theme=dark").body
