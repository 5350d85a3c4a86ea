"""Sends a record in every compression to a topic of its own, from a container, and prints what the broker took.

Part of `make compose-test`; runs where confluent_kafka is, in an image of ours. Arguments: bootstrap servers, a topic.
"""

from __future__ import annotations

import sys

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

CODECS = ("none", "gzip", "lz4", "snappy", "zstd")
LIMIT_S = 20


def main(bootstrap_servers: str, topic: str) -> int:
    """Return 0 when the broker took all of them; print a line for each."""
    servers = {"bootstrap.servers": bootstrap_servers}
    admin = AdminClient(servers)
    admin.create_topics([NewTopic(topic, 1, 1)])[topic].result(LIMIT_S)
    refused = [codec for codec in CODECS if not taken(servers, topic, codec)]
    return 1 if refused else 0


def taken(servers: dict[str, str], topic: str, codec: str) -> bool:
    """Return whether the broker acknowledged a record in this compression."""
    answers: list[str] = []
    producer = Producer({**servers, "compression.type": codec, "message.timeout.ms": LIMIT_S * 1000})
    # Of a size that is worth compressing: otherwise it is sent as it is.
    producer.produce(topic, b"a" * 10_000, on_delivery=lambda error, _: answers.append(str(error or "taken")))
    producer.flush(2 * LIMIT_S)
    print(f"{codec}: {', '.join(answers) or 'no answer'}")
    return answers == ["taken"]


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
