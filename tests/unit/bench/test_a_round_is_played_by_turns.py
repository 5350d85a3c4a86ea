"""A case's contenders are measured by turns, what fails is tried once more, and the others go on."""

from __future__ import annotations

import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from bench.harness.play import BrokenRoundError, Outcome, RoundPlay
from bench.harness.process import ProcessError
from bench.harness.row import Bench, Case, Contender, Figures, WrongResultError
from tests.unit.bench.made_up import bench, contender

# Tried once more when it fails: so a contender that never comes to an end costs a test this twice.
BROKEN_OFF_S = 0.05


def play(folder: Path, *cases: Case, number: int = 1) -> tuple[list[Outcome], list[str]]:
    """Return every attempt, and what failed for good."""
    kept: list[Outcome] = []
    round_ = RoundPlay(bench(folder), number, kept.append)
    round_.play(cases)
    return kept, round_.failures


def order(folder: Path, number: int, names: str = "ABC", turns: int = 2) -> str:
    case = Case("c", [contender(name) for name in names], turns=turns)
    kept, _ = play(folder, case, number=number)
    return "".join(outcome.contender.name for outcome in kept)


def failing(times: int, error: BaseException | None = None) -> Callable[[Bench], Figures]:
    """Return what fails so many times and then measures."""
    left = [times]

    def measure(_: Bench) -> Figures:
        if left[0]:
            left[0] -= 1
            raise error or RuntimeError("no broker")
        return {"records_per_s": 8.0}

    return measure


def test_contenders_take_turns(tmp_path: Path) -> None:
    assert order(tmp_path, 1, "AB", turns=3) == "ABABAB"


def test_each_round_begins_with_the_next_contender(tmp_path: Path) -> None:
    assert [order(tmp_path / str(number), number) for number in (1, 2, 3, 4)] == [
        "ABCABC",
        "BCABCA",
        "CABCAB",
        "ABCABC",
    ]


def test_a_case_is_finished_before_the_next_one_begins(tmp_path: Path) -> None:
    cases = [Case(name, [contender("A"), contender("B")], turns=2) for name in ("first", "second")]
    kept, _ = play(tmp_path, *cases)
    assert [outcome.case for outcome in kept] == ["first"] * 4 + ["second"] * 4
    assert [outcome.turn for outcome in kept] == [1, 1, 2, 2, 1, 1, 2, 2]


def test_what_a_turn_measured_is_kept(tmp_path: Path) -> None:
    ((outcome,), failures) = play(tmp_path, Case("c", [contender("A", lambda _: {"rss_mb": 80})]))
    assert outcome.figures == {"rss_mb": 80.0}
    assert (outcome.failure, failures) == ("", [])


def test_a_turn_that_fails_is_tried_once_more(tmp_path: Path) -> None:
    kept, failures = play(tmp_path, Case("c", [contender("A", failing(1)), contender("B")]))
    assert [(outcome.contender.name, outcome.attempt, bool(outcome.failure)) for outcome in kept] == [
        ("A", 1, True),
        ("A", 2, False),
        ("B", 1, False),
    ]
    assert failures == []


def test_a_wrong_result_is_not_tried_again(tmp_path: Path) -> None:
    case = Case("c", [contender("A", failing(1, WrongResultError("7 rows are left"))), contender("B")])
    kept, failures = play(tmp_path, case)
    assert [(outcome.contender.name, outcome.attempt) for outcome in kept] == [("A", 1), ("B", 1)]
    assert failures == ["c, A: WrongResultError: 7 rows are left"]


def test_the_broker_is_warmed_up_before_the_first_case(tmp_path: Path) -> None:
    story: list[str] = []

    def measure(_: Bench) -> Figures:
        story.append("turn")
        return {"records_per_s": 1.0}

    round_ = RoundPlay(bench(tmp_path), 1, lambda _: None)
    round_.play([Case("c", [contender("A", measure)])], lambda _: story.append("warm-up"))
    assert story == ["warm-up", "turn"]


def test_a_round_whose_broker_stays_cold_ends(tmp_path: Path) -> None:
    def fails(_: Bench) -> None:
        raise RuntimeError("no room")

    kept: list[Outcome] = []
    with pytest.raises(BrokenRoundError, match="warming up failed: RuntimeError: no room"):
        RoundPlay(bench(tmp_path), 1, kept.append).play([Case("c", [contender("A")])], fails)
    assert kept == []


def test_a_turn_that_fails_twice_has_failed_and_the_others_go_on(tmp_path: Path) -> None:
    broken = contender("A", failing(99))
    kept, failures = play(tmp_path, Case("c", [broken, contender("B")], turns=2), Case("d", [contender("A")]))
    assert [(outcome.case, outcome.contender.name) for outcome in kept] == [
        ("c", "A"),
        ("c", "A"),
        ("c", "B"),
        ("c", "B"),
        ("d", "A"),
    ]
    assert failures == ["c, A: RuntimeError: no broker"]


def test_the_reason_is_what_was_seen(tmp_path: Path) -> None:
    _, failures = play(tmp_path, Case("c", [contender("A", failing(9, ProcessError("loop ended with status 3")))]))
    assert failures == ["c, A: loop ended with status 3"]


@pytest.mark.parametrize("figures", [{}, {"p99_ms": float("nan")}])
def test_figures_that_are_none_fail_the_turn(tmp_path: Path, figures: dict[str, float]) -> None:
    kept, failures = play(tmp_path, Case("c", [contender("A", lambda _: figures)]))
    assert not any(outcome.figures for outcome in kept)
    assert len(failures) == 1
    assert "expected" in failures[0]


def test_a_turn_that_takes_too_long_is_broken_off_and_the_others_go_on(tmp_path: Path) -> None:
    def hang(_: Bench) -> Figures:
        threading.Event().wait()
        return {}

    kept, failures = play(tmp_path, Case("c", [contender("A", hang, BROKEN_OFF_S), contender("B")]))
    assert failures == [f"c, A: it took longer than {BROKEN_OFF_S:g} s and was broken off"]
    assert kept[-1].figures == {"records_per_s": 1.0}


def test_what_takes_every_exception_for_its_own_is_broken_off_and_cleans_up(tmp_path: Path) -> None:
    cleaned: list[str] = []

    def swallow(_: Bench) -> Figures:
        try:
            signal.raise_signal(signal.SIGALRM)  # as the timer does, and surely here
        except Exception:  # noqa: BLE001 - that's the point
            return {"records_per_s": 1.0}
        finally:
            cleaned.append("up")
        return {"records_per_s": 1.0}

    _, failures = play(tmp_path, Case("c", [contender("A", swallow)]))
    assert failures == ["c, A: it took longer than 60 s and was broken off"]
    assert cleaned == ["up", "up"]


def test_a_timer_that_was_set_before_goes_on_after_a_turn(tmp_path: Path) -> None:
    handler = signal.getsignal(signal.SIGALRM)
    before_s, _ = signal.getitimer(signal.ITIMER_REAL)  # the test run's own, if it has one
    signal.setitimer(signal.ITIMER_REAL, 5000)
    try:
        play(tmp_path, Case("c", [contender("A")]))
        left_s, _ = signal.getitimer(signal.ITIMER_REAL)
        assert 60 < left_s <= 5000
        assert signal.getsignal(signal.SIGALRM) is handler
    finally:
        signal.setitimer(signal.ITIMER_REAL, before_s)


def test_an_interruption_is_nobodys_failure(tmp_path: Path) -> None:
    kept: list[Outcome] = []
    cases = [Case("c", [contender("A"), contender("B", failing(9, KeyboardInterrupt()))])]
    with pytest.raises(KeyboardInterrupt):
        RoundPlay(bench(tmp_path), 1, kept.append).play(cases)
    assert [outcome.contender.name for outcome in kept] == ["A"]


def test_each_turn_has_a_folder_of_its_own_which_stays_when_it_fails(tmp_path: Path) -> None:
    folders: list[Path] = []

    def measure(given: Bench) -> Figures:
        assert list(given.directory.iterdir()) == []
        (given.directory / "contender.err").write_text("said", "utf-8")
        folders.append(given.directory)
        if len(folders) == 1:
            raise RuntimeError("first")
        return {"records_per_s": 1.0}

    play(tmp_path, Case("N = 50, 1 %", [Contender("bare/loop", measure)], turns=2))
    assert len(set(folders)) == 3
    assert [folder.exists() for folder in folders] == [True, False, False]
    told = (folders[0] / "failure.txt").read_text("utf-8")
    assert told.startswith("RuntimeError: first\n")
    assert "Traceback" in told
    assert all(folder.is_relative_to(tmp_path) for folder in folders)


def test_a_case_is_prepared_once_before_its_first_turn(tmp_path: Path) -> None:
    story: list[str] = []

    def measure(_: Bench) -> Figures:
        story.append("turn")
        return {"records_per_s": 1.0}

    play(tmp_path, Case("c", [contender("A", measure)], turns=2, prepare=lambda _: story.append("prepare")))
    assert story == ["prepare", "turn", "turn"]


def test_a_case_that_cannot_be_prepared_has_failed_with_all_its_contenders(tmp_path: Path) -> None:
    tries: list[int] = []

    def prepare(_: Bench) -> None:
        tries.append(1)
        raise RuntimeError("no room")

    unprepared = Case("c", [contender("A"), contender("B")], prepare=prepare)
    kept, failures = play(tmp_path, unprepared, Case("d", [contender("A")]))
    assert len(tries) == 2
    assert [outcome.failure for outcome in kept] == ["preparing it failed: RuntimeError: no room"] * 2 + [""]
    assert failures == ["c: preparing it failed: RuntimeError: no room"]


def test_a_round_whose_servers_are_gone_ends_at_once(tmp_path: Path) -> None:
    kept: list[Outcome] = []
    broken = contender("A", failing(9))
    round_ = RoundPlay(bench(tmp_path), 1, kept.append, broken=lambda: "the broker ended")
    with pytest.raises(BrokenRoundError, match="the broker ended"):
        round_.play([Case("c", [contender("B"), broken, contender("C")])])
    assert [outcome.contender.name for outcome in kept] == ["B", "A"]


def test_two_contenders_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="c, A twice"):
        play(tmp_path, Case("c", [contender("A"), contender("A")]))
