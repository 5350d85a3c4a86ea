"""Which metrics answer which question of those who run the services; part of docs/metrics.md."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from wait_registry.telemetry import metrics as m
from wait_registry.telemetry.metrics import Metric


@dataclass(frozen=True, slots=True)
class Question:
    """What somebody asks, the metrics that answer it, and how they are read."""

    asked: str
    metrics: tuple[Metric, ...]
    look: str


_ALL: Final = (
    Question(
        "Is it well?",
        (m.READY,),
        "0 means up and not at work; `/health/ready` lists why. A sink that stands by is 0 on purpose",
    ),
    Question("What runs where?", (m.BUILD_INFO,), "one version, or two while a rollout is under way"),
)

_PROCESSOR: Final = (
    Question(
        "How far behind are we?",
        (m.PROCESSOR_CONSUMER_LAG, m.PROCESSOR_CONSUMED),
        "the lag over the rate of consumption is the time until a record that comes in now is taken",
    ),
    Question(
        "Why isn't it faster?",
        (
            m.PROCESSOR_IN_FLIGHT,
            m.PROCESSOR_IN_FLIGHT_LIMIT,
            m.PROCESSOR_WAITING,
            m.PROCESSOR_LOOK_AHEAD,
            m.PROCESSOR_LOOK_AHEAD_LIMIT,
            m.PROCESSOR_LOOK_AHEAD_BYTES,
            m.PROCESSOR_PAUSED,
            m.PROCESSOR_ASSIGNED,
        ),
        "in flight at its limit: handlers are the limit; look-ahead at its limit is how that shows. In flight below it "
        "with a lag: Kafka or this process's CPU. No partitions assigned: more processes than partitions",
    ),
    Question(
        "Are the handlers slow, or stuck?",
        (
            m.PROCESSOR_HANDLER_SECONDS,
            m.PROCESSOR_OLDEST_IN_FLIGHT,
            m.PROCESSOR_BLOCKED_SLOTS,
            m.PROCESSOR_STANDSTILL,
        ),
        "the histogram by outcome; blocked slots are handlers that timed out and never came back; standstill is an "
        "async handler that blocks instead of awaiting",
    ),
    Question(
        "Do they fail?",
        (m.PROCESSOR_ATTEMPTS, m.PROCESSOR_SETTLED, m.PROCESSOR_DEAD_LETTERS),
        "tries by result come first, dead letters when all tries are used up",
    ),
    Question(
        "Is the TTL long enough?",
        (m.PROCESSOR_QUEUE_SECONDS, m.PROCESSOR_QUEUE_LIMIT, m.PROCESSOR_REGISTERED, m.PROCESSOR_RENEWED),
        "the wait before the start against its limit; records over it are registered again, and none is lost",
    ),
    Question(
        "What would a crash repeat?",
        (m.PROCESSOR_COMMIT_LAG, m.PROCESSOR_LAST_COMMIT, m.PROCESSOR_COMMITS),
        "consumed and not committed; normally what came within `processor.commit_interval_s`",
    ),
    Question(
        "Is Kafka the trouble?",
        (m.PROCESSOR_BROKER_UP, m.PROCESSOR_UNACKNOWLEDGED, m.PROCESSOR_OUTBOX, m.PROCESSOR_REBALANCES),
        "unacknowledged records that grow: slow brokers or too few replicas in sync",
    ),
    Question(
        "Do the clocks agree?",
        (m.PROCESSOR_CLOCK_SKEW, m.PROCESSOR_CLOCK_SKEW_LIMIT),
        "either way; at the limit the process stops",
    ),
    Question(
        "Which process is it in the tables?",
        (m.PROCESSOR_INFO,),
        "`wait_instance` is the column `instance` of `wait` and `dead_letter`",
    ),
)

_SINK: Final = (
    Question(
        "How old is what the tables say?",
        (m.SINK_STALENESS, m.SINK_STALENESS_LIMIT, m.SINK_LAG),
        "up to `sink.idle_progress_s` is fresh; at the limit only a rebuild helps",
    ),
    Question(
        "Is it down?",
        (m.SINK_QUERY_UP, m.SINK_STANDBY, m.SINK_POSTGRES_UP, m.SINK_RESTARTS),
        "one sink runs both streams, another stands by; restarts are counted by cause",
    ),
    Question(
        "Does it keep up?",
        (m.SINK_RECORDS, m.SINK_BATCHES, m.SINK_BATCH_SECONDS, m.SINK_ROWS_WRITTEN, m.SINK_ROWS_DELETED),
        "a lag that grows while batches are committed: the time of a batch says whether Postgres is slow",
    ),
    Question(
        "Is there anything odd in the topics?",
        (m.SINK_QUARANTINED, m.SINK_LATE),
        "quarantined records can't be decoded; finished late means exported as expired and finished all the same",
    ),
)

_SWEEPER: Final = (
    Question(
        "Does it sweep?",
        (
            m.SWEEPER_LAST_SWEEP,
            m.SWEEPER_LAST_SUCCESS,
            m.SWEEPER_INTERVAL,
            m.SWEEPER_SWEEPS,
            m.SWEEPER_SWEEP_SECONDS,
            m.SWEEPER_POSTGRES_UP,
        ),
        "time() minus the timestamps, against the interval; with several sweepers the largest timestamp counts",
    ),
    Question(
        "Does anything expired wait?",
        (m.SWEEPER_DUE, m.SWEEPER_OLDEST_DUE, m.SWEEPER_ROWS_SET_ASIDE),
        "due rows go within two intervals, but for those set aside, which somebody must mend",
    ),
    Question(
        "What became of it?",
        (m.SWEEPER_EXPORTED, m.SWEEPER_REDELIVERED, m.SWEEPER_SUPERSEDED),
        "exported or redelivered: a process died with it; superseded: finished, renewed or already exported, the "
        "sink was behind",
    ),
    Question(
        "What is left out, and why?",
        (m.SWEEPER_SKIPPED, m.SWEEPER_SET_ASIDE, m.SWEEPER_UNSEEN),
        "the log names each partition and row; `position_too_old` and unseen ask for `waitreg rebuild`",
    ),
    Question(
        "May the view still be trusted?",
        (m.SWEEPER_STALENESS, m.SWEEPER_STALENESS_LIMIT, m.SWEEPER_CONNECT_SINK),
        "the sweeper's own look at the sink's positions, there even when no sink is; not where a Connect sink keeps it",
    ),
    Question("Are old rows removed?", (m.SWEEPER_PURGED,), "by table, once an hour, after `sweeper.retention_days`"),
)

_CONNECT: Final = (
    Question(
        "Do the connectors run?",
        (m.CONNECT_UP, m.CONNECT_RUNNING, m.CONNECT_TASKS),
        "while the workers can't be asked nothing is known of their connectors; paused and stopped ones don't run",
    ),
    Question(
        "Does restarting help?",
        (m.CONNECT_RESTARTS, m.CONNECT_RESTART_LIMIT_REACHED),
        "a few after an outage are its work; at the limit the cause stands in the log and in `waitreg connect status`",
    ),
    Question(
        "Is what has expired exported?",
        (m.CONNECT_OLDEST_DUE, m.CONNECT_POSTGRES_UP),
        "where a source exports (`sweeper.kind`): seconds are well, minutes mean that it stands still, whatever its "
        "task's state says; it exports nothing that the tables don't show",
    ),
    Question(
        "Who does what here?",
        (m.CONNECT_KEEPS_VIEW, m.CONNECT_EXPORTS),
        "what these settings say; the alerts on sink and sweeper are silent where it is 1",
    ),
    Question(
        "How old is what the tables say?",
        (m.CONNECT_SINK_LAG,),
        "there when Kafka can be asked; near 0 the tables are as fresh as the connector's commits. Markers of "
        "transactions count too, so that an idle sink may stay a little above 0",
    ),
)

QUESTIONS: Final[Mapping[str, tuple[Question, ...]]] = {
    "": _ALL,
    "processor": _PROCESSOR,
    "sink": _SINK,
    "sweeper": _SWEEPER,
    "connect": _CONNECT,
}
