"""Lines that show one figure, or one divided by another."""

from __future__ import annotations

from bench.harness.row import Line, NotMeasuredError, Round
from bench.harness.target import Target

# Case, contender, name of the figure.
Place = tuple[str, str, str]


def figure_line(
    text: str,
    place: Place,
    unit: str = "",
    *,
    target: Target | None = None,
    aim: Target | None = None,
    factor: float = 1.0,
    why: str = "",
) -> Line:
    """Return the line of a figure, multiplied by a factor that makes its unit the line's."""
    case, contender, name = place
    return Line(text, lambda round_: factor * round_.figure(case, contender, name), unit, target, aim, why)


def ratio_line(text: str, place: Place, to: Place, *, target: Target | None = None, why: str = "") -> Line:
    """Return the line of a figure divided by another one, which may be of another case of the same round."""

    def value(round_: Round) -> float:
        divisor = round_.figure(*to)
        if divisor == 0:
            raise NotMeasuredError(f"{to[0]}, {to[1]}: {to[2]} is 0", failed=False)
        return round_.figure(*place) / divisor

    return Line(text, value, "", target, why=why)
