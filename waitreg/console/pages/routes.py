"""All addresses of the console and the pages that they show."""

from __future__ import annotations

from typing import Final, NamedTuple

from waitreg.console.page import Fixed, View
from waitreg.console.pages import acting, dead_letters, editing, jobs, now, questions


class Route(NamedTuple):
    """An address, with the names of what varies in it, and its page.

    One that ``changes`` something takes POST, or PUT if it ``takes_bytes``.
    """

    path: str
    view: View | Fixed
    changes: bool = False
    takes_bytes: bool = False


_PLACE: Final = r"{topic}/{partition:[0-9]{1,9}}/{offset:[0-9]{1,18}}"
_DEAD_LETTER: Final = f"/dead-letters/{_PLACE}"
_EDIT: Final = f"/edit/{_PLACE}"
_NEW: Final = "/{kind:redrive|archive|restore}/new"
_JOB: Final = r"/jobs/{job:[0-9a-zA-Z-]{1,64}}"
# A console that only reads has these alone.
ROUTES: Final = (
    Route("/", now.now),
    Route("/instances", questions.page_of("Instances", questions.INSTANCES)),
    Route("/timeline", questions.page_of("Timeline", questions.TIMELINE)),
    Route("/system", questions.page_of("System", questions.SYSTEM)),
    Route("/questions/{name}", questions.question),
    Route("/records", questions.record),
    Route("/dead-letters", dead_letters.dead_letters),
    Route(_DEAD_LETTER, dead_letters.dead_letter),
    Route(f"{_DEAD_LETTER}/value", dead_letters.value_of_dead_letter),
    Route("/jobs", jobs.jobs),
    Route(_JOB, jobs.job),
    Route("/audit", jobs.audit),
    Route("/help", Fixed(questions.help_page)),
)
ACTING: Final = (
    Route(_NEW, acting.new),
    Route(_NEW, acting.start, changes=True),
    Route(f"{_DEAD_LETTER}/reveal", dead_letters.reveal, changes=True),
    Route(f"{_JOB}/approve", acting.approve, changes=True),
    Route(f"{_JOB}/pause", acting.pause, changes=True),
    Route(f"{_JOB}/resume", acting.resume, changes=True),
    Route(f"{_JOB}/rate", acting.rate, changes=True),
    Route(f"{_JOB}/cancel", acting.cancel, changes=True),
)
# For a console that acts and has the setting console.edit.
EDITING: Final = (
    Route(_EDIT, editing.edit),
    Route(_EDIT, editing.review_edit, changes=True, takes_bytes=True),
    Route(f"{_EDIT}/send", editing.send, changes=True, takes_bytes=True),
)
