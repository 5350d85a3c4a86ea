"""The rules for topics, checked against what the broker reports."""

from __future__ import annotations

import difflib
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Final

from wait_registry.diagnosis import Diagnosis, Severity
from wait_registry.kafka.topic_specs import TopicRole, TopicSpec
from wait_registry.settings.topics import DAY_MS, HOUR_MS


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as the broker describes it; ``replicas`` is that of the partition with the fewest."""

    partitions: int
    replicas: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Rule:
    """What a property must be: ``holds`` compares what the broker reports, or None, with the specified value."""

    name: str
    why: str
    holds: Callable[[str | None, str], bool]
    expected: str = "{}"
    broken: Severity = Severity.ERROR


def _exactly(name: str, why: str, broken: Severity = Severity.ERROR) -> _Rule:
    return _Rule(name, why, lambda seen, wanted: seen == wanted, broken=broken)


def _at_most(name: str, why: str) -> _Rule:
    return _Rule(
        name, why, lambda seen, wanted: seen is not None and int(seen) <= int(wanted), "at most {}", Severity.WARNING
    )


def _at_least(name: str, why: str) -> _Rule:
    return _Rule(name, why, lambda seen, wanted: int(seen or 0) >= int(wanted), "at least {}")


def _kept_for_an_hour(seen: str | None, _: str) -> bool:
    return not 0 <= int(seen or -1) < HOUR_MS


_UNCOMPACTED: Final = (
    _exactly("cleanup.policy", "compaction keeps only the last record of a key, and refuses records without one"),
    _exactly(
        "message.timestamp.type",
        "its time is the writer's: an hour ahead is refused (KIP-937), far behind has records deleted early",
        Severity.WARNING,
    ),
    _at_least("max.message.bytes", "the largest wait record and its lineage block must fit"),
    _exactly("unclean.leader.election.enable", "a stale leader would forget dead letters"),
)
_LOST_UNREAD: Final = "a record that its group hasn't consumed yet would be lost"
_RULES: Final[Mapping[TopicRole, tuple[_Rule, ...]]] = {
    TopicRole.WAIT: (
        _exactly("cleanup.policy", "deletion by age would lose open registrations"),
        _exactly("message.timestamp.type", "freshness and clock checks need the broker's time"),
        _at_most("segment.ms", "open segments are never compacted"),
        _at_most("max.compaction.lag.ms", "settled registrations stay readable and use disk space"),
        _exactly("unclean.leader.election.enable", "a stale leader would forget registrations"),
        _at_least("max.message.bytes", "records up to wait.max_message_bytes must be registrable"),
    ),
    TopicRole.DEAD_LETTER: (
        *_UNCOMPACTED,
        _Rule(
            "retention.ms",
            "a dead letter may be deleted before the sink has read it",
            _kept_for_an_hour,
            f"{HOUR_MS} or more, or -1",
            Severity.WARNING,
        ),
    ),
    TopicRole.REDELIVERY: (
        *_UNCOMPACTED,
        _exactly("retention.ms", _LOST_UNREAD, Severity.WARNING),
        _exactly("retention.bytes", _LOST_UNREAD, Severity.WARNING),
    ),
    TopicRole.OPERATIONS: (
        *_UNCOMPACTED,
        _Rule(
            "retention.ms",
            "a mark that is deleted before its dead letter no longer keeps a redrive exact",
            lambda seen, wanted: int(seen or 0) < 0 or 0 <= int(wanted) <= int(seen or 0),
            "{} or more, or -1",
            Severity.WARNING,
        ),
        _exactly("retention.bytes", "marks would be deleted by size, whatever their age", Severity.WARNING),
    ),
    TopicRole.RETRY: (
        *(rule for rule in _UNCOMPACTED if rule.name != "message.timestamp.type"),
        _exactly("message.timestamp.type", "a record is due a delay after the time at which it was appended"),
        _exactly("retention.ms", _LOST_UNREAD),
        _exactly("retention.bytes", _LOST_UNREAD),
    ),
}


def missing(spec: TopicSpec, bootstrap_servers: str, existing: Iterable[str] = ()) -> Diagnosis:
    """Report a missing topic, and the existing topic that may have been meant."""
    fix = "`waitreg topics create`"
    if not spec.owned:
        plain = f"kafka-topics --bootstrap-server {bootstrap_servers} --create --topic {spec.topic}"
        fix = f"{plain}, or `waitreg topics create --input-partitions 6`"
    names = [name for name in existing if name != spec.topic and not name.startswith("__")]
    # Names with the group in them are derived, so a similar one is that of another group.
    derived = spec.role in (TopicRole.RETRY, TopicRole.REDELIVERY)
    close = [] if derived else difflib.get_close_matches(spec.topic, names, 1, 0.75)
    seen = f"missing, did you mean {close[0]}?" if close else "missing"
    rule = f"the {spec.role} topic"
    if spec.required:
        return _diagnosis(spec, rule, Severity.ERROR, f"{seen}, expected to exist", fix)
    why = "without it the group's dead letters can't be redriven"
    return _diagnosis(spec, rule, Severity.WARNING, "missing, or hidden from this user, expected to exist", fix, why)


def unseen(spec: TopicSpec) -> Diagnosis:
    """Report a topic whose configuration this user may not read, and that isn't required."""
    fix = f"grant this user DESCRIBE_CONFIGS on topic {spec.topic} (kafka-acls --add)"
    found = "hidden from this user, expected to be readable"
    return _diagnosis(spec, "configuration", Severity.WARNING, found, fix)


def _diagnosis(spec: TopicSpec, rule: str, severity: Severity, seen: str, fix: str = "", why: str = "") -> Diagnosis:
    role = f"topic.{spec.role.replace(' ', '_')}"
    name = "missing" if rule == f"the {spec.role} topic" else rule.replace(" ", ".")
    if severity is Severity.OK:
        fix = why = ""
    message = f"{rule} is {seen}{f' ({why})' if why else ''}"
    return Diagnosis(f"topic {spec.topic}", severity, message, fix, f"{role}.{name}")


def check_topic(spec: TopicSpec, state: TopicState, bootstrap_servers: str) -> list[Diagnosis]:
    """Compare one existing topic with its specification.

    Returns:
        A diagnosis for every rule of the topic's role, satisfied ones included.
    """
    if not spec.owned:
        return [_input_size(spec, state), *_input_delay(spec, state), *_input_policy(spec, state)]
    alter = _alter(spec, bootstrap_servers)
    found = [_judged(spec, state, rule, alter) for rule in _RULES[spec.role]]
    if spec.role is TopicRole.WAIT:
        found += [_tombstones(spec, state, alter), _partitions(spec, state)]
    if spec.role is TopicRole.OPERATIONS:
        severity = Severity.OK if state.partitions == 1 else Severity.ERROR
        fix = "create it again under another name with one partition, and set operations.topic to it"
        found.append(
            _diagnosis(spec, "number of partitions", severity, f"{state.partitions}, expected 1, for one order", fix)
        )
    return [*found, *_replication(spec, state, alter)]


def check_mark_retention(
    spec: TopicSpec, state: TopicState, dead_letters: Mapping[str, TopicState], row_days: float, bootstrap_servers: str
) -> Diagnosis:
    """Compare how long marks are kept with how long the dead letters are that they are of.

    Args:
        spec, state: of the operations topic.
        dead_letters: the dead letter topics, by name.
        row_days: how long the tables keep dead letters (sweeper.retention_days).
        bootstrap_servers: for the command that fixes it.
    """
    kept = {topic: _kept_ms(found.config.get("retention.ms")) for topic, found in dead_letters.items()}
    kept["sweeper.retention_days"] = row_days * DAY_MS
    longest = max(kept, key=lambda name: kept[name])
    seen, least = _kept_ms(state.config.get("retention.ms")), kept[longest]
    enough = seen > least or seen == math.inf
    wanted = -1 if least == math.inf else int(least) + 7 * DAY_MS
    return _diagnosis(
        spec,
        "retention beyond dead letters",
        Severity.OK if enough else Severity.WARNING,
        f"{_kept_text(seen)}, expected more than that of {longest}, {_kept_text(least)}",
        f"{_alter(spec, bootstrap_servers)} retention.ms={wanted}",
        "a dead letter whose mark is deleted first may be sent again after a rebuild",
    )


def _kept_ms(retention_ms: str | None) -> float:
    """Return a retention, ms; -1 is unlimited."""
    kept = int(retention_ms or -1)
    return math.inf if kept < 0 else kept


def _kept_text(kept_ms: float) -> str:
    return "unlimited" if kept_ms == math.inf else f"{kept_ms:.0f} ms"


def _alter(spec: TopicSpec, bootstrap_servers: str) -> str:
    return (
        f"kafka-configs --bootstrap-server {bootstrap_servers} --alter --entity-type topics "
        f"--entity-name {spec.topic} --add-config"
    )


def _judged(spec: TopicSpec, state: TopicState, rule: _Rule, alter: str) -> Diagnosis:
    seen, wanted = state.config.get(rule.name), spec.creation_config[rule.name]
    severity = Severity.OK if rule.holds(seen, wanted) else rule.broken
    found = f"{seen or 'unknown'}, expected {rule.expected.format(wanted)}"
    return _diagnosis(spec, rule.name, severity, found, f"{alter} {rule.name}={wanted}", rule.why)


def _tombstones(spec: TopicSpec, state: TopicState, alter: str) -> Diagnosis:
    name, wanted = "delete.retention.ms", spec.wait.delete_retention_ms
    seen, least = int(state.config.get(name, 0)), min(DAY_MS, wanted)
    severity = Severity.OK if seen >= wanted else Severity.WARNING if seen >= least else Severity.ERROR
    why = "a sink or sweeper that is behind by half of it needs a rebuild, since tombstones may be gone"
    found = f"{seen}, expected {wanted} (at least {least})"
    return _diagnosis(spec, name, severity, found, f"{alter} {name}={wanted}", why)


def _partitions(spec: TopicSpec, state: TopicState) -> Diagnosis:
    rule, seen = "number of partitions", state.partitions
    found = f"{seen}, expected wait.partitions = {spec.partitions}"
    if seen == spec.partitions:
        return _diagnosis(spec, rule, Severity.OK, found)
    if seen < spec.partitions:
        fix = f"set wait.partitions to {seen}, for every service, if the topic was created with that number"
        return _diagnosis(spec, rule, Severity.ERROR, found, fix, "some keys would have no partition")
    why = "partitions were added, or it was created with another number; the others stay empty and unread"
    fix = (
        "nothing if partitions were added; if the topic was created with that number and is still empty, set "
        "wait.partitions of every service to it"
    )
    return _diagnosis(spec, rule, Severity.WARNING, found, fix, why)


def _input_size(spec: TopicSpec, state: TopicState) -> Diagnosis:
    name, fits = "max.message.bytes", spec.wait.max_message_bytes
    largest = int(state.config.get(name, 0))
    severity = Severity.OK if largest <= fits else Severity.WARNING
    why = "a record too large for the wait topic can't be registered and goes to the dead letter topic at once"
    # The producers of the input know what they need, so the wait topic has to follow.
    fix = (
        f"set wait.max_message_bytes to {largest}, then run `waitreg topics check` for the topics that must accept more"
    )
    found = f"{largest}, expected at most wait.max_message_bytes = {fits}"
    return _diagnosis(spec, name, severity, found, fix, why)


def _input_delay(spec: TopicSpec, state: TopicState) -> Iterator[Diagnosis]:
    if not spec.delay_s:
        return
    name, keeps_ms = "retention.ms", int(state.config.get("retention.ms", -1))
    fits = keeps_ms < 0 or keeps_ms > spec.delay_s * 1000
    why = "records would be deleted before they are due"
    fix = f"raise {name} of the topic, or lower processor.delay_s"
    found = f"{keeps_ms}, expected -1, or more than processor.delay_s = {spec.delay_s * 1000:.0f}"
    yield _diagnosis(spec, name, Severity.OK if fits else Severity.ERROR, found, fix, why)


def _input_policy(spec: TopicSpec, state: TopicState) -> Iterator[Diagnosis]:
    name, seen = "cleanup.policy", state.config.get("cleanup.policy", "")
    if not spec.redelivered or "compact" not in seen:
        return
    why = (
        "a record that is sent there again would replace newer records of its key, so expired ones become dead letters "
        "and no dead letter is redriven to the input"
    )
    fix = "set processor.redeliver_to to group"
    found = f"{seen}, expected delete with processor.redeliver_to = origin"
    yield _diagnosis(spec, name, Severity.WARNING, found, fix, why)


def _replication(spec: TopicSpec, state: TopicState, alter: str) -> Iterator[Diagnosis]:
    # An operator in a hurry might recreate the topic instead and lose its records.
    fix = "nothing on a single broker; kafka-reassign-partitions with three or more. Never delete a topic for this"
    yield _replicated(spec, "replication factor", state.replicas, 3, fix)
    name, insync = "min.insync.replicas", int(state.config.get("min.insync.replicas", 1))
    if insync > state.replicas:
        found = f"{insync}, expected at most {state.replicas}, the number of replicas"
        fix = f"{alter} {name}={state.replicas}"
        why = "the broker takes the smaller of the two, so it protects less than it says"
        yield _diagnosis(spec, name, Severity.WARNING, found, fix, why)
    elif state.replicas >= 2:  # with a single replica the diagnosis above is enough
        yield _replicated(spec, name, insync, 2, f"{alter} {name}=2")


def _replicated(spec: TopicSpec, rule: str, seen: int, least: int, fix: str) -> Diagnosis:
    severity = Severity.OK if seen >= least else Severity.WARNING
    why = "with fewer, a lost disk loses acknowledged records"
    return _diagnosis(spec, rule, severity, f"{seen}, expected at least {least}", fix, why)
