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
# A line on which nothing is sent has no fault to feel: it stays broken until something was, for this long at most. The
# target may have to be started first, after other faults.
FELT_WITHIN_S = 180.0
POLL_S = 0.1
SLOW_BYTES_PER_S = 20_000
SLOW_DELAY_S = 0.3
# Both ways together, one connection after the other: before the first answer, in it, and in what comes next (metadata,
# the group's coordinator, the login, Postgres' parameters).
YOUNG_BYTES = (1, 60, 300, 700, 1000, 1500, 2500)
# The first one is an old one that is cut. A standby may not need another.
AGAIN_WITHIN_S = 10.0


def broken(scene: Scene, fault: PlannedFault, *, how: str, server: str) -> str:
    """Break the target's connections to a server in one of the ways of `LINK_FAULTS`, and fix them."""
    proxied = scene.stage.proxied
    link = proxied.link(fault.target) if server == "broker" else proxied.postgres_link(fault.target)
    with scene.lock_of(f"{server} link of {fault.target}"):
        scene.begins(fault)
        before = link.figures
        try:
            if how == "refuse":
                return _refuse(scene, fault, link)
            if how == "cut":
                return _cut(scene, fault, link, before)
            degrade, figure, proof = _DEGRADED[how]
            degrade(link)
            scene.pause(fault.for_s)
            until(scene, lambda: _felt(link, before, figure) > 0, FELT_WITHIN_S)
            if how == "young":
                until(scene, lambda: _felt(link, before, figure) > 1, AGAIN_WITHIN_S)
            count = _felt(link, before, figure)
            return f"{count} {proof}" if count else ""
        finally:
            link.allow()
            link.flow()


def hold_produce(scene: Scene, fault: PlannedFault) -> str:
    """Hold what a processor, or each of the group, produces, while its commits pass: they must not overtake it."""
    names = [fault.target] if fault.target != "group" else scene.schedule.names_of("processor")
    links = [scene.stage.proxied.link(name) for name in names]
    with ExitStack() as held:
        for name, link in zip(names, links, strict=True):
            held.enter_context(scene.lock_of(f"broker link of {name}"))
            held.callback(link.flow)
        scene.begins(fault)
        before = [link.figures for link in links]
        for link in links:
            link.hold_requests(PRODUCE)

        def felt(figure: str) -> int:
            return sum(_felt(link, was, figure) for link, was in zip(links, before, strict=True))

        scene.pause(fault.for_s)
        until(scene, lambda: felt("bytes_held_back") > 0, FELT_WITHIN_S)
        count, passed = felt("bytes_held_back"), felt("bytes_carried")
        return f"{count} bytes of produce requests were held, {passed} others passed" if count and passed else ""


def _cut(scene: Scene, fault: PlannedFault, link: Link, before: Figures) -> str:
    deadline = time.monotonic() + fault.for_s

    def cut_again() -> bool:
        link.cut()
        scene.pause(BETWEEN_CUTS_S)
        return time.monotonic() > deadline and _felt(link, before, "connections_cut") > 0

    until(scene, cut_again, fault.for_s + FELT_WITHIN_S)
    count = _felt(link, before, "connections_cut")
    return f"{count} connections were reset" if count else ""


def _refuse(scene: Scene, fault: PlannedFault, link: Link) -> str:
    cut = link.refuse()
    refused = not listens(link.port)
    scene.pause(fault.for_s)
    return f"{cut} connections were reset, port {link.port} refused others" if refused else ""


def _felt(link: Link, before: Figures, figure: str) -> int:
    return int(getattr(link.figures, figure)) - int(getattr(before, figure))


def until(scene: Scene, condition: Callable[[], bool], limit_s: float) -> None:
    """Wait for a condition, a limit or the end of the run."""
    deadline = time.monotonic() + limit_s
    while not condition() and time.monotonic() < deadline and not scene.ended.is_set():
        scene.pause(POLL_S)


# What each does to the link, the figure that shows it, and the words of the proof.
_DEGRADED: dict[str, tuple[Callable[[Link], None], str, str]] = {
    "stall": (Link.stall, "bytes_held_back", "bytes were held"),
    "half_open": (Link.half_open, "bytes_held_back", "bytes were held"),
    "slow": (lambda link: link.slow(SLOW_BYTES_PER_S, SLOW_DELAY_S), "bytes_slowed", "bytes were slowed down"),
    "young": (
        lambda link: link.break_young(YOUNG_BYTES),
        "connections_broken_young",
        f"connections broke, new ones after at most {max(YOUNG_BYTES)} bytes",
    ),
}
