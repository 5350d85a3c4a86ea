"""What a process had sent when it died lands at any later time, in order for each wait id, or is lost."""

from __future__ import annotations

from tests.model.explorer import Step
from tests.model.processing.state import REGISTERED, STANDING, Instance, Sent, State, fewer, set_at

# The bit of the one wait id that a record has in every process.
WAIT_ID = 1


def leaving_requests(dead: State, instance: Instance, what: str, steps: list[Step]) -> None:
    """Add the death of an instance that leaves requests on their way.

    Args:
        dead: the state after its death.
        instance: the instance as it was.
        what: how the story calls its death.
        steps: where the step is added, if it has sent anything and may leave it.
    """
    if dead.lingering and any(instance.queues):
        sent = tuple(sorted((*dead.sent, instance.queues)))
        steps.append(
            (f"{what}, with requests on their way", True, dead._replace(sent=sent, lingering=fewer(dead.lingering)))
        )


def lingering_steps(state: State, steps: list[Step]) -> None:
    """Add what may become of the requests of those who died, anywhere: each lands, or it and all behind it are lost."""
    for which, sent in enumerate(state.sent):
        for record, queue in enumerate(sent):
            if queue:
                steps += [landing(state, which, record), losing(state, which, record)]


def landing(state: State, which: int, record: int) -> Step:
    """Return the landing of the first of a record's messages that a dead process has sent."""
    sent, fate = state.sent[which], state.fates[record]
    message, rest = sent[record][0], sent[record][1:]
    if message == "T":
        what, fate = "tombstone", set_at(fate, STANDING, fate[STANDING] & ~WAIT_ID)
    else:
        what, fate = "wait record", set_at(set_at(fate, REGISTERED, 1), STANDING, fate[STANDING] | WAIT_ID)
    left = _without(state, which, set_at(sent, record, rest))
    landed = left._replace(fates=set_at(state.fates, record, fate))
    return f"the {what} of record {record} that a dead processor has sent lands", False, landed


def losing(state: State, which: int, record: int) -> Step:
    """Return the loss of all of a record's messages that a dead process has sent and no broker has received."""
    left = _without(state, which, set_at(state.sent[which], record, ""))
    return f"what a dead processor has sent of record {record} is lost", False, left


def _without(state: State, which: int, left: Sent) -> State:
    others = (*state.sent[:which], *state.sent[which + 1 :])
    return state._replace(sent=tuple(sorted((*others, left))) if any(left) else others)
