"""The console asks Kafka once in some seconds, however many pages show the answer."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from threading import Event

from wait_registry.cli.kept_line import KEPT_S, KeptLine
from wait_registry.settings.root import Settings


def test_an_answer_is_kept_for_some_seconds() -> None:
    now_s, asked = [0.0], []

    def ask(settings: Settings) -> str:
        asked.append(settings)
        return f"answer {len(asked)}"

    line = KeptLine(ask, lambda: now_s[0])
    assert [line(Settings()) for _ in range(3)] == ["answer 1"] * 3
    now_s[0] = KEPT_S - 0.1
    assert line(Settings()) == "answer 1"
    now_s[0] = KEPT_S
    assert line(Settings()) == "answer 2"


def test_of_pages_at_the_same_time_one_asks() -> None:
    asked, answer = [], Event()

    def ask(settings: Settings) -> str:
        asked.append(settings)
        assert answer.wait(30)
        return "the answer"

    line = KeptLine(ask)
    with ThreadPoolExecutor(8) as pool:
        lines = [pool.submit(line, Settings()) for _ in range(8)]
        answer.set()
        assert {one.result(30) for one in lines} == {"the answer"}
    assert len(asked) == 1
