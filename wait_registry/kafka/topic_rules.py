"""The rules for topics, checked against what the broker reports."""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from wait_registry.diagnosis import Diagnosis, Severity
from wait_registry.kafka.topic_specs import TopicRole, TopicSpec
from wait_registry.settings.topics import HOUR_MS

DAY_MS = 24 * HOUR_MS


@dataclass(frozen=True, slots=True)
class TopicState:
    """A topic as the broker describes it; ``replicas`` is that of the partition with the fewest."""

    partitions: int
    replicas: int
    config: Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _Rule:
    """A rule about one property: the severity if it is broken, and the value or the advice that fixes it."""

    name: str
    holds: bool
    expected: str
    fixed: str
    why: str
    broken: Severity = Severity.ERROR
    advice: str = ""


def missing(spec: TopicSpec, bootstrap_servers: str, existing: Iterable[str] = ()) -> Diagnosis:
    """Report a missing topic, and the existing topic that may have been meant."""
    fix = "`waitreg topics create`"
    if not spec.owned:
        plain = f"kafka-topics --bootstrap-server {bootstrap_servers} --create --topic {spec.topic}"
        fix = f"{plain}, or `waitreg topics create --input-partitions 6`"
    return _diagnosis(spec, f"the {spec.role} topic", Severity.ERROR, _absent(spec.topic, existing), "to exist", fix)


def _diagnosis(
    spec: TopicSpec, rule: str, severity: Severity, seen: str, expected: str, fix: str = "", why: str = ""
) -> Diagnosis:
    role = f"topic.{spec.role.replace(' ', '_')}"
    name = "missing" if rule == f"the {spec.role} topic" else rule.replace(" ", ".")
    reason = f" ({why})" if why and severity is not Severity.OK else ""
    message = f"{rule} is {seen}, expected {expected}{reason}"
    return Diagnosis(f"topic {spec.topic}", severity, message, fix, f"{role}.{name}")


def _absent(topic: str, existing: Iterable[str]) -> str:
    names = [name for name in existing if name != topic and not name.startswith("__")]
    close = difflib.get_close_matches(topic, names, 1, 0.75)
    return f"missing, did you mean {close[0]}?" if close else "missing"


def check_topic(spec: TopicSpec, state: TopicState, bootstrap_servers: str) -> list[Diagnosis]:
    """Compare one existing topic with its specification.

    Returns:
        A diagnosis for every rule of the topic's role, satisfied ones included.
    """
    rules = {
        TopicRole.WAIT: _wait_rules,
        TopicRole.DEAD_LETTER: _dead_letter_rules,
        TopicRole.REDELIVERY: _redelivery_rules,
        TopicRole.INPUT: _input_rules,
    }[spec.role]
    alter = (
        f"kafka-configs --bootstrap-server {bootstrap_servers} --alter --entity-type topics "
        f"--entity-name {spec.topic} --add-config"
    )
    found = [_judged(spec, state, rule, alter) for rule in rules(spec, state)]
    if spec.role is TopicRole.WAIT:
        found.append(_partitions(spec, state))
    return [*found, *_replication(spec, state, alter)] if spec.owned else found


def _judged(spec: TopicSpec, state: TopicState, rule: _Rule, alter: str) -> Diagnosis:
    seen = state.config.get(rule.name, "unknown")
    severity = Severity.OK if rule.holds else rule.broken
    fix = "" if rule.holds else rule.advice or f"{alter} {rule.name}={rule.fixed}"
    return _diagnosis(spec, rule.name, severity, seen, rule.expected, fix, rule.why)


def _wait_rules(spec: TopicSpec, state: TopicState) -> Iterator[_Rule]:
    yield _exactly(spec, state, "cleanup.policy", "deletion by age would lose open registrations")
    yield _exactly(spec, state, "message.timestamp.type", "freshness and clock checks need the broker's time")
    yield from _tombstones(spec, state)
    yield _at_most(spec, state, "segment.ms", "open segments are never compacted")
    yield _at_most(spec, state, "max.compaction.lag.ms", "settled registrations stay readable and use disk space")
    yield _exactly(spec, state, "unclean.leader.election.enable", "a stale leader would forget registrations")
    wanted = spec.wait.max_message_bytes
    yield _at_least(
        spec, state, "max.message.bytes", wanted, "records up to wait.max_message_bytes must be registrable"
    )


def _partitions(spec: TopicSpec, state: TopicState) -> Diagnosis:
    rule, seen, expected = "number of partitions", str(state.partitions), f"wait.partitions = {spec.partitions}"
    if state.partitions == spec.partitions:
        return _diagnosis(spec, rule, Severity.OK, seen, expected)
    if state.partitions < spec.partitions:
        fix = f"set wait.partitions to {state.partitions}, for every service, if the topic was created with that number"
        return _diagnosis(spec, rule, Severity.ERROR, seen, expected, fix, "some keys would have no partition")
    why = "partitions were added, or it was created with another number; the others stay empty and unread"
    fix = (
        "nothing if partitions were added; if the topic was created with that number and is still empty, set "
        "wait.partitions of every service to it"
    )
    return _diagnosis(spec, rule, Severity.WARNING, seen, expected, fix, why)


def _tombstones(spec: TopicSpec, state: TopicState) -> Iterator[_Rule]:
    name, wanted = "delete.retention.ms", spec.wait.delete_retention_ms
    why = "a sink or sweeper that is behind by half of it needs a rebuild, since tombstones may be gone"
    least = min(DAY_MS, wanted)
    enough = _number(state, name, 0) >= least
    broken = Severity.WARNING if enough else Severity.ERROR
    yield _Rule(name, _number(state, name, 0) >= wanted, f"{wanted} (at least {least})", str(wanted), why, broken)


def _dead_letter_rules(spec: TopicSpec, state: TopicState) -> Iterator[_Rule]:
    yield from _uncompacted_rules(spec, state)
    name, wanted = "retention.ms", spec.creation_config["retention.ms"]
    kept = not 0 <= _number(state, name, -1) < HOUR_MS
    why = "a dead letter may be deleted before the sink has read it"
    yield _Rule(name, kept, f"{HOUR_MS} or more, or -1", wanted, why, Severity.WARNING)


def _redelivery_rules(spec: TopicSpec, state: TopicState) -> Iterator[_Rule]:
    yield from _uncompacted_rules(spec, state)
    why = "a record that its group hasn't consumed yet would be lost"
    for name in ("retention.ms", "retention.bytes"):
        yield _exactly(spec, state, name, why, Severity.WARNING)


def _uncompacted_rules(spec: TopicSpec, state: TopicState) -> Iterator[_Rule]:
    seen = state.config.get("cleanup.policy", "")
    # With compaction a second dead letter of the same key removes the first.
    why = "compaction keeps only the last record of a key, and refuses records without one"
    yield _Rule("cleanup.policy", seen == "delete", "delete", "delete", why)
    clock = "its time is the writer's: an hour ahead is refused (KIP-937), far behind has records deleted early"
    yield _exactly(spec, state, "message.timestamp.type", clock, Severity.WARNING)
    wanted = _number_of(spec.creation_config["max.message.bytes"])
    yield _at_least(spec, state, "max.message.bytes", wanted, "the largest wait record and its lineage block must fit")
    yield _exactly(spec, state, "unclean.leader.election.enable", "a stale leader would forget dead letters")


def _input_rules(spec: TopicSpec, state: TopicState) -> Iterator[_Rule]:
    largest, fits = _number(state, "max.message.bytes", 0), spec.wait.max_message_bytes
    why = "a record too large for the wait topic can't be registered and goes to the dead letter topic at once"
    at_most = f"at most wait.max_message_bytes = {fits}"
    # The producers of the input know what they need, so the wait topic has to follow.
    advice = (
        f"set wait.max_message_bytes to {largest}, then run `waitreg topics check` for the topics that must accept more"
    )
    yield _Rule("max.message.bytes", largest <= fits, at_most, "", why, Severity.WARNING, advice)


def _replication(spec: TopicSpec, state: TopicState, alter: str) -> Iterator[Diagnosis]:
    development = "fewer is for development: a lost disk loses acknowledged records"
    fix = "nothing on a single broker; kafka-reassign-partitions with three or more"
    # An operator in a hurry might recreate the topic instead and lose its records.
    fix += f". Never delete the {spec.role} topic for this"
    yield _least(spec, "replication factor", state.replicas, 3, development, fix)
    name, insync = "min.insync.replicas", _number(state, "min.insync.replicas", 1)
    if insync <= state.replicas:
        if state.replicas >= 2:  # with a single replica the diagnosis above is enough
            yield _least(spec, name, insync, 2, development, f"{alter} {name}=2")
        return
    most, why = f"at most {state.replicas}, the number of replicas", "nothing could be written"
    yield _diagnosis(spec, name, Severity.ERROR, str(insync), most, f"{alter} {name}={state.replicas}", why)


def _least(spec: TopicSpec, rule: str, seen: int, least: int, why: str, fix: str) -> Diagnosis:
    if seen >= least:
        return _diagnosis(spec, rule, Severity.OK, str(seen), f"at least {least}")
    return _diagnosis(spec, rule, Severity.WARNING, str(seen), f"at least {least}", fix, why)


def _exactly(spec: TopicSpec, state: TopicState, name: str, why: str, broken: Severity = Severity.ERROR) -> _Rule:
    wanted = spec.creation_config[name]
    return _Rule(name, state.config.get(name) == wanted, wanted, wanted, why, broken)


def _at_most(spec: TopicSpec, state: TopicState, name: str, why: str) -> _Rule:
    wanted = spec.creation_config[name]
    holds = _number(state, name, 2**63 - 1) <= int(wanted)
    return _Rule(name, holds, f"at most {wanted}", wanted, why, Severity.WARNING)


def _at_least(spec: TopicSpec, state: TopicState, name: str, wanted: int, why: str) -> _Rule:
    return _Rule(name, _number(state, name, 0) >= wanted, f"at least {wanted}", str(wanted), why)


def _number(state: TopicState, name: str, absent: int) -> int:
    return _number_of(state.config[name]) if name in state.config else absent


def _number_of(text: str) -> int:
    return int(text)
