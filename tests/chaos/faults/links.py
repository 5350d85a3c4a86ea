"""Faults of a service's connections, to the broker or to Postgres."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import ExitStack

from tests.chaos.schedule import PlannedFault
from tests.chaos.service import listens
from tests.chaos.stage import Scene
from tests.support.network import Figures, Link
from tests.support.tcp_proxy import PRODUCE

BETWEEN_CUTS_S = 1.0
# A line on which nothing is sent has no fault to feel: it stays broken until something was, so long at most.
FELT_WITHIN_S = 60.0
LOOK_S = 0.1
SLOW_BYTES_PER_S = 20_000
SLOW_DELAY_S = 0.3
# Both ways together, one connection after the other: before the first answer, in it, and in what comes next (metadata,
# the group's coordinator, who one is, Postgres' parameters).
YOUNG_BYTES = (1, 60, 300, 700, 1000, 1500, 2500)
# The first one is an old one that is cut. Who stands by may have no need of another.
AGAIN_WITHIN_S = 10.0


def broken(scene: Scene, fault: PlannedFault, *, how: str, server: str) -> str:
    """Break the target's connections to a server in one of the ways of `drawing.LINK_FAULTS`, and fix them."""
    proxied = scene.stage.proxied
    link = proxied.link(fault.target) if server == "broker" else proxied.postgres_link(fault.target)
    with scene.locks[f"{server} link of {fault.target}"]:
        scene.begins(fault)
        before = link.figures
        try:
            return _WAYS[how](scene, fault, link, before)
        finally:
            link.allow()
            link.flow()


def hold_produce(scene: Scene, fault: PlannedFault) -> str:
    """Hold what a processor, or each of the group, produces, while its commits pass: they must not overtake it."""
    names = [fault.target] if fault.target != "group" else scene.schedule.names_of("processor")
    links = [scene.stage.proxied.link(name) for name in names]
    with ExitStack() as held:
        for name, link in zip(names, links, strict=True):
            held.enter_context(scene.locks[f"broker link of {name}"])
            held.callback(link.flow)
        scene.begins(fault)
        before = [link.figures for link in links]
        for link in links:
            link.hold_requests(PRODUCE)

        def held_back() -> int:
            return sum(
                link.figures.bytes_held_back - was.bytes_held_back for link, was in zip(links, before, strict=True)
            )

        _last(scene, fault, lambda: held_back() > 0)
        passed = sum(link.figures.bytes_carried - was.bytes_carried for link, was in zip(links, before, strict=True))
        count = held_back()
        return f"{count} bytes of produce requests were held back, {passed} others passed" if count and passed else ""


def _cut(scene: Scene, fault: PlannedFault, link: Link, before: Figures) -> str:
    deadline = time.monotonic() + fault.for_s

    def cut_again() -> bool:
        link.cut()
        scene.pause(BETWEEN_CUTS_S)
        return time.monotonic() > deadline and link.figures.connections_cut > before.connections_cut

    _until(scene, cut_again, fault.for_s + FELT_WITHIN_S)
    count = link.figures.connections_cut - before.connections_cut
    return f"{count} connections were reset" if count else ""


def _refuse(scene: Scene, fault: PlannedFault, link: Link, before: Figures) -> str:
    cut = link.refuse()
    refused = not listens(link.port)
    scene.pause(fault.for_s)
    return f"{cut} connections were reset, port {link.port} refused others" if refused else ""


def _held_back(scene: Scene, fault: PlannedFault, link: Link, before: Figures) -> str:
    _last(scene, fault, lambda: link.figures.bytes_held_back > before.bytes_held_back)
    held = link.figures.bytes_held_back - before.bytes_held_back
    return f"{held} bytes were held back" if held else ""


def _stall(scene: Scene, fault: PlannedFault, link: Link, before: Figures) -> str:
    link.stall()
    return _held_back(scene, fault, link, before)


def _half_open(scene: Scene, fault: PlannedFault, link: Link, before: Figures) -> str:
    link.half_open()
    return _held_back(scene, fault, link, before)


def _slow(scene: Scene, fault: PlannedFault, link: Link, before: Figures) -> str:
    link.slow(SLOW_BYTES_PER_S, SLOW_DELAY_S)
    _last(scene, fault, lambda: link.figures.bytes_slowed > before.bytes_slowed)
    slowed = link.figures.bytes_slowed - before.bytes_slowed
    return f"{slowed} bytes were slowed down" if slowed else ""


def _young(scene: Scene, fault: PlannedFault, link: Link, before: Figures) -> str:
    def broken_young() -> int:
        return link.figures.connections_broken_young - before.connections_broken_young

    link.break_young(YOUNG_BYTES)
    _last(scene, fault, lambda: broken_young() > 0)
    _until(scene, lambda: broken_young() > 1, AGAIN_WITHIN_S)
    count = broken_young()
    return f"{count} connections broke, new ones after at most {max(YOUNG_BYTES)} bytes" if count else ""


def _last(scene: Scene, fault: PlannedFault, felt: Callable[[], bool]) -> None:
    """Wait the fault's time, and on until it was felt."""
    scene.pause(fault.for_s)
    _until(scene, felt, FELT_WITHIN_S)


def _until(scene: Scene, condition: Callable[[], bool], limit_s: float) -> None:
    deadline = time.monotonic() + limit_s
    while not condition() and time.monotonic() < deadline and not scene.ended.is_set():
        scene.pause(LOOK_S)


_WAYS: dict[str, Callable[[Scene, PlannedFault, Link, Figures], str]] = {
    "cut": _cut,
    "refuse": _refuse,
    "stall": _stall,
    "half_open": _half_open,
    "slow": _slow,
    "young": _young,
}
