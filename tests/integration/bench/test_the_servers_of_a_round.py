"""A round of the benchmark is played on a real broker and a real Postgres, and ends when one of them does."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

import psutil
import psycopg
from confluent_kafka.admin import AdminClient

from bench.harness.ledger import Ledger
from bench.harness.machine import Busyness
from bench.harness.measurement import Origin, RoundEnd, Turn
from bench.harness.progress import Progress
from bench.harness.row import Bench, Case, Contender, Figures, Row
from bench.harness.run import Run
from bench.harness.servers import embedded_servers
from tests.support.processes import gone
from tests.support.waiting import PATIENCE_S, wait_until


def asks_both(bench: Bench) -> Figures:
    brokers = AdminClient({"bootstrap.servers": bench.kafka}).list_topics(timeout=PATIENCE_S).brokers
    with psycopg.connect(bench.postgres_url, autocommit=True) as connection:
        answer = connection.execute("select 1").fetchone()
    return {"brokers": len(brokers), "answers": 0 if answer is None else answer[0]}


def kills_the_broker(bench: Bench) -> Figures:
    """Kill the broker of this round, the child whose properties have its address, and fail."""
    commands = {}
    for process in psutil.Process().children(recursive=True):
        with suppress(psutil.NoSuchProcess):  # one of Postgres', whose client has just gone
            commands[process] = process.cmdline()
    brokers = {process: Path(words[-1]) for process, words in commands.items() if "kafka.Kafka" in words}
    (broker,) = [process for process, properties in brokers.items() if f"//{bench.kafka}," in properties.read_text()]
    broker.kill()
    wait_until(lambda: gone(broker.pid), what="the broker's end")
    raise RuntimeError("no broker")


def test_a_round_on_real_servers_and_one_whose_broker_dies(tmp_path: Path) -> None:
    told: list[str] = []
    ledger = Ledger(tmp_path / "rounds.jsonl")
    run = Run(
        id="run",
        ledger=ledger,
        command="python -m bench",
        origin=lambda: Origin("commit", "machine", full=False),
        versions={},
        rounds=1,
        scratch=tmp_path / "scratch",
        progress=Progress({}, told.append),
        servers=embedded_servers,
        busyness=lambda: Busyness(0.0, 0.0, 2),
    )
    contenders = [Contender("asks", asks_both), Contender("kills", kills_the_broker), Contender("late", asks_both)]
    row = Row(1, "Servers", "", lambda _: [Case("c", contenders)], ())
    (failure,) = run.play([row], resume=False, played=lambda _: None)
    assert failure.startswith("row 1, round 1 of 1: the embedded Kafka broker has ended; its log:")
    turns = [entry for entry in ledger.read().entries if isinstance(entry, Turn)]
    assert [(turn.contender, dict(turn.figures)) for turn in turns] == [
        ("asks", {"brokers": 1.0, "answers": 1.0}),
        ("kills", {}),
    ]
    assert turns[0].stamp.versions["Postgres"].split(".")[0].isdigit()
    (end,) = [entry for entry in ledger.read().entries if isinstance(entry, RoundEnd)]
    assert end.broken.startswith("the embedded Kafka broker has ended")
