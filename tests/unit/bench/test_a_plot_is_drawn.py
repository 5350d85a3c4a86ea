"""A plot is valid SVG with its points where they belong, and the same for the same measurements."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.harness.plot import drawn
from bench.harness.row import Axis, Plot, Points, Round
from bench.harness.scale import Scale

SVG = "{http://www.w3.org/2000/svg}"
ROUNDS = [Round(number, {}) for number in (1, 2, 3)]


def curves(round_: Round) -> dict[str, Points]:
    """Return two curves; the second one's rounds differ."""
    return {
        "our <sink>": [(1, 100), (4, 300), (16, 400)],
        "row & row": [(1, 10 * round_.number), (16, 20.0)],
    }


PLOT = Plot("partitions", 'Sink "with" partitions', Axis("partitions"), Axis("rate", "records/s"), curves)


def parsed(plot: Plot, rounds: list[Round] = ROUNDS) -> ElementTree.Element:
    return ElementTree.fromstring(drawn(plot, rounds))


def points(picture: ElementTree.Element) -> list[list[tuple[float, float]]]:
    """Return the places of each curve's points."""
    lines = picture.findall(f"{SVG}polyline")
    return [
        [(float(x), float(y)) for x, y in (pair.split(",") for pair in line.get("points", "").split())]
        for line in lines
    ]


def tick_places(picture: ElementTree.Element) -> tuple[dict[float, float], dict[float, float]]:
    """Return where the labelled ticks of both axes are, by value."""
    across, up = {}, {}
    for text in picture.findall(f"{SVG}text"):
        value = (text.text or "").replace(",", "")
        if value.replace(".", "").isdigit():
            if text.get("text-anchor") == "end":
                up[float(value)] = float(text.get("y", "")) - 4
            else:
                across[float(value)] = float(text.get("x", ""))
    return across, up


def test_title_axes_and_curves_are_named() -> None:
    texts = [text.text for text in parsed(PLOT).findall(f"{SVG}text")]
    assert {'Sink "with" partitions', "partitions", "rate (records/s)", "our <sink>", "row & row"} <= set(texts)


@pytest.mark.parametrize("logarithmic", [False, True])
def test_points_lie_where_the_ticks_say(logarithmic: bool) -> None:
    plot = replace(PLOT, x=replace(PLOT.x, logarithmic=logarithmic), y=replace(PLOT.y, logarithmic=logarithmic))
    picture = parsed(plot)
    (ours, other), (across, up) = points(picture), tick_places(picture)

    def place(ticks: dict[float, float], value: float) -> float:
        """Return the place that two ticks give for a value."""
        scaled = math.log if logarithmic else float
        (first, begin), *_, (last, end) = sorted(ticks.items())
        part = (scaled(value) - scaled(first)) / (scaled(last) - scaled(first))
        return begin + part * (end - begin)

    for (x, y), (seen_x, seen_y) in zip([(1, 100), (4, 300), (16, 400)], ours, strict=True):
        assert (seen_x, seen_y) == pytest.approx((place(across, x), place(up, y)), abs=0.2)
    assert other[0][1] == pytest.approx(place(up, 20), abs=0.2), "the median of 10, 20 and 30"


def test_the_spread_goes_from_the_least_to_the_most() -> None:
    picture = parsed(PLOT)
    (spread,) = [line for line in picture.findall(f"{SVG}line") if "spread" in line.get("class", "")]
    _, up = tick_places(picture)
    (least, begin), *_, (most, end) = sorted(up.items())
    per_unit = (end - begin) / (most - least)
    assert float(spread.get("y1", "")) == pytest.approx(begin + (10 - least) * per_unit, abs=0.2)
    assert float(spread.get("y2", "")) == pytest.approx(begin + (30 - least) * per_unit, abs=0.2)


def test_everything_is_within_the_picture() -> None:
    picture = parsed(PLOT)
    width, height = float(picture.get("width", "")), float(picture.get("height", ""))
    for circle in picture.findall(f"{SVG}circle"):
        assert 0 < float(circle.get("cx", "")) < width
        assert 0 < float(circle.get("cy", "")) < height
    assert all(0 < float(text.get("y", "")) < height for text in picture.findall(f"{SVG}text"))


@pytest.mark.parametrize("logarithmic", [False, True])
def test_labels_of_large_numbers_are_whole_and_apart(logarithmic: bool) -> None:
    axis = Axis("rows", logarithmic=logarithmic)
    picture = parsed(replace(PLOT, x=axis, y=axis, curves=lambda _: {"a": [(1e4, 1e4), (1e7, 9e6)]}))
    half_px = len("10,000,000") * 8 / 2
    across, _ = tick_places(picture)
    assert 1e7 in across
    assert all(half_px <= place <= float(picture.get("width", "")) - half_px for place in across.values())
    left = [text for text in picture.findall(f"{SVG}text") if text.get("text-anchor") == "end"]
    assert all(float(text.get("x", "")) - 2 * half_px > 18 for text in left), "clear of the axis' name"


def test_the_same_measurements_give_the_same_file() -> None:
    assert drawn(PLOT, ROUNDS) == drawn(replace(PLOT), list(ROUNDS))


def test_it_is_drawn_for_light_and_for_dark_pages() -> None:
    assert "prefers-color-scheme: dark" in drawn(PLOT, ROUNDS)
    assert parsed(PLOT).find(f"{SVG}rect[@class='page']") is not None


def test_what_a_logarithmic_axis_cannot_show_is_left_out() -> None:
    some = replace(PLOT, x=Axis("x", logarithmic=True), curves=lambda _: {"a": [(0, 1), (1, 2), (10, 3)]})
    assert [len(curve) for curve in points(parsed(some))] == [2]


def test_a_curve_that_was_not_measured_in_a_round_is_drawn_from_the_others() -> None:
    def some(round_: Round) -> dict[str, Points]:
        return {"a": [(1, round_.figure("c", "a", "x")), (2, 5)]}

    measured = [Round(1, {}), Round(2, {("c", "a"): [{"x": 7.0}]})]
    assert [len(curve) for curve in points(parsed(replace(PLOT, curves=some), measured))] == [2]


def test_without_measurements_it_says_so() -> None:
    assert "not measured" in [text.text for text in parsed(replace(PLOT, curves=lambda _: {})).findall(f"{SVG}text")]


@given(st.lists(st.floats(1e-3, 1e9), min_size=1, max_size=6), st.booleans(), st.booleans())
def test_a_scale_holds_all_values_in_order_and_ends_on_ticks(
    values: list[float], logarithmic: bool, from_zero: bool
) -> None:
    scale = Scale.over(values, 10, 110, logarithmic=logarithmic, from_zero=from_zero)
    places = [scale.at(value) for value in sorted(values)]
    assert places == sorted(places)
    assert all(10 - 1e-6 <= place <= 110 + 1e-6 for place in places)
    assert 2 <= len(scale.ticks) <= 40
    assert all(low < high for low, high in pairwise(scale.ticks))
    assert (scale.at(scale.ticks[0]), scale.at(scale.ticks[-1])) == pytest.approx((10, 110))
