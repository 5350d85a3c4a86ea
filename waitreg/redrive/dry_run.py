"""The dry run: what a job would do with each dead letter of its selection. Nothing is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime

from wait_registry.clock import SystemClock
from wait_registry.dead_letters.filter import Filter
from wait_registry.kafka.clients import admin
from wait_registry.kafka.targets import Targets
from wait_registry.records.operation import Kind, Place, Replacement, Requested
from wait_registry.settings.tree import Settings
from waitreg.redrive.approval import with_approval
from waitreg.redrive.classifier import CHUNK, Classifier, next_candidates
from waitreg.redrive.connect_tables import require_current, require_said
from waitreg.redrive.edit import require_room
from waitreg.redrive.exact_marks import ExactMarks, exact_marks
from waitreg.redrive.job_decision import Category
from waitreg.redrive.request import Asker, Options, new_request, only_group, with_rate

EXAMPLES = 3


@dataclass(frozen=True, slots=True)
class DryRun:
    """What a job would do.

    Attributes:
        job: the request, with the ends of its selection, the counts by category, and whether it needs an approval.
        as_of: up to when the tables show what the operations topic has.
        examples: the first dead letters of each category.
        targets: how many records would go to each topic.
    """

    job: Requested
    as_of: datetime
    examples: dict[str, list[Place]]
    targets: Counter[str]


def dry_run(
    settings: Settings,
    kind: Kind,
    chosen: Filter,
    options: Options,
    asker: Asker,
    replacement: Replacement | None = None,
) -> DryRun:
    """Return what a new job would do; nothing is changed.

    Args:
        settings: of the cluster, the tables and the limits.
        kind: what the job does.
        chosen: which dead letters.
        options: how.
        asker: who asks.
        replacement: the edited record that is sent in place of the only dead letter's own.

    Raises:
        ConfigurationError: the job isn't possible, or what a Kafka Connect sink keeps isn't enough to judge by.
        TransientError, psycopg.Error: Kafka or Postgres is unavailable; retry.
    """
    options, client, clock = with_rate(settings, kind, options), admin(settings.kafka), SystemClock()
    require_said(settings, options.allowed)
    require_current(settings, kind, client, clock)
    with exact_marks(settings, client, clock) as marks:
        group = only_group(marks.tables.groups(chosen), chosen)
        job = new_request(kind, group, chosen, options, asker, replacement)
        found = classify_selection(job, chosen, Classifier(settings, job, client), marks)
    if replacement is not None:
        require_room(found.job, Targets(client)(settings.operations.topic))
    return replace(found, job=with_approval(settings.redrive, found.job))


def classify_selection(job: Requested, chosen: Filter, classifier: Classifier, marks: ExactMarks) -> DryRun:
    """Return what a job would do with its selection.

    Args:
        job: what is asked for; its ends and counts are filled in.
        chosen: its conditions.
        classifier: of its dead letters.
        marks: read to the end of the operations topic.
    """
    selected = marks.tables.ends(chosen)
    ends = {topic: dict(by) for topic, by in selected.items()}
    counts, examples, targets, seen = Counter[str](), dict[str, list[Place]](), Counter[str](), set[str]()
    candidates = marks.tables.candidates(chosen, selected, None)
    while chunk := next_candidates(candidates, CHUNK):
        for candidate, category, _ in classifier.decide(chunk, marks, seen, sends=False):
            if candidate.twins:
                _reach(ends, (twin.place for twin in candidate.twins))
            counts[category] += 1
            if category is Category.REDRIVEN:
                targets[classifier.route.topic(candidate)] += 1
            if len(named := examples.setdefault(category, [])) < EXAMPLES:
                named.append(candidate.place)
    job = job.model_copy(update={"ends": ends, "expected": dict(counts)})
    return DryRun(job, marks.tables.as_of, examples, targets)


def _reach(ends: dict[str, dict[int, int]], twins: Iterable[Place]) -> None:
    """Have a selection end behind all dead letters of a delivery, since its mark is of those before the ends.

    The selection means no other dead letter thereby: the tables had all that are before these already.
    """
    for place in twins:
        by = ends.setdefault(place.topic, {})
        by[place.partition] = max(by.get(place.partition, 0), place.offset + 1)
