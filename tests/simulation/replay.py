"""Run the product's real code one effect at a time: it is called again with the answers of the effects before.

The clients in `tests.simulation.clients` ask for their effects here. The first effect without an answer ends the call;
the world performs the effect, and the next call continues behind it. So a process is its call and a tuple of answers,
which a state can hold, and every order of the processes' effects can be tried, with a crash between any two.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any, TypeAlias

from wait_registry.errors import WaitRegistryError

# Its kind and what the world needs to perform it.
Effect: TypeAlias = tuple[Any, ...]
# The kinds of the effects before, with their answers.
Answers: TypeAlias = tuple[tuple[str, Any], ...]
# What happened, whether it is a fault, the state after it, the answer.
Outcome: TypeAlias = tuple[str, bool, Any, Any]


class _Pending(BaseException):
    """The next effect has no answer yet."""


@dataclass(frozen=True, slots=True)
class Ended:
    """A call that has ended: its value, or what it raised."""

    value: Any = None
    error: WaitRegistryError | None = None


@dataclass(frozen=True, slots=True)
class Failure:
    """The answer of an effect that fails."""

    error: Exception


class _Script:
    """The answers that one call gets; the first effect behind them is ``next``."""

    def __init__(self, name: str, answers: Answers) -> None:
        self.name = name
        self.next: Effect | None = None
        self._answers = iter(answers)

    def ask(self, effect: Effect) -> Any:
        if self.next is None:
            for _, answer in self._answers:
                if isinstance(answer, Failure):
                    raise answer.error.with_traceback(None)
                return answer
            self.next = effect
        raise _Pending


_current = _Script("", ())


def ask(*effect: Any) -> Any:
    """Return the answer of an effect to the code that runs now."""
    return _current.ask(effect)


def process_name() -> str:
    """Return the name of the process that runs now."""
    return _current.name


class Replays:
    """Remembers which effect each call asks for next; made anew for each change of the real code.

    Args:
        urgent: pairs of kinds of effects; the second one follows the first one in the same step.
    """

    def __init__(self, urgent: Iterable[tuple[str, str]]) -> None:
        self._urgent = frozenset(urgent)
        self._known: dict[tuple[Any, ...], Effect | Ended] = {}

    def next(self, name: str, call: tuple[Any, ...], run: Callable[[], Any], answers: Answers) -> Effect | Ended:
        """Return the effect that a call asks for after these answers, or its end.

        Args:
            name: of the process.
            call: what is called, with all that its course depends on besides the answers.
            run: calls it.
            answers: of the effects before.
        """
        key = (name, call, answers)
        if key not in self._known:
            self._known[key] = _run(name, run, answers)
        return self._known[key]

    def steps(
        self,
        name: str,
        call: tuple[Any, ...],
        run: Callable[[], Any],
        answers: Answers,
        state: Any,
        perform: Callable[[Any, Effect, Answers], Iterable[Outcome]],
    ) -> Iterator[tuple[str, bool, Any, Answers, Ended | None]]:
        """Yield what the call's next effect may lead to: what happened, fault, state, answers, and the call's end."""
        effect = self.next(name, call, run, answers)
        assert not isinstance(effect, Ended), "a call that has ended is no process"
        for what, fault, after, answer in perform(state, effect, answers):
            if isinstance(after, str):
                yield what, fault, after, answers, None
                continue
            told = (*answers, (str(effect[0]), answer))
            following = self.next(name, call, run, told)
            if isinstance(following, Ended):
                yield what, fault, after, told, following
            elif (effect[0], following[0]) in self._urgent:
                for more, also, *rest in self.steps(name, call, run, told, after, perform):
                    yield f"{what}, {more}", fault or also, *rest  # type: ignore[misc]
            else:
                yield what, fault, after, told, None


def _run(name: str, run: Callable[[], Any], answers: Answers) -> Effect | Ended:
    global _current
    script = _current = _Script(name, answers)
    try:
        value = run()
    except _Pending:
        assert script.next is not None
        return script.next
    except WaitRegistryError as error:
        return Ended(error=error)
    return script.next or Ended(value)
