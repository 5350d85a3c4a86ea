"""Who may do what with dead letters: nothing without a grant for the group and for each topic."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from pathlib import Path

import pytest

import waitreg.console
from tests.support.jobs import requested
from wait_registry.dead_letters.filter import parse_filter
from wait_registry.errors import ConfigurationError
from wait_registry.records.operation import Kind, Replacement, Requested
from waitreg.console.access.grants import Person, Right, parse_grants, person, role_with
from waitreg.console.access.permission import may_follow, permit, permit_approval, rights, select
from waitreg.console.refusals import NotAllowed
from waitreg.redrive.job_decision import DONE

EDIT = Replacement(edited="0" * 64)
NOW = datetime(2026, 11, 27, 8, tzinfo=UTC)


def olga(*grants: str, name: str = "olga") -> Person:
    """Return a person with these grants, each without its name."""
    return person(name, (), parse_grants(f"{name} {grant}" for grant in grants))


def job(*conditions: str, **changes: object) -> Requested:
    """Return a job of the group shop."""
    return requested("shop", conditions, **{"authenticated": True, "via": "console", **changes})


@pytest.mark.parametrize(
    ("grant", "asked", "missing"),
    [
        ("viewer", job(), "operator"),
        ("support", job(kind=Kind.ARCHIVE), "operator"),
        ("operator", job(), ""),
        ("operator", job(kind=Kind.RESTORE), ""),
        ("operator", job(allowed=("may_be_done", "no_members")), ""),
        ("operator", job(allowed=("already_redriven",)), "admin"),
        ("operator", job(allowed=("finished_late",)), "admin"),
        ("operator", job(allowed=("max_redrives",)), "admin"),
        ("operator", job(target="origin"), "admin"),
        ("admin", job(target="origin", allowed=("already_redriven",)), ""),
        ("support", job(replacement=EDIT), "operator"),
        ("operator", job(replacement=EDIT), ""),
        ("operator", job(replacement=EDIT.model_copy(update={"new_key": True})), "admin"),
        ("admin", job(replacement=EDIT.model_copy(update={"new_key": True})), ""),
        ("operator sh*", job(), ""),
        ("operator other", job(), "operator"),
        ("operator shop orders", job(), "operator"),
        ("operator shop orders", job("topic=orders"), ""),
        ("operator shop orders", job("topic=orders", "topic=refunds"), "operator"),
        ("operator shop orders", job("topic=orders", "topic~o"), "operator"),
        ("operator shop orders", job("topic!=refunds"), "operator"),
        ("operator shop orders*", job("topic=orders*"), "operator"),
        ("operator shop orders*", job("topic=orders.eu"), ""),
        (r"operator shop a\*", job(r"topic=a\*"), ""),
        (r"operator shop a\*", job("topic=ab"), "operator"),
    ],
)
def test_a_job_needs_its_role_for_all_that_it_is_about(grant: str, asked: Requested, missing: str) -> None:
    if not missing:
        assert permit(olga(grant), asked).job == asked
    else:
        with pytest.raises(NotAllowed, match=f"you need the role {missing}"):
            permit(olga(grant), asked)


@pytest.mark.parametrize(
    ("grants", "conditions", "found", "chosen"),
    [
        (("operator",), ("group=*",), [("shop", "orders"), ("shop", None)], "group=shop"),
        (("operator shop",), ("error=E",), [("shop", "orders")], "error=E group=shop"),
        (
            ("viewer", "operator shop orders"),
            ("topic=*", "topic!=x"),
            [("shop", "orders"), ("shop", "refunds"), ("shop", None)],
            "topic!=x group=shop topic=orders",
        ),
        (("operator * a\\*b",), ("topic~a",), [("s*p", "a*b")], r"group=s\*p topic=a\*b"),
        (
            ("operator shop a", "operator shop b"),
            ("place=d:0:1",),
            [("shop", "b"), ("shop", "a")],
            "place=d:0:1 group=shop topic=a topic=b",
        ),
    ],
)
def test_a_selection_is_narrowed_to_the_grants(
    grants: tuple[str, ...], conditions: tuple[str, ...], found: list[tuple[str | None, ...]], chosen: str
) -> None:
    asked = parse_filter(conditions, NOW)
    assert str(select(olga(*grants), Kind.REDRIVE, asked, rights(Kind.REDRIVE), found).chosen) == chosen


def test_what_is_about_other_groups_or_several_is_refused() -> None:
    asked, needed = parse_filter(["error=E"], NOW), rights(Kind.REDRIVE)
    with pytest.raises(NotAllowed, match="you need the role operator"):
        select(olga("viewer", "operator other"), Kind.REDRIVE, asked, needed, [("shop", "orders")])
    for found, says in (
        ([], "no dead letter"),
        ([("a", "t"), ("b", "t")], "several groups are meant"),
        ([(None, None)], "name no consumer group"),
    ):
        with pytest.raises(ConfigurationError, match=says):
            select(olga("operator"), Kind.REDRIVE, asked, needed, found)


def test_a_person_follows_jobs_of_whole_groups_and_their_own() -> None:
    assert may_follow(olga("viewer sh*"), job())
    assert not may_follow(olga("viewer shop orders"), job())
    assert not may_follow(olga("viewer other"), job())
    anna = olga("operator shop orders", name="anna")
    assert may_follow(anna, job())
    assert not may_follow(anna, job(via="command", authenticated=False))


def test_only_another_person_with_the_role_approves_a_job() -> None:
    assert permit_approval(olga("operator"), job()).person.name == "olga"
    everybody = olga("admin")._replace(authenticated=False)
    for who, asked, says in (
        (olga("operator", name="anna"), job(), "another person"),
        (olga("admin", name="anna"), job(via="command", authenticated=False), "another person"),
        (everybody, job(), "names the console checks"),
        (olga("support"), job(), "the role operator"),
        (olga("operator shop orders"), job(), "the role operator"),
        (olga("operator"), job(target="origin"), "the role admin"),
    ):
        with pytest.raises(NotAllowed, match=says):
            permit_approval(who, asked)


@pytest.mark.parametrize("kind", Kind)
def test_many_at_once_need_the_role_admin(kind: Kind) -> None:
    asked = job(kind=kind, expected={DONE[kind]: 11, "no_members": 99})
    operator, admin = (olga(role)._replace(bulk_above=10) for role in ("operator", "admin"))
    with pytest.raises(NotAllowed, match=r"the role admin .* 11 dead letters \(console.bulk_above\)"):
        permit(operator, asked)
    assert permit(admin, asked).job == asked
    for few in (asked.model_copy(update={"limit": 10}), job(kind=kind, expected={DONE[kind]: 10})):
        assert permit(operator, few).job == few
    assert permit(olga("operator"), asked).job == asked


def test_the_least_role_with_some_rights() -> None:
    expected = ["viewer", "support", *["operator"] * 5, *["admin"] * 4]
    assert [role_with([right]) for right in Right] == expected


def test_nothing_else_makes_a_selection_or_a_permission() -> None:
    (folder,) = map(Path, waitreg.console.__path__)
    makers = {
        path.name for path in folder.rglob("*.py") if re.search(r"\b(Selection|Permission)\(", path.read_text("utf-8"))
    }
    assert makers == {"permission.py"}
