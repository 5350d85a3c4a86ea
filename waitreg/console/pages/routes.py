"""All addresses of the console and the pages that they show."""

from __future__ import annotations

from typing import Final, Generic, Literal, NamedTuple

from wait_registry.records.operation import State
from waitreg.console.actions.actions import Actions
from waitreg.console.page import Acts, Fixed, View
from waitreg.console.pages import dead_letters, dry_run, editing, job_changes, jobs, now, questions


class Route(NamedTuple, Generic[Acts]):
    """An address, with the names of what varies in it, its page, and the method with which it is asked for."""

    path: str
    view: View[Acts] | Fixed
    method: Literal["GET", "POST", "PUT"] = "GET"


_PLACE: Final = r"{topic}/{partition:[0-9]{1,9}}/{offset:[0-9]{1,18}}"
_DEAD_LETTER: Final = f"/dead-letters/{_PLACE}"
_EDIT: Final = f"/edit/{_PLACE}"
_NEW: Final = "/{kind:redrive|archive|restore}/new"
_JOB: Final = r"/jobs/{job:[0-9a-zA-Z-]{1,64}}"
# A console that only reads has these alone.
ROUTES: Final[tuple[Route[Actions | None], ...]] = (
    Route("/", now.now),
    Route("/instances", questions.page_of("Instances", questions.INSTANCES)),
    Route("/timeline", questions.page_of("Timeline", questions.TIMELINE)),
    Route("/system", questions.page_of("System", questions.SYSTEM)),
    Route("/questions/{name}", questions.question),
    Route("/records", questions.record),
    Route("/dead-letters", dead_letters.dead_letters_page),
    Route(_DEAD_LETTER, dead_letters.dead_letter_page),
    Route(f"{_DEAD_LETTER}/value", dead_letters.value_of_dead_letter),
    Route("/jobs", jobs.jobs),
    Route(_JOB, jobs.job),
    Route("/audit", jobs.audit),
    Route("/help", Fixed(questions.help_page)),
)
# A POST has a form, a PUT has bytes.
ACTING: Final[tuple[Route[Actions], ...]] = (
    Route(_NEW, dry_run.new),
    Route(_NEW, dry_run.start, "POST"),
    Route(f"{_DEAD_LETTER}/reveal", dead_letters.reveal, "POST"),
    Route(f"{_JOB}/approve", job_changes.approve, "POST"),
    Route(f"{_JOB}/pause", job_changes.change_to(State.PAUSED), "POST"),
    Route(f"{_JOB}/resume", job_changes.change_to(State.RUNNING), "POST"),
    Route(f"{_JOB}/rate", job_changes.rate, "POST"),
    Route(f"{_JOB}/cancel", job_changes.change_to(State.CANCELLED), "POST"),
)
# For a console that acts and has the setting console.edit.
EDITING: Final[tuple[Route[Actions], ...]] = (
    Route(_EDIT, editing.edit),
    Route(_EDIT, editing.review_edit, "PUT"),
    Route(f"{_EDIT}/send", editing.send, "PUT"),
)
