"""The command line as a user meets it: real processes, their output and their exit codes."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.support.command_line import all_commands, parsed
from wait_registry.cli.command import EXTRAS
from wait_registry.cli.main import COMMANDS, Entry, main

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def waitreg(tmp_path: Path) -> Run:
    """Run `python -m wait_registry` in an empty directory, without any WAITREG_ variable of this process."""
    environment = {name: value for name, value in os.environ.items() if not name.startswith("WAITREG_")}

    def run(*arguments: str, **variables: str) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "wait_registry", *arguments],
            cwd=tmp_path,
            env={**environment, **variables},
            capture_output=True,
            text=True,
            check=False,
            timeout=60,
        )

    return run


def test_help_names_every_command_and_every_exit_code(waitreg: Run) -> None:
    shown = waitreg("--help", COLUMNS="150")
    assert shown.returncode == 0
    for command in COMMANDS:
        assert f"  {command.name}" in shown.stdout
        assert command.summary in shown.stdout
    assert "0 done, 1 failed, 2 usage or configuration, 3 fenced" in shown.stdout
    assert "4 reconciliation broken" in shown.stdout


@pytest.mark.parametrize("command", COMMANDS, ids=lambda command: command.name)
def test_the_summary_is_the_first_line_of_the_help(command: Entry) -> None:
    assert (command.load().help or "").splitlines()[0] == command.summary


@pytest.mark.parametrize("path", all_commands())
def test_every_command_has_help_with_examples_and_exit_codes(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path.split()[1:], "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: {path} ")
    assert path.rpartition(" ")[0] in shown.partition("Examples:")[2]
    assert "Exit codes: 0 done" in shown


@pytest.mark.parametrize("path", all_commands())
def test_the_examples_in_the_help_can_be_typed(path: str) -> None:
    for example in "\n".join(all_commands()[path].examples).replace("\\\n", " ").splitlines():
        words = shlex.split(example, comments=True)
        typed = parsed(words[words.index("waitreg") + 1 :]).path
        assert typed.split()[:2] == path.split()[:2]


def test_version_is_the_distribution_s(waitreg: Run) -> None:
    from importlib.metadata import version

    assert waitreg("--version").stdout == f"waitreg {version('wait-registry')}\n"


@pytest.mark.parametrize(
    "arguments",
    [(), ("sunk",), ("processor", "--twice"), ("topics",), ("topics", "drop"), ("config", "--set", "no-equals-sign")],
)
def test_wrong_usage_ends_with_2(waitreg: Run, arguments: tuple[str, ...]) -> None:
    ended = waitreg(*arguments)
    assert ended.returncode == 2
    assert "Usage:" in ended.stderr
    assert "Traceback" not in ended.stderr


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("downstream --port 99999", "0<=x<=65535"),
        ("downstream --port=-1", "0<=x<=65535"),
        ("load --topic t --records=-5", "x>=0"),
        ("load --topic t --records 1e3", "not a valid integer"),
        ("load --topic t --first=-1", "x>=0"),
        ("load --topic t --min-value-bytes=-1", "x>=0"),
        ("load --topic t --null-keys 2", "0<=x<=1"),
        ("load --topic t --hot-key nan", "0<=x<=1"),
        ("load --topic t --binary-values half", "not a valid float"),
        ("load --topic t --rate 0", "x>0"),
        ("load --topic t --rate inf", "x>0"),
        ("topics create --input-partitions 0", "x>=1"),
        ("query", "Missing argument 'LIST|NAME'"),
        ("query --json --csv LIST", "--json and --csv exclude each other"),
        ("config --all --markdown", "--all and --markdown exclude each other"),
        ("query record_by_key key=a key=b", "key is given twice, 'a' and 'b'"),
        ("procesor", "Did you mean 'processor'?"),
        ("processor --onse", "Did you mean one of: '--once'"),
    ],
)
def test_wrong_usage_says_what_is_right(capsys: pytest.CaptureFixture[str], line: str, said: str) -> None:
    assert main(line.split()) == 2
    assert said in capsys.readouterr().err


def test_an_unknown_setting_ends_with_2_and_one_line_that_names_the_nearest(waitreg: Run) -> None:
    ended = waitreg("config", "--set", "processor.max_inflight=3")
    assert ended.returncode == 2
    assert ended.stderr.startswith("waitreg config: ")
    assert "processor.max_inflight" in ended.stderr
    assert "processor.max_in_flight" in ended.stderr
    assert "Traceback" not in ended.stderr


def test_an_unknown_variable_ends_with_2_and_names_the_nearest(waitreg: Run) -> None:
    ended = waitreg("config", WAITREG_SINK__POL_INTERVAL_S="2")
    assert ended.returncode == 2
    assert "poll_interval_s" in ended.stderr.lower()


def test_a_value_out_of_bounds_ends_with_2_and_says_what_is_allowed(waitreg: Run) -> None:
    ended = waitreg("config", "--set", "processor.max_in_flight=0")
    assert ended.returncode == 2
    assert "processor.max_in_flight" in ended.stderr
    assert "1" in ended.stderr


def test_options_before_and_after_the_command_both_count_and_the_later_wins(waitreg: Run) -> None:
    shown = waitreg(
        "--set", "processor.group=first", "--set", "log.level=DEBUG", "config", "--set", "processor.group=second"
    )
    assert shown.returncode == 0
    assert "second" in shown.stdout
    assert "first" not in shown.stdout
    assert "DEBUG" in shown.stdout


def test_the_command_line_beats_the_environment_and_the_environment_beats_the_file(
    waitreg: Run, tmp_path: Path
) -> None:
    (tmp_path / "own.toml").write_text('[processor]\ngroup = "file"\ninstance = "file"\nhandler = "a.b:c"\n')
    shown = waitreg(
        "config",
        "--config",
        "own.toml",
        "--set",
        "processor.group=line",
        WAITREG_PROCESSOR__GROUP="variable",
        WAITREG_PROCESSOR__INSTANCE="variable",
    )
    effective = dict(line.split(" = ", 1) for line in shown.stdout.splitlines() if " = " in line)
    assert [effective[f"processor.{name}"].strip("'\"") for name in ("group", "instance", "handler")] == [
        "line",
        "variable",
        "a.b:c",
    ]


def test_a_settings_file_that_is_missing_ends_with_2(waitreg: Run) -> None:
    ended = waitreg("config", "--config", "nowhere.toml")
    assert ended.returncode == 2
    assert "nowhere.toml" in ended.stderr


def test_secrets_are_masked(waitreg: Run) -> None:
    shown = waitreg(
        "config",
        WAITREG_POSTGRES__URL="postgresql://me:hunter2@db/registry",
        WAITREG_KAFKA__SECURITY__PASSWORD="hunter2",
        WAITREG_KAFKA__SECURITY__KEY="hunter2",
    )
    assert shown.returncode == 0
    assert "hunter2" not in shown.stdout + shown.stderr


def test_the_processor_s_command_loads_neither_postgres_nor_spark() -> None:
    # In a process of its own: this one has loaded everything.
    script = (
        "import sys; from wait_registry.cli.main import main; main(['processor', '--help']); import "
        "processor.service; print(*{'psycopg', 'pyspark', 'pyarrow', 'apscheduler'} & set(sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.splitlines()[-1] == ""


def test_files_with_the_names_of_our_packages_replace_none_of_them(waitreg: Run, tmp_path: Path) -> None:
    for package in ("processor", "sink", "sweeper"):
        (tmp_path / f"{package}.py").write_text("raise RuntimeError('not ours')")
    (tmp_path / "broken.py").write_text("import processor.service, sink.service, sweeper.service, absent")
    ended = waitreg(
        "processor",
        WAITREG_PROCESSOR__HANDLER="broken:handle",
        WAITREG_PROCESSOR__GROUP="shop",
        WAITREG_PROCESSOR__TOPICS="orders",
    )
    assert ended.returncode == 2
    assert "No module named 'absent'" in ended.stderr


def test_a_command_without_its_extra_says_in_one_line_what_to_install() -> None:
    commands = {path: command.extra for path, command in all_commands().items() if command.extra}
    assert set(commands.values()) == set(EXTRAS)
    needed = {"waitreg reconcile": ["--manifest", "m", "--calls", "c"], "waitreg query": ["stuck_now"]}
    asked = {**commands, "waitreg query": "query"}
    lines = [[*path.split()[1:], *needed.get(path, [])] for path in asked]
    # None in place of a module makes Python take it for one that isn't installed.
    script = (
        f"import sys; sys.modules.update(dict.fromkeys({sorted(set().union(*EXTRAS.values()))}))\n"
        f"from wait_registry.cli.main import main\nfor line in {lines}: print(main(line))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.split() == ["2"] * len(asked)
    for line, (path, extra) in zip(ended.stderr.splitlines(), asked.items(), strict=True):
        assert line.startswith(f"{path}: psycopg"), line
        assert line.endswith(f"not installed. Fix: pip install 'wait-registry[{extra}]'")


def test_the_help_loads_no_client_library() -> None:
    script = (
        "import sys; from wait_registry.cli.main import main; main(['--help']); "
        "print(*{'confluent_kafka', 'pydantic', 'aiohttp', 'psycopg', 'pyspark', 'rich'} & set(sys.modules))"
    )
    ended = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.splitlines()[-1] == ""


def test_config_all_lists_every_setting_with_its_variable(waitreg: Run) -> None:
    shown = waitreg("config", "--all").stdout
    assert "postgres.schema = public" in shown
    assert "WAITREG_PROCESSOR__HTTP__RETRY_STATUSES" in shown
