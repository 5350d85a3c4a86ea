"""Expired dead letters and the sweeper's tombstones: whether each one has the other."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from wait_registry.demo.dead_letter_seen import DeadLetterSeen
from wait_registry.demo.wait_log import WaitLog
from wait_registry.records.tombstone import Outcome


@dataclass(frozen=True, slots=True)
class Pairing:
    """What has no counterpart, in words, and how many dead letters can't be paired since compaction took theirs."""

    unpaired: tuple[str, ...]
    unjudged: int


def pair(expired: Sequence[DeadLetterSeen], log: WaitLog) -> Pairing:
    """Return how the ``expired`` dead letters and the ``expired`` tombstones of a log match, by wait id.

    A registration that compaction took leaves its tombstone, and both are a pair; where the tombstone is gone as well
    nothing can be said.
    """
    letters: dict[str, list[DeadLetterSeen]] = defaultdict(list)
    for letter in expired:
        letters[letter.wait_id].append(letter)
    tombstones = Counter(
        {
            wait_id: sum(1 for entry in history if entry.outcome == Outcome.EXPIRED)
            for wait_id, history in log.by_id.items()
        }
    )
    unpaired: list[str] = []
    unjudged = 0
    for wait_id in sorted(letters.keys() | tombstones.keys()):
        found, count = letters.get(wait_id, []), tombstones[wait_id]
        whole = [letter for letter in found if not log.may_have_taken(letter)]
        if not len(whole) <= count <= len(found) or any(_lacks_tombstone(letter, log) for letter in whole):
            unpaired.append(f"wait {wait_id}: {len(found)} expired dead letters, {count} expired tombstones")
            continue
        unjudged += len(found) - count
        unpaired += [
            f"wait {wait_id}: a dead letter names a registration at {letter.registration}, which is not in the log"
            for letter in whole
            if log.registration(letter) is None
        ]
    return Pairing(tuple(unpaired), unjudged)


def _lacks_tombstone(letter: DeadLetterSeen, log: WaitLog) -> bool:
    registered = log.registration(letter)
    if registered is None:
        return False
    return log.export_tombstone(letter.wait_id, (registered.partition, registered.offset)) is None
