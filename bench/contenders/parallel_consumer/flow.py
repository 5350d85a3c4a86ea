"""Confluent's Parallel Consumer as a flow contender: how it is started, and what it doesn't do.

Its core module is measured, as its documentation introduces it: `poll(context -> ...)` with a thread for each call, so
that 2,000 calls in flight are 2,000 threads. For calls that don't block, its vertx and reactor modules would be the
fairer choice (`vertxFuture`, `react`): one thread hands the records out there and `maxConcurrency` only counts what is
out ("orders of magnitudes higher concurrent processing than the core module's thread per worker module", says its
README of the latter), which would cost less memory and fewer changes of threads at a large N. Registration, queues and
commits are the core's there too. They aren't built here: whose client blocks uses the core.

What is set, and why:

- `maxConcurrency` = N. All other options are its defaults: `PERIODIC_CONSUMER_ASYNCHRONOUS` commits every 5 s, which is
  its fastest mode and the one it suggests to start with, and `batchSize` is 1. `messageBufferSize` and fetch sizes are
  for its PARTITION order, says its README. In the other orders its buffer grows by itself, from 2 N by N every 2 s at
  the most, while fewer than N records wait for a thread. It works for 10 s before it is measured (`warm_s` says how
  long it was): five such steps, and time to compile what is hot.
- Of the consumer: `enable.auto.commit=false`, which it demands, and `auto.offset.reset=earliest`.
- kafka-clients 3.7.0, the version that it is built with and brings along.
- A heap of 1 GB at most, of which Java's default collector takes what it likes; the JVM's other flags are its defaults.
- Logs at WARN, to standard error, through the smallest of slf4j's back ends: what others make of each record's logging
  context (MDC) costs nothing here.
"""

from __future__ import annotations

from typing import Final, Literal, TypeAlias

from bench.contenders.parallel_consumer.program import class_path
from wait_registry.jvm import java_command

Order: TypeAlias = Literal["unordered", "key"]

ORDERS: Final[tuple[Order, ...]] = ("unordered", "key")
VERSION: Final = "parallel-consumer-core 0.5.3.2"
DEFAULT_HEAP: Final = "1g"
MAIN: Final = "io.waitreg.bench.ParallelConsumerFlow"
# "README" is that of github.com/confluentinc/parallel-consumer.
LACKS: Final = (
    "No registry: which records are out is known in its memory, and from the map of finished offsets that it commits "
    "along with the offset (README, Offset Map). "
    "No dead letters: a call that fails is repeated forever (README, Retries: no terminal error support). "
    "No time limit for a call: there is no such option. "
    "A record that is stuck holds the committed offset, and once the map of what is finished behind it takes 75 % of "
    "its 4 kB, no more records are taken (README, Offset Map). "
    "At least once: after a crash what was finished since the last commit, every 5 s, is repeated (README, Offset "
    "Map). No longer maintained by Confluent, says its README since May 2026 (pull request 921)."
)


def flow_command(order: Order, *, heap: str = DEFAULT_HEAP) -> list[str]:
    """Return the program that the contract's arguments are appended to; compiles it first where that isn't done.

    Args:
        order: `unordered`, or `key`: one call at a time of each key, so at most as many as there are keys.
        heap: the JVM's -Xmx.

    Raises:
        ConfigurationError: no JDK, or the jars aren't there; the message says what to do.
    """
    return [
        *(java_command(), f"-Xmx{heap}", "-XX:+ExitOnOutOfMemoryError"),
        *("-Dorg.slf4j.simpleLogger.defaultLogLevel=warn", "-Dorg.slf4j.simpleLogger.showDateTime=true"),
        *("-cp", class_path(), MAIN, "--order", order),
    ]
