"""A run plays rounds of rows on servers of their own, keeps every turn, and goes on where an earlier one stopped."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from bench.harness.ledger import Ledger
from bench.harness.machine import Busyness
from bench.harness.measurement import Origin, RoundEnd, Turn
from bench.harness.process import ROOT
from bench.harness.progress import Progress
from bench.harness.row import Bench, Case, Figures, Row
from bench.harness.run import ChangedTreeError, Run, in_one_line
from bench.harness.servers import Servers
from tests.unit.bench.made_up import HERE, contender, row

QUIET = Busyness(0.2, 0.02, 2)


class World:
    """What a run is played in: counts servers, remembers what was told."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.ledger = Ledger(folder / "rounds.jsonl")
        self.told: list[str] = []
        self.origin = HERE
        self.busyness = QUIET
        self.servers = 0
        self.running = 0
        self.runs = 0
        self.broken = ""
        self.starts = True

    @contextmanager
    def started(self) -> Iterator[Servers]:
        if not self.starts:
            raise RuntimeError("no Java")
        self.servers += 1
        self.running += 1
        try:
            yield Servers(f"kafka-{self.servers}", "postgresql://", {"Postgres": "16.1"}, lambda: self.broken)
        finally:
            self.running -= 1

    def run(self, rounds: int = 3) -> Run:
        self.runs += 1
        return Run(
            id=f"run-{self.runs}",
            command="python -m bench",
            ledger=self.ledger,
            origin=lambda: self.origin,
            versions={"Java": "17"},
            rounds=rounds,
            scratch=self.folder / f"scratch-{self.runs}",
            progress=Progress({}, self.told.append),
            servers=self.started,
            busyness=lambda: self.busyness,
        )

    def play(self, *rows: Row, rounds: int = 3, resume: bool = True) -> list[str]:
        return self.run(rounds).play(rows, resume=resume, played=lambda _: None)

    def turns(self) -> list[Turn]:
        return [entry for entry in self.ledger.read().entries if isinstance(entry, Turn)]

    def ends(self) -> list[RoundEnd]:
        return [entry for entry in self.ledger.read().entries if isinstance(entry, RoundEnd)]

    def played(self) -> list[tuple[int, int]]:
        return [(end.row, end.round) for end in self.ends()]


@pytest.fixture
def world(tmp_path: Path) -> World:
    return World(tmp_path)


def simple(number: int = 2, measure: Callable[[Bench], Figures] | None = None) -> Row:
    return row([Case("c", [contender("A", measure), contender("B")])], number=number)


def test_every_row_is_played_round_by_round_on_servers_of_its_own(world: World) -> None:
    seen: list[str] = []

    def measure(bench: Bench) -> Figures:
        seen.append(bench.kafka)
        return {"records_per_s": 1.0}

    assert world.play(simple(1, measure), simple(2, measure)) == []
    assert world.played() == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]
    assert seen == [f"kafka-{number}" for number in range(1, 7)]
    assert world.running == 0


def test_every_turn_is_kept_with_where_it_comes_from(world: World) -> None:
    world.play(simple(), rounds=1)
    assert [(turn.contender, turn.round, turn.stamp.run) for turn in world.turns()] == [
        ("A", 1, "run-1"),
        ("B", 1, "run-1"),
    ]
    assert {turn.stamp.origin for turn in world.turns()} == {HERE}


def test_another_version_of_what_is_measured_with_ends_it_too(world: World) -> None:
    def changing(_: Bench) -> Figures:
        world.origin = replace(HERE, versions="Java 21")
        return {"records_per_s": 1.0}

    with pytest.raises(ChangedTreeError, match="to Java 21"):
        world.play(simple(1, changing))
    assert world.turns()[0].stamp.versions == {"Java": "17", "Postgres": "16.1"}
    assert world.turns()[0].stamp.date > "2026"


def test_what_is_measured_already_is_left_out(world: World) -> None:
    world.play(simple(1))
    assert world.play(simple(1), simple(2)) == []
    assert world.played()[3:] == [(2, 1), (2, 2), (2, 3)]
    assert any("3 of 3 rounds are measured" in line for line in world.told)


def test_it_is_measured_again_when_asked(world: World) -> None:
    world.play(simple())
    world.play(simple(), resume=False)
    assert world.played() == [(2, 1), (2, 2), (2, 3)] * 2


@pytest.mark.parametrize("other", [replace(HERE, commit="def"), replace(HERE, machine="another")])
def test_another_commit_or_machine_is_measured_from_the_beginning(world: World, other: Origin) -> None:
    world.play(simple())
    world.origin = other
    world.play(simple())
    assert world.played() == [(2, 1), (2, 2), (2, 3)] * 2


def test_an_interrupted_run_goes_on_with_the_round_it_was_in(world: World) -> None:
    turns: list[int] = []

    def interrupted(_: Bench) -> Figures:
        turns.append(1)
        if len(turns) == 2:
            raise KeyboardInterrupt
        return {"records_per_s": 1.0}

    with pytest.raises(KeyboardInterrupt):
        world.play(simple(1, interrupted), simple(2))
    assert world.running == 0
    assert world.played() == [(1, 1)]
    assert world.play(simple(1, interrupted), simple(2)) == []
    assert world.played() == [(1, 1), (1, 2), (1, 3), (2, 1), (2, 2), (2, 3)]


def failing(_: Bench) -> Figures:
    raise RuntimeError(f"no {ROOT}/bench/loop")


def test_a_round_in_which_something_failed_is_told_and_played_again(world: World) -> None:
    (failure, *_) = world.play(simple(2, failing), simple(3), rounds=1)
    assert failure == "row 2, round 1 of 1: c, A: RuntimeError: no ./bench/loop"
    assert world.played() == [(2, 1), (3, 1)]
    assert world.play(simple(2), simple(3), rounds=1) == []
    assert world.played() == [(2, 1), (3, 1), (2, 1)]


def test_the_ledger_does_not_say_where_the_checkout_is(world: World) -> None:
    world.play(simple(2, failing), rounds=1)
    assert str(ROOT) not in world.ledger.path.read_text("utf-8")
    assert any(str(ROOT) in line for line in world.told)


def test_a_reason_is_kept_in_one_line_with_what_was_said_last() -> None:
    said = "loop ended with status 3; it said last:\n    starting\n    no broker at x\n"
    assert in_one_line(said) == "loop ended with status 3; it said last: no broker at x"
    assert in_one_line("no such topic\nand so on") == "no such topic"
    assert in_one_line("") == ""
    assert len(in_one_line("x" * 5000)) < 500


def test_servers_that_do_not_start_fail_the_round_and_the_other_rows_go_on(world: World) -> None:
    world.starts = False
    failures = world.play(simple(1), simple(2), rounds=1)
    assert failures == [f"row {number}, round 1 of 1: RuntimeError: no Java" for number in (1, 2)]
    assert [end.broken for end in world.ends()] == ["RuntimeError: no Java"] * 2


def test_servers_that_end_fail_the_round_with_what_had_failed_before(world: World) -> None:
    world.broken = "the broker ended"
    failures = world.play(simple(2, failing), rounds=1)
    assert failures == ["row 2, round 1 of 1: the broker ended"]
    assert [turn.contender for turn in world.turns()] == ["A"]


def test_a_row_that_cannot_be_described_fails_and_the_others_go_on(world: World) -> None:
    def cases(_: Bench) -> Sequence[Case]:
        raise KeyError("size")

    failures = world.play(replace(simple(1), cases=cases), simple(2), rounds=1)
    assert len(failures) == 1
    assert "KeyError: 'size'" in failures[0]
    assert world.played() == [(1, 1), (2, 1)]


def test_a_product_that_changes_ends_the_run_before_the_next_round(world: World) -> None:
    def changing(_: Bench) -> Figures:
        world.origin = replace(HERE, commit="def456")
        return {"records_per_s": 1.0}

    with pytest.raises(ChangedTreeError, match="from abc123 to def456"):
        world.play(simple(1, changing))
    assert world.played() == [(1, 1)]
    assert {turn.stamp.origin for turn in world.turns()} == {HERE}


def test_a_machine_that_is_not_quiet_is_told_and_noted(world: World) -> None:
    world.busyness = Busyness(3.0, 0.5, 2)
    world.play(simple(), rounds=1)
    assert any("isn't quiet (load average 3.0 on 2 cores, 50% of their time used)" in line for line in world.told)
    assert world.ends()[0].noise == "load average 3.0 on 2 cores, 50% of their time used"


@pytest.mark.parametrize(
    ("busyness", "quiet"),
    [
        (QUIET, True),
        (Busyness(1.9, 0.02, 2), True),  # our own last row's load, which lags behind
        (Busyness(0.0, 0.2, 2), False),
        (Busyness(1.9, None, 2), False),
        (Busyness(0.1, None, 2), True),
    ],
)
def test_when_a_machine_is_quiet(busyness: Busyness, quiet: bool) -> None:
    assert busyness.quiet is quiet


def test_a_complete_round_leaves_no_folder_and_a_failed_one_does(world: World) -> None:
    world.play(simple(1), simple(2, failing), rounds=1)
    assert [path.name for path in (world.folder / "scratch-1").iterdir()] == ["row-2-round-1"]


def test_a_row_is_shown_after_its_last_round(world: World) -> None:
    shown: list[tuple[int, int]] = []
    rows = [simple(1), simple(2)]
    world.run().play(rows, resume=True, played=lambda row: shown.append((row.number, len(world.ends()))))
    assert shown == [(1, 3), (2, 6)]
