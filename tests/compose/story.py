"""What is shown of docker-compose.yml, step by step, on a real Docker engine."""

from __future__ import annotations

import json
import urllib.request
from collections.abc import Callable, Mapping
from typing import Any

from project import NO_VARIABLES, Failed, Project

BUILD_S = 1800
START_S = 600
BY_CONNECTOR = {"SINK_KIND": "connect"}
EVIDENCE = ("--manifest=/evidence/published.jsonl", "--calls=/evidence/calls.jsonl")
OURS = {
    "io.waitreg.connect.WaitRecordConverter",
    "io.waitreg.connect.WaitRecordToRow",
    "io.waitreg.connect.DeadLetterToRow",
    "io.waitreg.connect.JsonHeadersToKafkaHeaders",
    "io.debezium.connector.jdbc.JdbcSinkConnector",
    "io.debezium.connector.postgresql.PostgresConnector",
}
ROWS = ("psql", "-U", "waitreg", "-d", "waitreg", "-Atc", "select count(*) from wait")

Say = Callable[[str], None]


def build(project: Project, say: Say) -> None:
    """The file is valid, every image is built, and the processor's holds neither Java nor Spark nor Postgres."""
    project.compose("--profile", "*", "config", "--quiet", limit_s=60)
    project.compose("--profile", "demo", "--profile", "connect", "build", limit_s=BUILD_S)
    look = "id -u; command -v java || echo no java"
    look += "".join(f"; python -c 'import {package}' 2>&- || echo no {package}" for package in ("pyspark", "psycopg"))
    seen = project.docker("run", "--rm", "--entrypoint", "sh", "waitreg-processor", "-c", look)
    _require(seen.split("\n")[:4] == ["10001", "no java", "no pyspark", "no psycopg"], f"processor's image: {seen}")
    say(f"  in waitreg-processor: {', '.join(seen.split(chr(10))[:4])}")
    sizes = project.docker("image", "ls", "--format", "{{.Repository}} {{.Size}}", "--filter", "dangling=false")
    say("  " + ", ".join(sorted({line for line in sizes.splitlines() if line.startswith("waitreg-")})))


def demo(project: Project, say: Say) -> None:
    """From empty volumes: everything starts, works on a load, and ends with the reconciliation's exit code."""
    printed = project.compose("--profile", "demo", "up", "--exit-code-from", "demo", limit_s=2 * START_S)
    _show(say, printed, "demo-1")


def start(project: Project, say: Say) -> None:
    """The stack starts on the volumes of the run before, and everything is ready."""
    services = ("processor", "sink", "sweeper", "downstream")
    project.compose("--profile", "demo", "up", "--detach", "--wait", *services, limit_s=START_S)
    for service in services:
        state = project.state(service)
        host = state["HostConfig"]
        _require(state["State"]["Health"]["Status"] == "healthy", f"{service} is not healthy")
        _require(host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"], f"{service} has more rights than it needs")
        say(f"  {service}: healthy, user {state['Config']['User']}, read-only, {host['Memory'] >> 20} MiB at most")


def kills(project: Project, say: Say) -> None:
    """Processor and sink die by SIGKILL under load; no record is lost, doubled or changed."""
    load = ("load", "--topic=orders", "--records=1200", "--rate=30", "--first=10000", EVIDENCE[0])
    name = f"{project.name}-second-load"
    project.compose(
        *("--profile", "demo", "run", "--detach", "--rm=false", "--no-deps", "--name", name, "load", *load), limit_s=60
    )
    handled = _handled(project)
    project.wait_until(lambda: _handled(project) > handled + 150, START_S, "work on the second load")
    _kill(project, "processor")
    project.wait_until(lambda: _rows(project) > 0, 120, "rows of what it left")
    say(f"  rows standing in Postgres after the processor's end: {_rows(project)}")
    project.compose("up", "--detach", "--no-deps", "processor", limit_s=120)
    handled = _handled(project)
    project.wait_until(lambda: _handled(project) > handled + 100, START_S, "the processor to work again")
    _kill(project, "sink")
    handled = _handled(project)
    project.wait_until(lambda: _handled(project) > handled + 100, START_S, "the processor to work on without a sink")
    project.compose("--profile", "demo", "up", "--detach", "--no-deps", "--wait", "sink", limit_s=START_S)
    project.docker("wait", name, limit_s=START_S)
    project.docker("rm", name)
    _reconcile(project, say)
    reasons = project.compose(
        *("--profile", "demo", "run", "--rm", "--no-deps", "--no-TTY", "demo", "query", "dead_letters_by_reason"),
        limit_s=120,
    )
    _show(say, reasons)


def stop(project: Project, say: Say) -> None:
    """Told to stop, the services end in order and before the grace period is over."""
    services = ("processor", "sink", "sweeper")
    project.compose("--profile", "demo", "stop", *services, limit_s=180)
    codes = {service: project.state(service)["State"]["ExitCode"] for service in services}
    say(f"  exit codes: {codes}")
    _require(not any(codes.values()), f"exit codes {codes}, expected 0: they did not end in order")


def connect(project: Project, say: Say) -> None:
    """A Connect worker with our plugin keeps the table in the sink's place, and the sweeper exports from it."""
    project.compose(
        "--profile", "connect", "up", "--detach", "--wait", "connectors", limit_s=START_S, variables=BY_CONNECTOR
    )
    plugins = project.ask("connect", "curl", "-sf", "http://127.0.0.1:8083/connector-plugins?connectorsOnly=false")
    missing = OURS - {plugin["class"] for plugin in json.loads(plugins)}
    _require(not missing, f"the worker doesn't list {missing}")
    say(f"  listed by the worker: {', '.join(sorted(name.rpartition('.')[2] for name in OURS))}")
    _show(say, project.ask("connectors", "waitreg", "connect", "status"))
    project.compose("--profile", "demo", "up", "--detach", "--wait", "--no-deps", "processor", limit_s=START_S)
    name = f"{project.name}-third-load"
    load = ("load", "--topic=orders", "--records=400", "--rate=40", "--first=20000", EVIDENCE[0])
    handled = _handled(project)
    project.compose(
        *("--profile", "demo", "run", "--detach", "--rm=false", "--no-deps", "--name", name, "load", *load), limit_s=60
    )
    project.wait_until(lambda: _handled(project) > handled + 100, START_S, "work on the third load")
    _kill(project, "processor")
    project.docker("wait", name, limit_s=START_S)
    project.docker("rm", name)
    project.wait_until(lambda: _rows(project) > 0, 120, "rows that the sink connector wrote")
    say(f"  rows standing in Postgres, by the sink connector: {_rows(project)}")
    project.compose(
        *("--profile", "demo", "up", "--detach", "--no-deps", "--wait", "processor", "sweeper"),
        limit_s=START_S,
        variables=BY_CONNECTOR,
    )
    _reconcile(project, say, BY_CONNECTOR)


def observe(project: Project, say: Say) -> None:
    """Prometheus finds the services and has the alert rules."""
    project.compose("--profile", "observability", "up", "--detach", "--wait", "prometheus", limit_s=START_S)
    project.wait_until(lambda: "waitreg-processor" in _up(project), 120, "a scrape of the processor")
    rules = [rule for group in _prometheus(project, "rules")["groups"] for rule in group["rules"]]
    _require(len(rules) > 20, f"{len(rules)} alert rules are loaded")
    say(f"  up: {', '.join(sorted(_up(project)))}; {len(rules)} alert rules")


STEPS = (build, demo, start, kills, stop, connect, observe)


def _kill(project: Project, service: str) -> None:
    project.docker("kill", "--signal=KILL", project.container(service))
    project.wait_until(lambda: not project.state(service)["State"]["Running"], 60, f"the end of {service}")


def _reconcile(project: Project, say: Say, variables: Mapping[str, str] = NO_VARIABLES) -> None:
    judge = ("--profile", "demo", "run", "--rm", "--no-deps", "--no-TTY", "demo", "reconcile", *EVIDENCE)
    _show(say, project.compose(*judge, limit_s=START_S, variables=variables))


def _handled(project: Project) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{project.port('DOWNSTREAM_PORT')}/stats", timeout=30) as answer:
        count: int = json.load(answer)["count"]
    return count


def _rows(project: Project) -> int:
    return int(project.ask("postgres", *ROWS) or -1)


def _up(project: Project) -> set[str]:
    targets = _prometheus(project, "targets")["activeTargets"]
    return {target["labels"]["job"] for target in targets if target["health"] == "up"}


def _prometheus(project: Project, what: str) -> Any:
    url = f"http://127.0.0.1:{project.port('PROMETHEUS_PORT')}/api/v1/{what}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)["data"]


def _show(say: Say, printed: str, only: str = "") -> None:
    """Say the lines, of one service if wanted, without those that tell of progress."""
    for line in printed.splitlines():
        shown = line.partition("| ")[2] if only else line
        if shown.strip() and line.startswith(only) and not shown.strip().startswith("ended "):
            say(f"  {shown}")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Failed(otherwise)
