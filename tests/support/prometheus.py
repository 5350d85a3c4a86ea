"""The alert rules as their file says them, and a real Prometheus for one test with a folder and port of its own."""

from __future__ import annotations

import json
import re
import shutil
import urllib.error
import urllib.parse
import urllib.request
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.support.chosen_stack import not_tested
from tests.support.server_process import server_process
from tests.support.waiting import wait_until
from waitreg.local.ports import LOOPBACK, free_ports

ROOT = Path(__file__).parents[2]
RULES = ROOT / "deploy" / "prometheus" / "alerts.yml"
# A machine under load answers late, and a scrape must not outlast its interval.
SCRAPE = "2s"
TOOLS = ROOT / ".waitreg" / "tools"


@dataclass(frozen=True, slots=True)
class AlertRule:
    name: str
    text: str

    def value(self, key: str) -> str:
        """Return a key's value that stands on its own line; empty when there is none."""
        found = re.search(rf"^ +{key}: *(.*)$", self.text, re.MULTILINE)
        return found.group(1) if found else ""


def alert_rules() -> list[AlertRule]:
    """Return all rules in their order, without a YAML reader: a rule lasts from its ``- alert:`` to the next."""
    parts = re.split(r"^ +- alert: (\w+)$", RULES.read_text("utf-8"), flags=re.MULTILINE)
    return [AlertRule(name, text) for name, text in zip(parts[1::2], parts[2::2], strict=True)]


def metric_names(text: str) -> set[str]:
    """Return the names of this system's metrics in PromQL, without the endings of histograms."""
    found = re.findall(r"\bwaitreg_[a-z_]+\b", text)
    return {re.sub(r"_seconds_(bucket|sum|count)$", "_seconds", name) for name in found}


def prometheus_tool(name: str) -> str:
    """Return the path of ``prometheus`` or ``promtool``; without it the test is skipped, on a CI machine it fails."""
    found = shutil.which(name) or shutil.which(name, path=str(TOOLS))
    if found is None:
        not_tested(f"{name} is not here; `make prometheus` gets it")
    return found


class Prometheus:
    """One running server, asked over its HTTP API."""

    def __init__(self, url: str) -> None:
        self._url = url

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the series of an instant query; AssertionError with Prometheus' words when it refuses it."""
        answer = self._get("query", {"query": expression})
        assert answer["resultType"] in ("vector", "scalar"), expression
        result: list[dict[str, Any]] = answer["result"]
        return result

    def wait(self, expression: str, deadline_s: float) -> None:
        """Wait until an instant query has a series."""
        wait_until(lambda: self.query(expression), deadline_s, expression)

    def value(self, expression: str) -> float | None:
        """Return the value of the one series of an instant query, None when there is none."""
        found = self.query(expression)
        return float(found[0]["value"][1]) if found else None

    def rules(self) -> list[dict[str, Any]]:
        return [rule for group in self._get("rules")["groups"] for rule in group["rules"]]

    def _get(self, what: str, parameters: Mapping[str, str] | None = None) -> Any:
        query = urllib.parse.urlencode(parameters or {})
        try:
            with urllib.request.urlopen(f"{self._url}/api/v1/{what}?{query}", timeout=30) as answer:
                return json.load(answer)["data"]
        except urllib.error.HTTPError as error:
            with error:
                raise AssertionError(f"{parameters}: {error.read().decode()}") from None


@contextmanager
def running_prometheus(folder: Path, jobs: Mapping[str, Sequence[int]]) -> Iterator[Prometheus]:
    """Scrape these telemetry ports of this host, by job, every two seconds, with the alert rules loaded."""
    binary, (port,) = prometheus_tool("prometheus"), free_ports(1)
    targets = {job: [f"{LOOPBACK}:{number}" for number in ports] for job, ports in jobs.items()}
    configuration = {
        "global": {"scrape_interval": SCRAPE, "scrape_timeout": SCRAPE, "evaluation_interval": SCRAPE},
        "rule_files": [str(RULES)],
        "scrape_configs": [{"job_name": job, "static_configs": [{"targets": found}]} for job, found in targets.items()],
    }
    # JSON is YAML.
    (folder / "prometheus.yml").write_text(json.dumps(configuration))
    command = [
        binary,
        f"--config.file={folder / 'prometheus.yml'}",
        f"--storage.tsdb.path={folder / 'prometheus'}",
        f"--web.listen-address={LOOPBACK}:{port}",
    ]
    url = f"http://{LOOPBACK}:{port}"
    with server_process("prometheus", command, folder, f"{url}/-/ready"):
        yield Prometheus(url)
