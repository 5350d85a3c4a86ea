"""The alert rules as their file says them, without a YAML reader: a rule begins at ``- alert:``, ends at the next."""

from __future__ import annotations

import re
from dataclasses import dataclass

from tests.support.prometheus import RULES


@dataclass(frozen=True, slots=True)
class AlertRule:
    """One rule: its name and its text."""

    name: str
    text: str

    def value(self, key: str) -> str:
        """Return a key's value that stands on its own line; empty when there is none."""
        found = re.search(rf"^ +{key}: *(.*)$", self.text, re.MULTILINE)
        return found.group(1) if found else ""


def alert_rules() -> list[AlertRule]:
    """Return all rules in their order."""
    parts = re.split(r"^ +- alert: (\w+)$", RULES.read_text("utf-8"), flags=re.MULTILINE)
    return [AlertRule(name, text) for name, text in zip(parts[1::2], parts[2::2], strict=True)]


def metric_names(text: str) -> set[str]:
    """Return the names of this system's metrics in PromQL, without the endings of histograms."""
    found = re.findall(r"\bwaitreg_[a-z_]+\b", text)
    return {re.sub(r"_seconds_(bucket|sum|count)$", "_seconds", name) for name in found}
