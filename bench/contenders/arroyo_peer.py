"""sentry-arroyo: Sentry's consumer library on librdkafka, with the strategy that its pages give for each kind of work.

`RunTask` calls a function in the loop's own thread: for work that doesn't wait (getsentry.github.io/arroyo, "Run Task";
sleeping in it "is not recommended", says "Backpressure"). `RunTaskInThreads` is for what waits: N threads ("can be used
to run IO-bound tasks in parallel"). Both are followed by `CommitOffsets` under the policy `ONCE_PER_SECOND`, as its
page "Committing offsets" recommends; the consumer's configuration is what `build_kafka_consumer_configuration` makes.
Runs in the peers' environment (setup/bench_peers.sh).
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from arroyo.backends.kafka import KafkaConsumer  # type: ignore[import-not-found,unused-ignore]
from arroyo.backends.kafka.configuration import (  # type: ignore[import-not-found,unused-ignore]
    build_kafka_consumer_configuration,
)
from arroyo.commit import ONCE_PER_SECOND  # type: ignore[import-not-found,unused-ignore]
from arroyo.processing import StreamProcessor  # type: ignore[import-not-found,unused-ignore]
from arroyo.processing.strategies import (  # type: ignore[import-not-found,unused-ignore]
    CommitOffsets,
    ProcessingStrategyFactory,
    RunTask,
    RunTaskInThreads,
)
from arroyo.types import Topic  # type: ignore[import-not-found,unused-ignore]

from bench.contenders.arguments import FlowArguments, parse
from bench.contenders.calls import BlockingCall, blocking_call
from bench.contenders.measured_run import MeasuredRun

# As many again as can run: a thread that becomes free finds work without waiting for the loop.
QUEUED_PER_THREAD: Final = 2


class Factory(ProcessingStrategyFactory):  # type: ignore[misc,unused-ignore]
    """Makes the chain of strategies after each assignment."""

    def __init__(self, call: BlockingCall, arguments: FlowArguments) -> None:
        self._call = call
        self._arguments = arguments

    def create_with_partitions(self, commit: Any, partitions: Mapping[Any, int]) -> Any:
        """Return the first strategy of the chain."""
        last, threads = CommitOffsets(commit), self._arguments.in_flight
        if self._arguments.handler == "timed":
            return RunTaskInThreads(self._run, threads, QUEUED_PER_THREAD * threads, last)
        return RunTask(self._run, last)

    def _run(self, message: Any) -> None:
        self._call(message.payload.value)


def work(arguments: FlowArguments) -> None:
    """Consume until the run ends the process."""
    call = blocking_call(arguments.handler, MeasuredRun(arguments).meter)
    configuration = build_kafka_consumer_configuration(
        {}, bootstrap_servers=[arguments.kafka], group_id=arguments.group, auto_offset_reset="earliest"
    )
    consumer = KafkaConsumer(configuration)
    StreamProcessor(consumer, Topic(arguments.topic), Factory(call, arguments), ONCE_PER_SECOND).run()


if __name__ == "__main__":
    work(parse(__doc__))
