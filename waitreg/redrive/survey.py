"""The dry run: what a job would do with each dead letter of its selection. Nothing is sent."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime

from wait_registry.clock import Clock
from wait_registry.dead_letters.filter import Filter
from wait_registry.kafka.clients import Admin
from wait_registry.kafka.tail_reader import TailReader
from wait_registry.records.operation import Place, Requested
from wait_registry.settings.root import Settings
from waitreg.redrive.category import Category
from waitreg.redrive.connect_tables import require_current, require_said
from waitreg.redrive.executor import operations_log, require_same_operations_topic
from waitreg.redrive.judge import Judge
from waitreg.redrive.operations_tail import OperationsTail
from waitreg.redrive.view import View

EXAMPLES = 3


@dataclass(slots=True)
class Survey:
    """What a job would do.

    Attributes:
        job: the request, with the ends of its selection and the counts by category.
        examples: the first dead letters of each category.
        targets: how many records would go to each topic.
        as_of: up to when the tables show what the operations topic has.
    """

    job: Requested
    as_of: datetime
    examples: dict[str, list[Place]] = field(default_factory=dict)
    targets: Counter[str] = field(default_factory=Counter)


def survey(settings: Settings, job: Requested, chosen: Filter, client: Admin, clock: Clock) -> Survey:
    """Judge the selection of a job.

    Args:
        settings: of the cluster, the tables and the limits.
        job: what is asked for; its ends and counts are filled in.
        chosen: its conditions.
        client: of the cluster.
        clock: for deadlines.

    Raises:
        TransientError, ConfigurationError: what a Kafka Connect sink keeps isn't enough to judge by.
    """
    require_said(settings, job)
    require_current(settings, job, client, clock)
    with closing(View(settings)) as view:
        require_same_operations_topic(view, client, settings)
        job = job.model_copy(update={"ends": view.ends(chosen)})
        tail = OperationsTail(view.start, job.job, settings.redrive.max_tail_records)
        with closing(TailReader(operations_log(settings), client, clock, tail)) as reader:
            reader.read_on()
        found = Survey(job, view.as_of)
        judge, counts, seen = Judge(settings, job, client, clock), Counter[str](), set[str]()
        ends = {topic: dict(by) for topic, by in job.ends.items()}
        for candidate in view.candidates(chosen, job.ends, None):
            _reach(ends, (twin.place for twin in candidate.of_delivery))
            category = judge.category(candidate, view, tail, seen)
            counts[category] += 1
            if category is Category.REDRIVEN:
                found.targets[judge.route.topic(candidate)] += 1
            examples = found.examples.setdefault(category, [])
            if len(examples) < EXAMPLES:
                examples.append(candidate.place)
        found.job = job.model_copy(update={"ends": ends, "expected": dict(counts)})
        return found


def _reach(ends: dict[str, dict[int, int]], of_delivery: Iterable[Place]) -> None:
    """Have a selection end behind all dead letters of a delivery, since its mark is of those before the ends.

    The selection means no other dead letter thereby: the tables had all that are before these already.
    """
    for place in of_delivery:
        by = ends.setdefault(place.topic, {})
        by[place.partition] = max(by.get(place.partition, 0), place.offset + 1)
