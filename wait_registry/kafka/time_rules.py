"""The rules about time that a group's processors follow, and where those of its commits differ from one's own.

Every registration carries its own expiry, so that processors of one group may follow different rules, as they do while
a change is rolled out. What must not differ for long is the allowance for clocks: a sweeper with a smaller one than the
processors count on exports records that they may still finish.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from wait_registry.settings.root import Settings


@dataclass(frozen=True, slots=True)
class TimeRules:
    """What a processor counts on: the time to live of its registrations and the clock difference it allows for, s."""

    ttl_s: float
    skew_allowance_s: float

    @classmethod
    def of(cls, settings: Settings) -> TimeRules:
        """Return the rules of these settings."""
        return cls(settings.processor.ttl_s, settings.wait.skew_allowance_s)


@dataclass(frozen=True, slots=True)
class RuleDifference:
    """One rule under which a group has committed offsets, and that of whoever compares; both in s."""

    group: str
    setting: str
    committed_s: float
    own_s: float

    def __str__(self) -> str:
        """Return what was seen, what follows from it and what to do."""
        return (
            f"group {self.group} has committed offsets under {self.setting} = {self.committed_s:g} s, here it is "
            f"{self.own_s:g} s: {_CONSEQUENCES[self.setting]}"
        )


_CONSEQUENCES = {
    "processor.ttl_s": "each record expires by the rule of the processor that registered it, so some are exported "
    "sooner than others after a crash. Right while a change is rolled out; else give all processors of the group one "
    "value",
    "wait.skew_allowance_s": "the sweeper's value decides how long after its expiry a record is exported, and with a "
    "smaller one than a processor counts on, a record that is being finished may be exported as well. Give processors "
    "and sweeper one value, the largest",
}


def differences(group: str, committed: Iterable[TimeRules], own: TimeRules) -> Iterator[RuleDifference]:
    """Yield where the rules of a group's commits differ from one's own, each difference once."""
    rules = sorted(set(committed), key=lambda rule: (rule.ttl_s, rule.skew_allowance_s))
    for ttl_s in dict.fromkeys(rule.ttl_s for rule in rules):
        if ttl_s != own.ttl_s:
            yield RuleDifference(group, "processor.ttl_s", ttl_s, own.ttl_s)
    yield from allowance_differences(group, rules, own.skew_allowance_s)


def allowance_differences(
    group: str, committed: Iterable[TimeRules], own_allowance_s: float
) -> Iterator[RuleDifference]:
    """Yield the clock allowances of a group's commits that differ from one's own, each once."""
    for allowance_s in sorted({rule.skew_allowance_s for rule in committed} - {own_allowance_s}):
        yield RuleDifference(group, "wait.skew_allowance_s", allowance_s, own_allowance_s)
