"""Strategy ``batch``: a batch whose commit a rebalance has refused, and that stays ours, is committed later."""

from __future__ import annotations

from collections.abc import Callable

from tests.integration.processor.running import Processors
from tests.support.settings import with_broker
from tests.support.tcp_proxy import Fate, KafkaProxy
from tests.support.topics import Topics
from wait_registry.handler import Record
from wait_registry.settings.root import Settings

OFFSET_COMMIT = 8
REBALANCE_IN_PROGRESS = (27).to_bytes(2, "big")


class _Refusal:
    """Has the first commit of one partition answered as a coordinator does while its group settles."""

    def __init__(self) -> None:
        self.happened = False
        self.commits = 0

    def decide(self, api_key: int) -> Fate:
        self.commits += api_key == OFFSET_COMMIT
        return Fate.PASS

    def change(self, api_key: int, answer: bytes) -> bytes:
        if api_key != OFFSET_COMMIT or self.happened:
            return answer
        self.happened = True
        # The one partition's error stands at the end, but for the empty tags of partition, topic and answer.
        assert answer[-5:] == bytes(5), answer
        return answer[:-5] + REBALANCE_IN_PROGRESS + answer[-3:]


def test_once_is_not_over_before_its_last_batch_is_committed(
    processor_settings: Callable[..., Settings], topics: Topics, processors: Processors
) -> None:
    async def done(record: Record) -> None:
        pass

    settings = processor_settings({"processor.handler": processors.handler(done), "processor.strategy": "batch"}, 1)
    topics.produce(settings.processor.topics[0], [b"value"])
    refusal = _Refusal()
    with KafkaProxy(topics.bootstrap, refusal.decide, refusal.change) as proxy:
        running = processors.run_once(with_broker(settings, proxy.bootstrap_servers))
    assert refusal.happened
    assert refusal.commits == 2
    assert running.done == 1
