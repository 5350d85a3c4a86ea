"""A message in words: what it is about, since when, and where its dead letters are.

It has what the settings say of the rule, the number of dead letters and the times. It has nothing of any record.
"""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Final, NamedTuple
from urllib.parse import urlencode

from sweeper.alerts.state import Message
from wait_registry.records.delays import parse_delay
from wait_registry.settings.alerts import NOT_EVALUATED, AlertRule

# Counting ends here or at the rule's own limit, so that a large backlog costs no more.
MOST: Final = 10_000
# Of a rule without a window: the console takes no longer time.
_ANY_AGE: Final = "365d"
# That the rules can't be evaluated is an alert of its own: its count is the number of these rules.
TROUBLE: Final = AlertRule(name=NOT_EVALUATED, **{"for": "5m"})


class Notice(NamedTuple):
    """What a receiver shows; times are s since the epoch, and an alert that fires has no end.

    ``console`` is the address of the console, and ``link`` that of the dead letters in it; both are "" without one.
    """

    name: str
    summary: str
    details: str
    console: str
    link: str
    began_s: float
    ended_s: float | None

    @property
    def status(self) -> str:
        """Return the word for it, as Alertmanager has it."""
        return "firing" if self.ended_s is None else "resolved"


def most_counted(rule: AlertRule) -> int:
    """Return the number at which counting for a rule ends."""
    return max(MOST, rule.above + 1)


def notice_of(rule: AlertRule, message: Message, console_url: str) -> Notice:
    """Return a message in words.

    Args:
        rule: of the alert, or `TROUBLE`.
        message: that it fires, or has ended.
        console_url: address of the console; "" if none is set.
    """
    console, times = console_url.rstrip("/"), (message.began_s, message.ended_s)
    if rule is TROUBLE:
        details = "The sweeper's log has the reason. An alert may be missing meanwhile."
        return Notice(rule.name, _trouble(message), details, console, "", *times)
    details = f"Conditions: {' '.join(rule.filter)}" if rule.filter else "All dead letters count."
    return Notice(rule.name, _too_many(rule, message), details, console, _link(rule, message, console), *times)


def _too_many(rule: AlertRule, message: Message) -> str:
    number = (
        f"{message.dead_letters:,} or more"
        if message.dead_letters >= most_counted(rule)
        else f"{message.dead_letters:,}"
    )
    count = f"{number} dead letter{'' if number == '1' else 's'}"
    if rule.window is not None:
        count += f" of the last {rule.window}"
    if message.ended_s is None:
        return f"{count}, more than {rule.above:,} since {_utc(message.began_s)}"
    return f"{count}. There were more than {rule.above:,} from {_utc(message.began_s)} to {_utc(message.ended_s)}"


def _trouble(message: Message) -> str:
    if message.ended_s is None:
        return f"The sweeper can't evaluate {message.dead_letters} of its alert rules since {_utc(message.began_s)}"
    return f"All rules are evaluated again. They were not from {_utc(message.began_s)} to {_utc(message.ended_s)}"


def _link(rule: AlertRule, message: Message, console: str) -> str:
    # From the window in which it began, so that the link shows its first dead letters whenever it is followed.
    since = _ANY_AGE if rule.window is None else rfc3339(message.began_s - parse_delay(rule.window))
    pairs = [*(("where", one) for one in rule.filter), ("since", since), ("by", "none")]
    return f"{console}/dead-letters?{urlencode(pairs)}" if console else ""


def rfc3339(time_s: float) -> str:
    """Return a moment, s since the epoch, as RFC 3339 has it, in UTC."""
    return datetime.fromtimestamp(time_s, UTC).isoformat(timespec="milliseconds").replace("+00:00", "Z")


def _utc(time_s: float) -> str:
    return f"{datetime.fromtimestamp(time_s, UTC):%Y-%m-%d %H:%M:%S} UTC"
