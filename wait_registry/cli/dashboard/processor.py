"""Row "Processor": does it keep up, what do the handlers do, is what it took safe."""

from __future__ import annotations

from typing import Final

from wait_registry.cli.dashboard.expressions import SCOPE, largest, per_second, quantile, series, smallest, summed
from wait_registry.cli.dashboard.page import Row
from wait_registry.cli.dashboard.panel import Panel, Query
from wait_registry.telemetry import metrics as m

_FLOW: Final = (
    Panel(
        "Records a second",
        "Consumed, registered, and settled by outcome: three lines on top of each other when all is well. Consumed "
        "above settled for long: the look-ahead fills, then consumption pauses.",
        (
            Query(per_second(m.PROCESSOR_CONSUMED), "consumed"),
            Query(per_second(m.PROCESSOR_REGISTERED), "registered"),
            Query(per_second(m.PROCESSOR_SETTLED, "outcome"), "{{outcome}}"),
        ),
        unit="reqps",
    ),
    Panel(
        "Consumer lag",
        "Records of each topic that its group hasn't consumed yet. Growing: more slots (processor.max_in_flight), more "
        "processes (up to the topic's partitions), or a faster handler.",
        (Query(summed(m.PROCESSOR_CONSUMER_LAG, "group, topic"), "{{topic}} {{group}}"),),
    ),
    Panel(
        "Time to work the lag off",
        "The lag over the rate of consumption: how late a record is that comes in now. Alerts from 30 minutes on.",
        (
            Query(
                f"{summed(m.PROCESSOR_CONSUMER_LAG, 'group, topic')}"
                f" / {per_second(m.PROCESSOR_CONSUMED, 'group, topic')}",
                "{{topic}} {{group}}",
            ),
        ),
        unit="s",
        steps=((1800, "red"),),
    ),
    Panel(
        "Slots",
        "Handlers that run, against how many may (N). At N all the time with a growing lag: raise N, if what the "
        "handler calls can take it. Blocked ones time out and never return: mend the handler.",
        (
            Query(summed(m.PROCESSOR_IN_FLIGHT), "in flight"),
            Query(summed(m.PROCESSOR_IN_FLIGHT_LIMIT), "N"),
            Query(summed(m.PROCESSOR_BLOCKED_SLOTS), "blocked"),
            Query(summed(m.PROCESSOR_WAITING), "waiting for a slot"),
        ),
    ),
    Panel(
        "Look-ahead",
        "Records registered and not finished, against the limit. At the limit consumption waits; it is meant to with "
        "slow handlers.",
        (
            Query(summed(m.PROCESSOR_LOOK_AHEAD), "records"),
            Query(summed(m.PROCESSOR_LOOK_AHEAD_LIMIT), "limit"),
            Query(summed(m.PROCESSOR_PAUSED), "processes paused"),
        ),
    ),
    Panel(
        "Look-ahead, bytes",
        "Keys, values and headers held in memory, bounded by processor.look_ahead_max_bytes a process.",
        (Query(largest(m.PROCESSOR_LOOK_AHEAD_BYTES, "instance"), "{{instance}}"),),
        unit="bytes",
    ),
)

_HANDLER: Final = (
    Panel(
        "Handler time, all outcomes",
        "From first start to outcome, tries and pauses included. The rate can't exceed N over the mean.",
        (
            Query(quantile(0.5, m.PROCESSOR_HANDLER_SECONDS), "half below"),
            Query(quantile(0.95, m.PROCESSOR_HANDLER_SECONDS), "95 % below"),
            Query(quantile(0.99, m.PROCESSOR_HANDLER_SECONDS), "99 % below"),
            Query(largest(m.PROCESSOR_OLDEST_IN_FLIGHT), "oldest that runs"),
            Query(largest(m.PROCESSOR_STANDSTILL), "event loop stands still"),
        ),
        unit="s",
    ),
    Panel(
        "Handler time by outcome, 95 % below",
        "Dead-lettered at time-out x tries: what it calls doesn't answer. Dead-lettered at once: the records are bad.",
        (Query(quantile(0.95, m.PROCESSOR_HANDLER_SECONDS, "outcome"), "{{outcome}}"),),
        unit="s",
    ),
    Panel(
        "Handler calls by result",
        "Errors and time-outs are tried again up to processor.max_attempts; the log has each with its wait id.",
        (Query(per_second(m.PROCESSOR_ATTEMPTS, "result"), "{{result}}"),),
        unit="reqps",
        stacked=True,
    ),
)

_SAFE: Final = (
    Panel(
        "Wait before the start",
        "From registration to start, against the longest that is possible. Nearing it: the TTL is short for N, "
        "time-out and tries; raise processor.ttl_s. Renewed records had to be registered again.",
        (
            Query(quantile(0.99, m.PROCESSOR_QUEUE_SECONDS), "99 % below"),
            Query(smallest(m.PROCESSOR_QUEUE_LIMIT), "limit"),
            Query(per_second(m.PROCESSOR_RENEWED), "renewed a second"),
        ),
        unit="s",
    ),
    Panel(
        "Consumed and not committed",
        "What a restart would consume again, the worst partition of each process. Not 0 for long: look for failed "
        "commits, unacknowledged wait records, or a handler that has run since the assignment.",
        (Query(largest(m.PROCESSOR_COMMIT_LAG, "instance"), "{{instance}}"),),
    ),
    Panel(
        "Since the last commit",
        "Grows while nothing is consumed, which is well; alerts when something is.",
        (Query(f"time() - ({largest(m.PROCESSOR_LAST_COMMIT, 'instance')} > 0)", "{{instance}}"),),
        unit="s",
    ),
    Panel(
        "On the way to the broker",
        "Wait records, and tombstones with dead letters, that are sent and not acknowledged. Growing: the brokers are "
        "slow or too few replicas are in sync.",
        (
            Query(summed(m.PROCESSOR_UNACKNOWLEDGED), "wait records"),
            Query(summed(m.PROCESSOR_OUTBOX), "tombstones and dead letters"),
        ),
    ),
    Panel(
        "Commits and rebalances",
        "A second. Rebalances without a deployment: processes that die, or that don't poll within "
        "max.poll.interval.ms.",
        (
            Query(per_second(m.PROCESSOR_COMMITS, "result"), "commits {{result}}"),
            Query(per_second(m.PROCESSOR_REBALANCES, "kind"), "{{kind}}"),
            Query(summed(m.PROCESSOR_ASSIGNED), "partitions assigned"),
        ),
    ),
    Panel(
        "Clock against the broker's",
        "At the limit the process stops. Synchronise the clocks (NTP).",
        (
            Query(f"abs({series(m.PROCESSOR_CLOCK_SKEW)})", "{{instance}}"),
            Query(smallest(m.PROCESSOR_CLOCK_SKEW_LIMIT), "limit"),
        ),
        unit="s",
    ),
    Panel(
        "Who is who",
        "The name that each process has in wait records and in the tables (column instance) and its group.",
        (
            Query(
                f"count by (instance, consumer_group, wait_instance) ({m.PROCESSOR_INFO.name}{{{SCOPE}}})",
                "{{instance}} is {{wait_instance}} ({{consumer_group}})",
            ),
        ),
        width=24,
        single=True,
    ),
)

PROCESSOR: Final = Row("Processor", (*_FLOW, *_HANDLER, *_SAFE))
