"""`waitreg topics create|check`."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Final

from wait_registry.cli.command import Command, Invocation
from wait_registry.errors import ConfigurationError, WaitRegistryError

if TYPE_CHECKING:
    from wait_registry.cli.check_line import CheckLine
    from wait_registry.settings.root import Settings


def _configure(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("action", choices=("create", "check"), help="make what is missing, or look and say")
    parser.add_argument(
        "--input-partitions",
        type=int,
        metavar="COUNT",
        help="with create: also make the missing topics of processor.topics, with so many partitions",
    )
    parser.add_argument("--json", action="store_true", help="with check: one JSON object, as `waitreg doctor --json`")


def _run(invocation: Invocation) -> int:
    from wait_registry.cli.check_report import exit_code, summary

    given = invocation.arguments
    if given.json:
        return _check_as_json(invocation)
    settings = invocation.settings()
    if given.action == "create":
        _create(settings, given.input_partitions)
    lines = _check(settings)
    if given.action == "create":
        lines += _not_made(settings)
    for line in lines:
        print(line)
    print(summary(lines, f"{len({line.subject for line in lines})} topics, nothing that keeps a service from starting"))
    return exit_code(lines)


def _check_as_json(invocation: Invocation) -> int:
    from wait_registry.cli.check_line import CheckLine, Standing
    from wait_registry.cli.check_report import as_json, exit_code

    if invocation.arguments.action != "check":
        raise ConfigurationError("--json goes with `topics check` only")
    try:
        lines = _check(invocation.settings())
        code = exit_code(lines)
    except WaitRegistryError as error:
        lines = [CheckLine("topics", Standing.ERROR, str(error), "`waitreg doctor` says more", "topic")]
        code = error.exit_code
    print(as_json(lines, ()))
    return code


def _create(settings: Settings, input_partitions: int | None) -> None:
    from wait_registry.cli.input_topics import create_input_topics
    from wait_registry.kafka.topics import create_topics

    made = create_topics(settings)
    if input_partitions is not None:
        made += create_input_topics(settings, input_partitions)
    for topic in made:
        print(f"created   topic {topic}")


def _not_made(settings: Settings) -> list[CheckLine]:
    """Say that dead letter topics are missing whose names nobody has told."""
    from wait_registry.cli.check_line import CheckLine, Standing
    from wait_registry.settings.root import unresolved_placeholders

    unset = unresolved_placeholders(settings)
    if not unset or settings.sink.dead_letter_topics:
        return []
    seen = f"is {settings.dead_letter.topic!r}, which needs {' and '.join(unset)}: no dead letter topic was made for it"
    mend = "run it with the settings of each group, or with the topics' names in sink.dead_letter_topics"
    return [CheckLine("dead_letter.topic", Standing.ERROR, seen, mend, "topic.dead_letter.unknown")]


def _check(settings: Settings) -> list[CheckLine]:
    from wait_registry.cli.topic_lines import topic_lines
    from wait_registry.kafka.topics import check_topics

    return list(topic_lines(check_topics(settings), settings))


COMMAND: Final = Command(
    name="topics",
    group="setting up",
    summary="create or check the wait topic and the dead letter topics",
    description="""\
`create` makes the wait topic (compacted, broker time) and the dead letter topics (under the policy `redeliver` the
redelivery topics too) that the settings name, leaving those that exist as they are, then checks. `check` compares
them, and the input topics, with what the promises need, prints the command that mends what differs, and ends with 2
when something must be mended. Every service does the same check when it starts. --json prints the same object as
`waitreg doctor --json`, whose checks have ids like topic.wait.cleanup.policy or topic.dead_letter.missing.""",
    examples=(
        "waitreg topics create --set wait.replication_factor=1 --set wait.min_insync_replicas=1   # a laptop",
        "waitreg topics create --set processor.topics=orders --input-partitions 6   # the input too, for trying out",
        "waitreg topics check",
    ),
    run=_run,
    configure=_configure,
)
