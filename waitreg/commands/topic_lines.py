"""What was found out about topics, as lines: one for a topic that is as it must be, else one a broken rule."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby

from wait_registry.kafka.topic_rules import Finding, Severity
from waitreg.commands.check_line import CheckLine, Standing


def topic_lines(findings: Iterable[Finding]) -> Iterator[CheckLine]:
    """Yield the lines that say how each topic stands; findings of one topic follow one another."""
    for topic, group in groupby(findings, key=lambda finding: finding.topic):
        rules = list(group)
        broken = [finding for finding in rules if finding.severity is not Severity.OK]
        for finding in broken:
            why = f" ({finding.why})" if finding.why else ""
            seen = f"{finding.rule} is {finding.seen}, expected {finding.expected}{why}"
            yield CheckLine(f"topic {topic}", Standing(finding.severity.value), seen, finding.mend)
        if not broken:
            yield CheckLine(f"topic {topic}", Standing.OK, f"{len(rules)} rules hold")
