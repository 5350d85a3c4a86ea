"""What is shown of docker-compose.yml, step by step, on a real Docker engine."""

from __future__ import annotations

import json
import urllib.request
from base64 import b64encode
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

from project import Failed, Project

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
PSQL = ("psql", "-U", "waitreg", "-d", "waitreg", "-Atc")
REBUILD = ("run", "--rm", "--no-TTY", "setup", "waitreg rebuild")
HERE = Path(__file__).parent
KEPT = "every guarantee was kept"

Say = Callable[[str], None]


def build(project: Project, say: Say) -> None:
    """The file is valid, every image is built, and only those that need Java, Spark or Postgres hold them."""
    project.compose("--profile", "*", "config", "--quiet", limit_s=60)
    profiles = ("--profile", "demo", "--profile", "connect", "--profile", "console")
    project.compose(*profiles, "build", limit_s=BUILD_S)
    look = (HERE / "inside.py").read_text("utf-8")
    for image, spark, postgres in (
        ("waitreg-processor", False, False),
        ("waitreg-console", False, True),
        ("waitreg-sink", True, True),
    ):
        seen = json.loads(project.docker("run", "--rm", "--entrypoint", "python", image, "-c", look))
        _require(seen == {"user": 10001, "java": spark, "pyspark": spark, "psycopg": postgres}, f"{image}: {seen}")
        say(f"  in {image}: {seen}")
    sizes = project.docker("image", "ls", "--format", "{{.Repository}} {{.Size}}", "--filter", "dangling=false")
    say("  " + ", ".join(sorted({line for line in sizes.splitlines() if line.startswith("waitreg-")})))


def demo(project: Project, say: Say) -> None:
    """From empty volumes: everything starts, works on a load, and ends with the reconciliation's exit code."""
    printed = project.compose("--profile", "demo", "up", "--exit-code-from", "demo", limit_s=2 * START_S)
    _show(say, printed, "demo-1")
    _require("published 600 = " in printed and KEPT in printed, "the demo ended well without its verdict")


def start(project: Project, say: Say) -> None:
    """The README's first command, on the volumes of the run before: everything is ready, Kafka takes every codec."""
    project.compose("up", "--wait", limit_s=START_S)
    project.compose("--profile", "demo", "up", "--detach", "--wait", "--no-deps", "downstream", limit_s=START_S)
    for service in ("processor", "sink", "sweeper", "console", "downstream"):
        state = project.state(service)
        host = state["HostConfig"]
        _require(state["State"]["Health"]["Status"] == "healthy", f"{service} is not healthy")
        _require(host["ReadonlyRootfs"] and host["CapDrop"] == ["ALL"], f"{service} has more rights than it needs")
        say(f"  {service}: healthy, user {state['Config']['User']}, read-only, {host['Memory'] >> 20} MiB at most")
    page = _console(project, "/dead-letters?by=reason&where=group%3Dorders")
    _require("failed" in page and "list" in page, f"the console doesn't count the demo's dead letters: {page}")
    say("  the console shows the dead letters of the demo to its operator")
    codecs = (HERE / "codecs.py").read_text("utf-8")
    answers = project.compose(
        *("--profile", "*", "exec", "--no-TTY", "downstream", "python", "-c", codecs, "kafka:9092", "codecs"),
        limit_s=300,
    )
    say(f"  {', '.join(answers.splitlines())}")


def stop(project: Project, say: Say) -> None:
    """Told to stop, the services end in order and before the grace period is over."""
    services = ("processor", "sink", "sweeper")
    project.compose("--profile", "demo", "stop", *services, limit_s=180)
    codes = {service: project.state(service)["State"]["ExitCode"] for service in services}
    say(f"  exit codes: {codes}")
    _require(not any(codes.values()), f"exit codes {codes}, expected 0: they did not end in order")


def broken(project: Project, say: Say) -> None:
    """A verdict that isn't good leaves compose with 4: here one record was never published."""
    files = ("--file", "docker-compose.yml", "--file", "tests/compose/broken.yml")
    judge = ("--profile", "demo", "up", "--no-deps", "--exit-code-from", "demo", "demo")
    printed = project.compose(*files, *judge, limit_s=300, status=4)
    _require("; lost 1, doubled 0," in printed and KEPT not in printed, f"ended with 4 for another reason:\n{printed}")
    say("  status 4, lost 1")


def connect(project: Project, say: Say) -> None:
    """A Connect worker with our plugin keeps the table in the sink's place, and the sweeper exports from it."""
    project.compose(*REBUILD, limit_s=START_S, variables=BY_CONNECTOR)
    project.compose(
        "--profile", "connect", "up", "--detach", "--wait", "connectors", limit_s=START_S, variables=BY_CONNECTOR
    )
    plugins = project.ask("connect", "curl", "-sf", "http://127.0.0.1:8083/connector-plugins?connectorsOnly=false")
    missing = OURS - {plugin["class"] for plugin in json.loads(plugins)}
    _require(not missing, f"the worker doesn't list {missing}")
    say(f"  listed by the worker: {', '.join(sorted(name.rpartition('.')[2] for name in OURS))}")
    _show(say, project.ask("connect", "curl", "-sf", "http://127.0.0.1:8083/connectors?expand=status"))
    project.compose("--profile", "demo", "up", "--detach", "--wait", "--no-deps", "processor", limit_s=START_S)
    name = f"{project.name}-second-load"
    load = ("load", "--topic=orders", "--records=400", "--rate=40", "--first=20000", EVIDENCE[0])
    handled = _handled(project)
    project.compose(
        *("--profile", "demo", "run", "--detach", "--rm=false", "--no-deps", "--name", name, "load", *load), limit_s=60
    )
    project.wait_until(lambda: _handled(project) > handled + 100, START_S, "work on the second load")
    killed_ms = _kill_processor(project)
    status = project.docker("wait", name, limit_s=START_S).strip()
    _require(status == "0", f"{name} ended with {status}: not all of it was published")
    project.docker("rm", name)
    project.wait_until(lambda: _rows(project) > 0, 120, "rows that the sink connector wrote")
    say(f"  rows standing in Postgres, by the sink connector: {_rows(project)}")
    project.compose(
        *("--profile", "demo", "up", "--detach", "--no-deps", "--wait", "processor", "sweeper"),
        limit_s=START_S,
        variables=BY_CONNECTOR,
    )
    judge = ("run", "--rm", "--no-deps", "--no-TTY", "demo", "reconcile", *EVIDENCE, f"--kill={killed_ms}")
    _show(say, project.compose("--profile", "demo", *judge, limit_s=START_S, variables=BY_CONNECTOR))


def observe(project: Project, say: Say) -> None:
    """Prometheus finds the services and has the alert rules."""
    project.compose("--profile", "observability", "up", "--detach", "--wait", "prometheus", limit_s=START_S)
    project.wait_until(lambda: "waitreg-processor" in _up(project), 120, "a scrape of the processor")
    rules = [rule for group in _prometheus(project, "rules")["groups"] for rule in group["rules"]]
    _require(len(rules) > 20, f"{len(rules)} alert rules are loaded")
    say(f"  up: {', '.join(sorted(_up(project)))}; {len(rules)} alert rules")


STEPS = (build, demo, start, stop, broken, connect, observe)


def _kill_processor(project: Project) -> int:
    """Return when it ended, ms since the epoch."""
    project.docker("kill", "--signal=KILL", project.container("processor"))
    project.wait_until(lambda: not project.state("processor")["State"]["Running"], 60, "the end of the processor")
    return int(datetime.fromisoformat(project.state("processor")["State"]["FinishedAt"]).timestamp() * 1000)


def _handled(project: Project) -> int:
    with urllib.request.urlopen(f"http://127.0.0.1:{project.port('DOWNSTREAM_PORT')}/stats", timeout=30) as answer:
        count: int = json.load(answer)["count"]
    return count


def _rows(project: Project) -> int:
    return int(project.ask("postgres", *PSQL, "select count(*) from wait") or -1)


def _up(project: Project) -> set[str]:
    targets = _prometheus(project, "targets")["activeTargets"]
    return {target["labels"]["job"] for target in targets if target["health"] == "up"}


def _console(project: Project, path: str) -> str:
    request = urllib.request.Request(f"http://127.0.0.1:{project.port('CONSOLE_PORT')}{path}")
    request.add_header("Authorization", f"Basic {b64encode(b'operator:waitreg').decode()}")
    with urllib.request.urlopen(request, timeout=60) as answer:
        return str(answer.read().decode())


def _prometheus(project: Project, what: str) -> Any:
    url = f"http://127.0.0.1:{project.port('PROMETHEUS_PORT')}/api/v1/{what}"
    with urllib.request.urlopen(url, timeout=30) as answer:
        return json.load(answer)["data"]


def _show(say: Say, printed: str, only: str = "") -> None:
    """Say the lines, of one service if wanted, without those about progress."""
    for line in printed.splitlines():
        shown = line.partition("| ")[2] if only else line
        if shown.strip() and line.startswith(only) and not shown.strip().startswith("ended "):
            say(f"  {shown}")


def _require(holds: bool, otherwise: str) -> None:
    if not holds:
        raise Failed(otherwise)
