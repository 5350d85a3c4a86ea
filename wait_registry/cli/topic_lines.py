"""What was found out about topics, as lines: one for a topic that is as it must be, else one a broken rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import TYPE_CHECKING

from wait_registry.cli.check_line import CheckLine, Standing

if TYPE_CHECKING:
    from wait_registry.kafka.topic_rules import Finding
    from wait_registry.settings.root import Settings


def topic_lines(findings: Iterable[Finding], settings: Settings) -> Iterator[CheckLine]:
    """Yield the lines that say how each topic stands; findings of one topic follow one another.

    A line's id is ``topic.<role>``, followed by the rule when it is broken: ``topic.wait.cleanup.policy``.
    """
    from wait_registry.kafka.topic_rules import Severity
    from wait_registry.kafka.topic_specs import topic_specs

    roles = {spec.topic: spec.role.value for spec in topic_specs(settings)}
    for topic, group in groupby(findings, key=lambda finding: finding.topic):
        role = roles.get(topic, "dead letter")
        id, subject = f"topic.{role.replace(' ', '_')}", f"topic {topic}"
        rules = list(group)
        broken = [finding for finding in rules if finding.severity is not Severity.OK]
        for finding in broken:
            why = f" ({finding.why})" if finding.why else ""
            seen = f"{finding.rule} is {finding.seen}, expected {finding.expected}{why}"
            standing = Standing(finding.severity.value)
            yield CheckLine(subject, standing, seen, finding.mend, f"{id}.{_rule(finding.rule, role)}")
        if not broken:
            yield CheckLine(subject, Standing.OK, f"the {role} topic, {_hold(len(rules))}", id=id)


def _hold(rules: int) -> str:
    return "its rule holds" if rules == 1 else f"{rules} rules hold"


def _rule(rule: str, role: str) -> str:
    return "missing" if rule == f"the {role} topic" else rule.replace(" ", ".")
