"""`waitreg topics create|check`."""

from __future__ import annotations

import click

from wait_registry.diagnosis import Diagnosis, Severity, refuse_errors
from wait_registry.kafka.topics import check_topics, create_topics
from wait_registry.settings.topic_relations import topic_problems
from wait_registry.settings.tree import Settings, unresolved_placeholders
from waitreg import check_report
from waitreg.command import Command, Group, Invocation
from waitreg.doctor.kafka_cluster import by_topic

_EXAMPLES = (
    "waitreg topics create --set wait.replication_factor=1 --set wait.min_insync_replicas=1   # a laptop",
    "waitreg topics create --set processor.topics=orders --input-partitions 6   # the input too, to try it",
    "waitreg topics check",
)


@click.group("topics", cls=Group, examples=_EXAMPLES)
def command() -> None:
    """Create or check the wait topic, the dead letter topics, and the group's own topics."""


@command.command("create", cls=Command, examples=_EXAMPLES)
@click.option(
    "--input-partitions",
    type=click.IntRange(min=1),
    metavar="COUNT",
    help="Also create the missing topics of processor.topics, with COUNT partitions.",
)
@click.pass_obj
def create(invocation: Invocation, input_partitions: int | None) -> int:
    """Create the missing topics, then check all of them.

    Creates the wait topic (compacted, broker time), the operations topic, the dead letter topics that the settings
    name, and the redelivery topics and retry topics (processor.retry.delays) of the group. Topics that exist stay as
    they are. Then it does what `waitreg topics check` does.
    """
    settings = _settings(invocation)
    for topic in create_topics(settings, input_partitions):
        print(f"created   topic {topic}")
    return _report([*_check(settings), *_unnamed(settings)])


@command.command("check", cls=Command, examples=_EXAMPLES)
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, as `waitreg doctor --json` does.")
@click.pass_obj
def check(invocation: Invocation, as_json: bool) -> int:
    """Compare the topics with what the guarantees need.

    Checks the wait topic, the operations topic, the dead letter topics, and the group's input, redelivery and retry
    topics. Prints a command that fixes each problem, and ends with 2 if there is an error. Every service makes the same
    check of its own topics when it starts.
    """
    lines = _check(_settings(invocation))
    if not as_json:
        return _report(lines)
    print(check_report.as_json(lines, []))
    return check_report.exit_code(lines)


def _settings(invocation: Invocation) -> Settings:
    """Load the settings, and refuse names of topics that every service refuses."""
    settings = invocation.settings()
    refuse_errors(topic_problems(settings))
    return settings


def _report(lines: list[Diagnosis]) -> int:
    for line in lines:
        print(check_report.shown(line))
    passed = f"{len({line.subject for line in lines})} topics, nothing that keeps a service from starting"
    print(check_report.summary(lines, passed))
    return check_report.exit_code(lines)


def _unnamed(settings: Settings) -> list[Diagnosis]:
    """Report dead letter topics that are missing because the settings don't give their names."""
    unset = unresolved_placeholders(settings)
    if not unset or settings.sink.dead_letter_topics:
        return []
    seen = (
        f"is {settings.dead_letter.topic!r}, which needs {' and '.join(unset)}. No dead letter topic was created for it"
    )
    fix = "run it with the settings of each group, or with the topics' names in sink.dead_letter_topics"
    return [Diagnosis("dead_letter.topic", Severity.ERROR, seen, fix, "topic.dead_letter.unknown")]


def _check(settings: Settings) -> list[Diagnosis]:
    return list(by_topic(check_topics(settings)))
