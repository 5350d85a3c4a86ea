"""One story on a secured cluster: three services, each a user with its own rights only, each of which meets a failure.

Everything they say meanwhile is kept: logs at level DEBUG, metrics and health, Spark's own pages, the command
lines of the processes, the files they make. Payloads and secrets are marked, so that both can be looked for.
"""

from __future__ import annotations

import secrets
import urllib.error
import urllib.request
import uuid
from collections.abc import Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import psycopg
from pydantic import SecretStr

from tests.integration.doctor.findings import look
from tests.integration.sink.wait_topic import new_id, wait_record
from tests.refusals.secured_settings import SecuredSettings
from tests.support.certificates import Certificate
from tests.support.command import Ended, run_waitreg
from tests.support.database import Database
from tests.support.kafka_io import Outgoing
from tests.support.naming import Names
from tests.support.postgres_roles import apply_roles
from tests.support.processes import Service as Process
from tests.support.processes import Services
from tests.support.raw_headers import produce_with_header_name
from tests.support.secured_broker import SecuredBroker
from tests.support.secured_postgres import SecuredPostgres
from tests.support.settings import with_postgres
from tests.support.waiting import wait_until
from wait_registry.postgres.connection import connect
from wait_registry.postgres.schema import migrate_schema
from wait_registry.records import header_names as headers
from wait_registry.settings.relations import Service
from wait_registry.settings.tree import Settings
from waitreg.local.ports import LOOPBACK, free_ports

# A mark in payloads, to look for in everything that the services print.
MARKED = f"telltale{secrets.token_hex(8)}"
DEADLINE_S = 400.0
DATABASE = "registry"
SERVICES: Mapping[Service, str] = {"processor": "SASL_SSL", "sink": "SASL_SSL", "sweeper": "SSL"}
RULES: Mapping[str, Any] = {
    "processor.handler": "tests.security.telltale_handlers:handle",
    "processor.ttl_s": 8,
    "processor.max_in_flight": 4,
    "processor.prefetch_max": 8,
    "processor.max_attempts": 1,
    "processor.handler_timeout_s": 1,
    "processor.margin_s": 0.5,
    "sink.poll_interval_s": 0.2,
    "sweeper.interval_s": 1,
    "wait.skew_allowance_s": 0,
    "wait.partitions": 1,
    "wait.max_message_bytes": 20_000,
    "log.level": "DEBUG",
    "log.error_messages": False,
}
# What a handler, the topics' limits, or the sweeper make of a record, by the first word of its value.
ENDS = {"fail": "failed", "chained": "failed", "later": "failed", "slow": "failed", "large": "unregistrable"}
REFUSING = "alter table wait add constraint takes_none check (octet_length(body) > 1000000) not valid"
MARKED_HEADERS = ((f"name-{MARKED}", f"value-{MARKED}".encode()), (f"null-{MARKED}", None))


class SecuredStory:
    def __init__(self, secured: SecuredBroker, postgres: SecuredPostgres, directory: Path) -> None:
        self._directory = directory
        self._postgres = postgres
        self._names = Names()
        self._administrator = psycopg.conninfo.make_conninfo(postgres.administrator, dbname=DATABASE)
        self._kafka = SecuredSettings(secured, self._administrator, self._names)
        self._services = Services(directory)
        self._ui_port = free_ports(1)[0]
        self.scratch = directory / "scratch"
        self.scratch.mkdir()
        self.database = Database(self._administrator)
        self.settings: dict[Service, Settings] = {}
        self.secrets: dict[str, str] = {"a property of Spark": f"spark-{uuid.uuid4().hex}"}
        self.said: dict[str, str] = {}
        self.command_lines: dict[str, str] = {}
        self.listening: dict[str, dict[str, set[str]]] = {}
        """Service -> name of a process of it -> the addresses that it listens on."""
        self._prepare()

    def __enter__(self) -> SecuredStory:
        return self

    def __exit__(self, *of_no_interest: object) -> None:
        self._services.close()
        self._kafka.close()
        self.database.close()

    @property
    def topics(self) -> Any:
        return self._kafka.topics

    def play(self) -> None:
        """Let the services run until everything has happened."""
        self._produce()
        processor, sink, sweeper = (self._start(name) for name in SERVICES)
        wait_until(partial(self._settled, processor), DEADLINE_S, "every record but one settled")
        self._look_at(processor)
        self.topics.produce(self.settings["processor"].processor.topics[0], [_marked("poison")])
        assert processor.wait() == 9, processor.log.read_text("utf-8")
        wait_until(lambda: "the sink failed" in sink.log.read_text("utf-8"), DEADLINE_S, "the sink's failure")
        self._look_at(sink)
        self._administer("alter table wait drop constraint takes_none")
        wait_until(self._exported, DEADLINE_S, "the export of what died with the processor")
        self._look_at(sink)
        self._look_at(sweeper)
        self._look_at_spark(sink)
        self._keep_files()
        self.doctor = {name: look(self.settings[name], name) for name in SERVICES}
        for service in (sink, sweeper):
            service.process.terminate()
        self.ended = {service.name: service.wait() for service in (sink, sweeper)}
        for service in (processor, sink, sweeper):
            self.said[f"the log of the {service.name}"] = service.log.read_text("utf-8", errors="replace")

    def ask(self, query: str, *parameters: str) -> Ended:
        """Ask one of our queries as support staff does."""
        return run_waitreg(self._directory, "query", query, *parameters, settings=self.reporter)

    def start_with_wrong_passwords(self) -> Sequence[Process]:
        """Start each service with a password that isn't its user's."""
        wrong = SecretStr(f"wrong-{uuid.uuid4().hex}")
        self.secrets["the wrong password"] = wrong.get_secret_value()
        started = []
        for name in SERVICES:
            kafka = self.settings["sink" if name == "sweeper" else name].kafka
            mistaken = kafka.model_copy(update={"security": kafka.security.model_copy(update={"password": wrong})})
            settings = self.settings[name].model_copy(update={"kafka": mistaken})
            started.append(self._services.start(name, settings))
        return started

    def _prepare(self) -> None:
        schema = self._names.schema
        with psycopg.connect(self._postgres.administrator, autocommit=True) as connection:
            connection.execute(f"create database {DATABASE}".encode())
        apply_roles(self._administrator, schema, "waitreg", own_database="true")
        urls = {name: self._login(name) for name in ("owner", "sink", "reporter")}
        self._administer("alter role registry_owner set role = waitreg_owner")
        urls["sweeper"] = self._login("sweeper", self._postgres.authority.issue("registry_sweeper"))
        told = {"spark.hadoop.fs.azure.oauth2.credential": self.secrets["a property of Spark"]}
        ui = {"spark.ui.enabled": "true", "spark.ui.port": str(self._ui_port)}
        own: Mapping[str, Mapping[str, Any]] = {
            "processor": {"kafka.librdkafka": {"debug": "security"}},
            "sink": {"postgres.url": urls["sink"], "spark.conf": {**told, **ui}},
            "sweeper": {"postgres.url": urls["sweeper"], "spark.conf": told},
        }
        for service, protocol in SERVICES.items():
            self.settings[service] = self._kafka.of(service, protocol, {**RULES, **own[service]})
            self._keep_kafka_secrets(service)
        self.reporter = with_postgres(self.settings["sink"], urls["reporter"])
        with connect(with_postgres(self.settings["sink"], urls["owner"]).postgres, autocommit=True) as connection:
            migrate_schema(connection)
        assert apply_roles(self._administrator, schema, "waitreg", own_database="true") == ""
        self._administer(REFUSING)

    def _login(self, name: str, certificate: Certificate | None = None) -> str:
        """Make a role that logs in as a member of one of ours; return its address."""
        role = f"registry_{name}"
        password = self._postgres.add_login(role, f"waitreg_{name}")
        self.secrets[f"the {name}'s password in Postgres"] = password
        if certificate is not None:
            self.secrets[f"the {name}'s key for Postgres"] = certificate.key.splitlines()[1]
        return self._postgres.url(role, password, certificate, database=DATABASE)

    def _keep_kafka_secrets(self, service: Service) -> None:
        security = self.settings[service].kafka.security
        if security.password is not None:
            self.secrets[f"the {service}'s password in Kafka"] = security.password.get_secret_value()
        if security.key is not None:
            self.secrets[f"the {service}'s key for Kafka"] = security.key.get_secret_value().splitlines()[1]

    def _administer(self, statement: str) -> None:
        options = f"-c search_path={self._names.schema}"
        with psycopg.connect(self._administrator, autocommit=True, options=options) as connection:
            connection.execute(statement.encode())

    def _produce(self) -> None:
        topic = self.settings["processor"].processor.topics[0]
        self.topics.produce(topic, [_marked("done"), *map(_marked, ENDS)])
        produce_with_header_name(
            self.topics.bootstrap, topic, MARKED.encode() + b"\xff", MARKED.encode(), MARKED.encode()
        )
        for_no_topic = wait_record(new_id(), 0, value=MARKED.encode(), headers=MARKED_HEADERS, expires_in_s=-600)
        self.topics.produce(self.settings["processor"].wait.topic, [*_unreadable(), for_no_topic])

    def _start(self, name: Service) -> Process:
        places = {"TMPDIR": str(self.scratch), "SPARK_LOCAL_DIRS": str(self.scratch)}
        return self._services.start(name, self.settings[name], environment=places)

    def _settled(self, processor: Process) -> bool:
        assert processor.process.poll() is None, processor.log.read_text("utf-8")
        return processor.log.read_text("utf-8").count("dead-lettered to") == len(ENDS) + 1

    def _exported(self) -> bool:
        return self.database.rows(
            self.settings["sink"], "select count(*) from dead_letter where reason = 'expired'"
        ) == [(1,)]

    def _look_at(self, service: Process) -> None:
        for path in ("/metrics", "/health/ready", "/health/live"):
            status, text = service.get(path)
            assert status in (200, 503), (service.name, path, status)
            self.said[f"{path} of the {service.name}"] = self.said.get(f"{path} of the {service.name}", "") + text
        process = psutil.Process(service.pid)
        listening = self.listening.setdefault(service.name, {})
        for one in (process, *process.children(recursive=True)):
            with suppress(psutil.NoSuchProcess):  # a worker of Spark's that ends just now
                self.command_lines[f"{service.name}: {one.name()} {one.pid}"] = " ".join(one.cmdline())
                places = [place for place in one.net_connections("tcp") if place.status == psutil.CONN_LISTEN]
                listening.setdefault(one.name(), set()).update(place.laddr.ip for place in places)

    def _look_at_spark(self, sink: Process) -> None:
        home = f"http://{LOOPBACK}:{self._ui_port}"
        paths = ["/environment/", "/StreamingQuery/", "/SQL/", *(f"/SQL/execution/?id={number}" for number in range(8))]
        for path in paths:
            try:
                with urllib.request.urlopen(f"{home}{path}", timeout=60) as answer:
                    self.said[f"Spark's page {path}"] = answer.read().decode()
            except urllib.error.HTTPError as error:
                assert path.startswith("/SQL/execution"), f"{path}: {error}"

    def _keep_files(self) -> None:
        self.open_to_others = [place.name for place in self.scratch.iterdir() if place.stat().st_mode & 0o077]
        for file in self.scratch.rglob("*"):
            if file.is_file():
                text = file.read_bytes().decode("latin-1")
                self.said[f"the file {file.relative_to(self.scratch)} ({file.stat().st_mode & 0o777:o})"] = text


def _marked(kind: str) -> Outgoing:
    # Nothing that compression makes small: the broker bounds what it is sent.
    filling = secrets.token_hex(40_000) if kind == "large" else ""
    return Outgoing(f"{kind} {MARKED} {filling}".encode(), f"key-{MARKED}".encode(), MARKED_HEADERS)


def _unreadable() -> list[Outgoing]:
    """Return wait records that no reader takes: without headers, with broken ones, with a time that is none."""
    whole = dict(wait_record(new_id(), 0, headers=MARKED_HEADERS).headers)
    broken = {**whole, headers.ORIGINAL_HEADERS: f'[["{MARKED}", '.encode()}
    timeless = {**whole, headers.WAIT_EXPIRATION_TIME: MARKED.encode()}
    return [
        Outgoing(MARKED.encode(), new_id().encode(), given)
        for given in (MARKED_HEADERS, tuple(broken.items()), tuple(timeless.items()))
    ]
