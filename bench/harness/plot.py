"""Line plots as SVG: axes with units, points with their spread, a legend; readable on light and on dark pages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from html import escape
from typing import Final

from bench.harness.number import shown
from bench.harness.row import Axis, NotMeasuredError, Plot, Points, Round
from bench.harness.scale import Scale
from bench.harness.spread import Spread, spread_of

WIDTH: Final = 720
HEIGHT: Final = 400
# The frame's distances from the picture's edges; below HEIGHT comes the legend.
LEFT: Final = 108
RIGHT: Final = 44
TOP: Final = 44
BOTTOM: Final = 64
LEGEND_LINE: Final = 20
COLOURS: Final = 7
BAR: Final = 6
# Colours that people with any colour vision tell apart (Okabe and Ito, "Color Universal Design", 2008), the darker and
# the lighter ones for white and for dark pages.
STYLE: Final = """\
text { font: 13px system-ui, sans-serif; fill: #24292f; } .title { font-size: 15px; font-weight: 600; }
.page { fill: #ffffff; } .frame { fill: none; stroke: #6e7781; } .grid { stroke: #d0d7de; stroke-width: 1; }
.curve { fill: none; stroke-width: 2; } .spread, .bar { stroke-width: 1; }
.c0 { stroke: #0072b2; } .c1 { stroke: #d55e00; } .c2 { stroke: #009e73; } .c3 { stroke: #cc79a7; }
.c4 { stroke: #a87b00; } .c5 { stroke: #56b4e9; } .c6 { stroke: #6e7781; }
circle.c0 { fill: #0072b2; } circle.c1 { fill: #d55e00; } circle.c2 { fill: #009e73; } circle.c3 { fill: #cc79a7; }
circle.c4 { fill: #a87b00; } circle.c5 { fill: #56b4e9; } circle.c6 { fill: #6e7781; }
@media (prefers-color-scheme: dark) {
text { fill: #e6edf3; } .page { fill: #0d1117; } .frame { stroke: #8b949e; } .grid { stroke: #30363d; }
.c0 { stroke: #58a6ff; } .c4 { stroke: #f0e442; }
circle.c0 { fill: #58a6ff; } circle.c4 { fill: #f0e442; }
}"""


def drawn(plot: Plot, rounds: Sequence[Round]) -> str:
    """Return a plot as an SVG document; the same points always give the same text.

    Args:
        plot: what to draw. Points that aren't above 0 are left out on a logarithmic axis.
        rounds: what was measured; a point is the median over them, a thin line goes from the least to the most.
    """
    curves = _spreads(plot, rounds)
    height = HEIGHT + LEGEND_LINE * len(curves)
    spreads = [spread for points in curves.values() for _, spread in points]
    xs = [x for points in curves.values() for x, _ in points]
    parts = [_begin(plot, height)]
    if not xs:
        parts.append(_text(WIDTH / 2, HEIGHT / 2, "not measured"))
        return "\n".join([*parts, "</svg>", ""])
    horizontal = Scale.over(xs, LEFT, WIDTH - RIGHT, logarithmic=plot.x.logarithmic)
    ends = [end for spread in spreads for end in (spread.least, spread.most)]
    vertical = Scale.over(ends, HEIGHT - BOTTOM, TOP, logarithmic=plot.y.logarithmic, from_zero=True)
    parts += [_grid_below(plot.x, horizontal), _grid_left(plot.y, vertical)]
    for number, (name, points) in enumerate(curves.items()):
        parts.append(_curve(number % COLOURS, points, horizontal.at, vertical.at))
        parts.append(_legend(number, name))
    return "\n".join([*parts, "</svg>", ""])


def _spreads(plot: Plot, rounds: Sequence[Round]) -> dict[str, list[tuple[float, Spread]]]:
    """Return each curve's points with the spread of y over the rounds, by x."""
    values: dict[str, dict[float, list[float]]] = {}
    for round_ in rounds:
        for name, points in _curves(plot, round_).items():
            for x, y in points:
                if (x > 0 or not plot.x.logarithmic) and (y > 0 or not plot.y.logarithmic):
                    values.setdefault(name, {}).setdefault(x, []).append(y)
    return {name: [(x, spread_of(ys)) for x, ys in sorted(curve.items())] for name, curve in values.items()}


def _curves(plot: Plot, round_: Round) -> Mapping[str, Points]:
    try:
        return plot.curves(round_)
    except NotMeasuredError:
        return {}


def _begin(plot: Plot, height: int) -> str:
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" '
            f'role="img" aria-label="{escape(plot.title)}">',
            f"<style>{STYLE}</style>",
            f'<rect class="page" width="{WIDTH}" height="{height}"/>',
            _text(WIDTH / 2, 26, plot.title, "title"),
        ]
    )


def _grid_below(axis: Axis, scale: Scale) -> str:
    parts = []
    for tick in scale.ticks:
        x = scale.at(tick)
        parts.append(f'<line class="grid" x1="{x:.1f}" y1="{TOP}" x2="{x:.1f}" y2="{HEIGHT - BOTTOM}"/>')
        parts.append(_text(x, HEIGHT - BOTTOM + 20, shown(tick)))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, HEIGHT - 18, _label(axis)))
    return "\n".join(parts)


def _grid_left(axis: Axis, scale: Scale) -> str:
    parts = []
    for tick in scale.ticks:
        y = scale.at(tick)
        parts.append(f'<line class="grid" x1="{LEFT}" y1="{y:.1f}" x2="{WIDTH - RIGHT}" y2="{y:.1f}"/>')
        parts.append(f'<text x="{LEFT - 8}" y="{y + 4:.1f}" text-anchor="end">{shown(tick)}</text>')
    width, height = WIDTH - RIGHT - LEFT, HEIGHT - BOTTOM - TOP
    parts.append(f'<rect class="frame" x="{LEFT}" y="{TOP}" width="{width}" height="{height}"/>')
    middle = (TOP + HEIGHT - BOTTOM) / 2
    parts.append(
        f'<text x="18" y="{middle:.1f}" text-anchor="middle" transform="rotate(-90 18 {middle:.1f})">'
        f"{escape(_label(axis))}</text>"
    )
    return "\n".join(parts)


def _curve(
    colour: int, points: Sequence[tuple[float, Spread]], across: Callable[[float], float], up: Callable[[float], float]
) -> str:
    path = " ".join(f"{across(x):.1f},{up(spread.median):.1f}" for x, spread in points)
    parts = [f'<polyline class="curve c{colour}" points="{path}"/>']
    for x, spread in points:
        if spread.least != spread.most:
            parts.append(_whisker(colour, across(x), up(spread.least), up(spread.most)))
        parts.append(f'<circle class="c{colour}" cx="{across(x):.1f}" cy="{up(spread.median):.1f}" r="4"/>')
    return "\n".join(parts)


def _whisker(colour: int, x: float, least: float, most: float) -> str:
    """Return the line from the least to the most, with a bar at each end that a point doesn't hide."""
    bars = [
        f'<line class="bar c{colour}" x1="{x - BAR:.1f}" y1="{y:.1f}" x2="{x + BAR:.1f}" y2="{y:.1f}"/>'
        for y in (least, most)
    ]
    return "\n".join(
        [f'<line class="spread c{colour}" x1="{x:.1f}" y1="{least:.1f}" x2="{x:.1f}" y2="{most:.1f}"/>', *bars]
    )


def _legend(number: int, name: str) -> str:
    y = HEIGHT + LEGEND_LINE * number
    colour = number % COLOURS
    return (
        f'<line class="curve c{colour}" x1="{LEFT}" y1="{y}" x2="{LEFT + 24}" y2="{y}"/>\n'
        f'<circle class="c{colour}" cx="{LEFT + 12}" cy="{y}" r="4"/>\n'
        f'<text x="{LEFT + 34}" y="{y + 4}">{escape(name)}</text>'
    )


def _text(x: float, y: float, text: str, kind: str = "label") -> str:
    return f'<text class="{kind}" x="{x:.1f}" y="{y:.1f}" text-anchor="middle">{escape(text)}</text>'


def _label(axis: Axis) -> str:
    return f"{axis.text} ({axis.unit})" if axis.unit else axis.text
