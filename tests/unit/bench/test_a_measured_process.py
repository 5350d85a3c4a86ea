"""What is started is ended with all it started, however the turn ends; what went wrong is said as it was seen."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from bench.harness.process import ROOT, ProcessError, flow_figures, numbers_in, run_flow, started
from tests.support.processes import gone
from tests.support.waiting import PATIENCE_S, wait_until
from tests.unit.bench.made_up import bench

MEASURED = {
    "records": 1000,
    "seconds": 2.0,
    "cpu_s": 0.5,
    "calls_s": 250.0,
    "rss_bytes": 80_000_000,
    "rss_now_bytes": 60_000_000,
    "p50_ms": 1.5,
    "p99_ms": None,
}
PRINTS = f"import sys; print('beside', file=sys.stderr); print({json.dumps(MEASURED)!r})"
# Starts a child that ignores polite signals, says both ids, and hangs.
HANGS = """
import os, pathlib, signal, subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import signal; signal.signal(15, signal.SIG_IGN); signal.pause()"])
pathlib.Path("ids.new").write_text(f"{os.getpid()} {child.pid}")
os.rename("ids.new", "ids")
print("came to record 17", file=sys.stderr, flush=True)
signal.pause()
"""
# Starts two children that go on when it has ended itself, one of them in a group of its own.
LEAVES = f"""
import pathlib, subprocess, sys
hangs = [sys.executable, "-c", "import signal; signal.pause()"]
ids = [subprocess.Popen(hangs, stdout=subprocess.DEVNULL, process_group=group).pid for group in (None, 0)]
pathlib.Path("ids").write_text(" ".join(map(str, ids)))
print({json.dumps(MEASURED)!r})
"""
# Measures what hangs, until it is killed itself.
HARNESS = """
import os, pathlib, sys
from bench.harness.process import started
folder = pathlib.Path(sys.argv[1])
with started([sys.executable, "-c", "import signal; signal.pause()"], folder) as child:
    (folder / "ids.new").write_text(str(child.pid))
    os.rename(folder / "ids.new", folder / "ids")
    child.process.wait()
"""
FAILS = "import sys; print('no broker at x', file=sys.stderr); sys.exit(3)"


def python(code: str) -> list[str]:
    return [sys.executable, "-c", code]


def written(path: Path) -> list[int]:
    """Return the process ids in a file, once it is there."""
    wait_until(path.exists, what=f"{path.name} of the child")
    return [int(text) for text in path.read_text("ascii").split()]


def test_its_numbers_become_figures(tmp_path: Path) -> None:
    figures = run_flow(bench(tmp_path), python(PRINTS), deadline_s=PATIENCE_S)
    assert figures["records_per_s"] == 500.0
    assert figures["cpu_us_per_record"] == 500.0
    assert figures["records_per_cpu_s"] == 2000.0
    assert figures["mean_call_s"] == 0.25
    assert (figures["rss_mb"], figures["rss_now_mb"]) == (80.0, 60.0)
    assert figures["p50_ms"] == 1.5
    assert "p99_ms" not in figures
    assert "rss_bytes" not in figures


def test_what_it_says_beside_is_in_a_file(tmp_path: Path) -> None:
    run_flow(bench(tmp_path), python(PRINTS), name="bare loop", deadline_s=PATIENCE_S)
    run_flow(bench(tmp_path), python(PRINTS), name="bare loop", deadline_s=PATIENCE_S)
    assert sorted(path.name for path in tmp_path.glob("*.err")) == ["bare loop-2.err", "bare loop.err"]
    assert (tmp_path / "bare loop.err").read_text("utf-8") == "beside\n"


def test_one_that_hangs_is_killed_with_its_children(tmp_path: Path) -> None:
    with started(python(HANGS), tmp_path) as child:
        processes = written(tmp_path / "ids")
        assert processes[0] == child.pid
        wait_until(lambda: child.stderr.read_text("utf-8"), what="its last words")
        with pytest.raises(ProcessError, match=r"still ran after 0\.01 s; it said last:\n    came to record 17"):
            child.result(0.01)
    wait_until(lambda: all(map(gone, processes)), what="the end of both")


def test_one_that_is_left_by_an_exception_is_killed_with_its_children(tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt), started(python(HANGS), tmp_path):
        processes = written(tmp_path / "ids")
        raise KeyboardInterrupt
    wait_until(lambda: all(map(gone, processes)), what="the end of both")


def test_what_it_leaves_running_is_killed(tmp_path: Path) -> None:
    run_flow(bench(tmp_path), python(LEAVES), deadline_s=PATIENCE_S)
    left = written(tmp_path / "ids")
    assert len(left) == 2
    wait_until(lambda: all(map(gone, left)), what="the end of what was left")


def test_it_ends_with_a_harness_that_is_killed(tmp_path: Path) -> None:
    harness = subprocess.Popen([sys.executable, "-c", HARNESS, str(tmp_path)], cwd=ROOT)
    (contender,) = written(tmp_path / "ids")
    harness.kill()
    harness.wait()
    wait_until(lambda: gone(contender), what="the end of what it measured")


def test_one_that_fails_says_its_status_and_last_words(tmp_path: Path) -> None:
    with pytest.raises(ProcessError, match=r"loop ended with status 3; it said last:\n    no broker at x"):
        run_flow(bench(tmp_path), python(FAILS), name="loop", deadline_s=PATIENCE_S)


def test_one_that_is_killed_says_the_signal(tmp_path: Path) -> None:
    with pytest.raises(ProcessError, match="ended with status -9; it said nothing"):
        run_flow(bench(tmp_path), python("import os; os.kill(os.getpid(), 9)"), deadline_s=PATIENCE_S)


@pytest.mark.parametrize(
    "printed",
    [
        "",
        "rubbish",
        "[1]",
        "12",
        '{"records": 1}\n{"records": 2}',
        'ready\n{"records": 1}',
        '{"records":\n1}',
        '{"records"',
    ],
)
def test_one_that_prints_anything_else_is_refused_with_what_it_printed(tmp_path: Path, printed: str) -> None:
    with pytest.raises(ProcessError, match="expected one line with a JSON object"):
        run_flow(bench(tmp_path), python(f"print({printed!r})"), deadline_s=PATIENCE_S)


@pytest.mark.parametrize("value", ['"many"', "true", "NaN", "Infinity", "[1]"])
def test_what_is_no_number_is_refused(value: str) -> None:
    with pytest.raises(ValueError, match="expected a number for records, saw"):
        numbers_in(f'{{"records": {value}}}')


@pytest.mark.parametrize("missing", ["records", "seconds", "cpu_s", "calls_s", "rss_bytes"])
def test_one_whose_numbers_lack_one_is_refused(tmp_path: Path, missing: str) -> None:
    printed = json.dumps({key: value for key, value in MEASURED.items() if key != missing})
    with pytest.raises(ProcessError, match=missing):
        run_flow(bench(tmp_path), python(f"print({printed!r})"), deadline_s=PATIENCE_S)


def test_one_that_measured_nothing_is_refused(tmp_path: Path) -> None:
    printed = json.dumps({**MEASURED, "records": 0})
    with pytest.raises(ProcessError, match="divided by"):
        run_flow(bench(tmp_path), python(f"print({printed!r})"), deadline_s=PATIENCE_S)


def test_further_numbers_stay_as_they_are() -> None:
    assert flow_figures({**dict.fromkeys(MEASURED, 1.0), "commits": 7.0})["commits"] == 7.0


def test_one_that_cannot_be_started_says_so(tmp_path: Path) -> None:
    with (
        pytest.raises(ProcessError, match="peer could not be started"),
        started(["/no/such/program"], tmp_path, name="peer"),
    ):
        pass


def test_it_finds_the_checkout_and_only_the_settings_it_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WAITREG_PROCESSOR__GROUP", "the caller's")
    monkeypatch.setenv("WAITREG_SPARK__JARS_DIR", "/jars")
    monkeypatch.setenv("PYTHONPATH", "/elsewhere")
    code = "import json, os, sys; print(json.dumps([dict(os.environ), os.getcwd()]), file=sys.stderr)"
    with started(python(code), tmp_path, {"WAITREG_PROCESSOR__TOPICS": "orders"}) as child:
        assert child.wait(PATIENCE_S) == 0
    variables, directory = json.loads(child.stderr.read_text("utf-8"))
    ours = {key: value for key, value in variables.items() if key.startswith("WAITREG_")}
    assert ours == {"WAITREG_PROCESSOR__TOPICS": "orders", "WAITREG_SPARK__JARS_DIR": "/jars"}
    assert variables["PYTHONPATH"] == f"{ROOT}{os.pathsep}/elsewhere"
    assert Path(directory) == tmp_path


def test_two_run_at_the_same_time(tmp_path: Path) -> None:
    with started(python(HANGS), tmp_path, name="one") as one:
        written(tmp_path / "ids")
        with started(python(PRINTS), tmp_path, name="two") as two:
            assert two.result(PATIENCE_S)["records"] == 1000
        assert one.process.poll() is None


def test_one_can_be_asked_to_end(tmp_path: Path) -> None:
    code = "import pathlib, signal, sys; signal.signal(15, lambda *_: sys.exit(5)); pathlib.Path('ids').touch(); "
    with started(python(f"{code}signal.pause()"), tmp_path) as child:
        wait_until((tmp_path / "ids").exists, what="its readiness")
        assert child.terminate(PATIENCE_S) == 5
