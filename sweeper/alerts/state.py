"""The state of one alert: from ok over pending to firing and back, and which message its receiver lacks.

        too many              for 'for' long                fewer than 'below'
    ok ----------> pending ----------------> firing ----------------------------> ok, until it is delivered: resolved
    ok <---------- pending
        no longer

Nothing is queued. What is due follows from the state, so a receiver that was away gets the latest message.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum
from typing import NamedTuple

from wait_registry.settings.alerts import AlertRule


class Phase(Enum):
    """Whether there are too many dead letters."""

    OK = "ok"
    PENDING = "pending"
    FIRING = "firing"


class Message(NamedTuple):
    """What a receiver is sent: that an alert fires, or that it has ended.

    Attributes:
        began_s: when there began to be too many, s since the epoch.
        ended_s: when there were no longer too many; None while it fires.
        dead_letters: how many, when the alert was evaluated last.
    """

    began_s: float
    ended_s: float | None
    dead_letters: int


@dataclass(frozen=True, slots=True)
class Alert:
    """The state of one rule; times are s since the epoch.

    Attributes:
        phase: now.
        began_s: when there began to be too many dead letters.
        dead_letters: how many, when it was evaluated last.
        sent_s: when the receiver took the last message that it fires; None if it has taken none.
        ended: the message that it has ended, until the receiver takes it or the alert fires again.
    """

    phase: Phase = Phase.OK
    began_s: float = 0.0
    dead_letters: int = 0
    sent_s: float | None = None
    ended: Message | None = None

    def observed(self, rule: AlertRule, count: int, now_s: float) -> Alert:
        """Return the state after an evaluation.

        Args:
            rule: of this alert.
            count: of dead letters now.
            now_s: s since the epoch; a clock that was set back makes nothing later than now.
        """
        if self.phase is Phase.FIRING:
            if count >= (rule.above + 1 if rule.below is None else rule.below):
                return replace(self, dead_letters=count)
            return Alert(dead_letters=count, ended=Message(min(self.began_s, now_s), now_s, count))
        if count <= rule.above:
            return Alert(dead_letters=count, ended=self.ended)
        began_s = now_s if self.phase is Phase.OK else min(self.began_s, now_s)
        if now_s - began_s >= rule.hold_s:
            return Alert(Phase.FIRING, began_s, count)
        return Alert(Phase.PENDING, began_s, count, ended=self.ended)

    def due(self, rule: AlertRule, now_s: float) -> Message | None:
        """Return the message that the receiver should get now; None if it knows all."""
        if self.phase is not Phase.FIRING:
            return self.ended
        if self.sent_s is None or not 0 <= now_s - self.sent_s < rule.every_s:
            return Message(min(self.began_s, now_s), None, self.dead_letters)
        return None

    def delivered(self, message: Message, now_s: float) -> Alert:
        """Return the state after the receiver has taken a message."""
        return replace(self, sent_s=now_s) if message.ended_s is None else replace(self, ended=None)
