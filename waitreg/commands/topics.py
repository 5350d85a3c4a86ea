"""`waitreg topics create|check`."""

from __future__ import annotations

import argparse
from typing import Final

from waitreg.commands.command import Command, Invocation


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("create", "check"), help="make what is missing, or look and say")
    parser.add_argument(
        "--input-partitions",
        type=int,
        metavar="COUNT",
        help="with create: also make the missing topics of processor.topics, with so many partitions",
    )


def _run(invocation: Invocation) -> int:
    from wait_registry.kafka.topics import check_topics, create_topics
    from waitreg.commands.check_line import Standing
    from waitreg.commands.input_topics import create_input_topics
    from waitreg.commands.topic_lines import topic_lines

    settings = invocation.settings()
    if invocation.arguments.action == "create":
        made = create_topics(settings)
        if invocation.arguments.input_partitions is not None:
            made += create_input_topics(settings, invocation.arguments.input_partitions)
        for topic in made:
            print(f"created   topic {topic}")
    lines = list(topic_lines(check_topics(settings)))
    for line in lines:
        print(line)
    return 2 if any(line.standing is Standing.ERROR for line in lines) else 0


COMMAND: Final = Command(
    name="topics",
    group="setting up",
    summary="create or check the wait topic and the dead letter topics",
    description="""\
`create` makes the wait topic (compacted, broker time) and the dead letter topics (under the policy `redeliver` the
redelivery topics too) that the settings name, leaving those that exist as they are, then checks. `check` compares
them, and the input topics, with what the promises need, prints the command that mends what differs, and ends with 2
when something must be mended. Every service does the same check when it starts.""",
    examples=(
        "waitreg topics create --set wait.replication_factor=1 --set wait.min_insync_replicas=1   # a laptop",
        "waitreg topics create --set processor.topics=orders --input-partitions 6   # the input too, for trying out",
        "waitreg topics check",
    ),
    run=_run,
    configure=_configure,
)
