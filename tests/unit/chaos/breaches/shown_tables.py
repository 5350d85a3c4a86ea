"""The tables of a history that has them."""

from __future__ import annotations

from collections.abc import Sequence

from tests.chaos.history.history import History
from tests.chaos.history.rows import DeadLetterRow, ProgressRow


def letter_rows(history: History) -> Sequence[DeadLetterRow]:
    """Return the rows of ``dead_letter``."""
    assert history.dead_letter_rows is not None
    return history.dead_letter_rows


def progress(history: History) -> Sequence[ProgressRow]:
    """Return the rows of ``sink_progress``."""
    assert history.progress_rows is not None
    return history.progress_rows
