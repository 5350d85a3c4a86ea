"""Why a request gets no page or changes nothing: each refusal has the status and the title of the page that says it."""

from __future__ import annotations

from collections.abc import Mapping


class Refusal(Exception):
    """A request gets a page that says why there is no other; the message says what to do."""

    status: int
    title: str


class NotAllowed(Refusal):
    """A page or an action needs a right that the person doesn't have; the message says which."""

    status = 403
    title = "You may not see or do this"


class NotThere(Refusal):
    """No such page; the message says what there is."""

    status = 404
    title = "There is nothing here"


class Busy(Refusal):
    """It can't be done now; the message says what it waits for."""

    status = 409
    title = "Not now"


class NotAdmitted(Refusal):
    """It isn't known who sends a request, or the request may be another site's.

    Args:
        status: of HTTP.
        sentence: what to do.
        headers: of the answer.
    """

    title = "You can't be let in"

    def __init__(self, status: int, sentence: str, headers: Mapping[str, str] | None = None) -> None:
        super().__init__(sentence)
        self.status = status
        self.headers = headers or {}
