"""The command line: help, usage, settings, and how an error becomes an exit code."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import psycopg
import pytest

from tests.support.command import Ended, run_waitreg
from tests.support.command_line import all_commands, all_entries, extras, parsed
from wait_registry.errors import (
    ConfigurationError,
    DataError,
    FencedError,
    PermanentError,
    ReconciliationError,
    TransientError,
    WaitRegistryError,
)
from waitreg import main as cli
from waitreg.command import EXTRAS, Command
from waitreg.main import COMMANDS, main

Run = Callable[..., Ended]


@pytest.fixture
def waitreg(tmp_path: Path) -> Run:
    """Run `waitreg` in an empty directory, with the variables that the test gives."""

    def run(*arguments: str, **variables: str) -> Ended:
        return run_waitreg(tmp_path, *arguments, variables=variables, deadline_s=60)

    return run


def test_help_names_every_command_and_every_exit_code(waitreg: Run) -> None:
    shown = waitreg("--help", COLUMNS="150")
    assert shown.code == 0
    for command in (entry for entries in COMMANDS.values() for entry in entries):
        assert f"  {command.name}" in shown.output
        assert command.summary in shown.output
    assert "0 done, 1 failed, 2 usage or configuration, 3 fenced" in shown.output
    assert "4 reconciliation broken" in shown.output


@pytest.mark.parametrize("path", all_entries())
def test_the_summary_is_the_first_line_of_the_help(path: str) -> None:
    command, entry = all_entries()[path]
    assert (command.help or "").splitlines()[0] == entry.summary


@pytest.mark.parametrize("path", all_commands())
def test_every_command_has_help_with_examples(path: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*path.split()[1:], "--help"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: {path} ")
    assert path.rpartition(" ")[0] in shown.partition("Examples:")[2]


@pytest.mark.parametrize("path", all_commands())
def test_the_examples_in_the_help_can_be_typed(path: str) -> None:
    for example in "\n".join(all_commands()[path].examples).replace("\\\n", " ").splitlines():
        words = shlex.split(example, comments=True)
        typed = parsed(words[words.index("waitreg") + 1 :]).path
        assert typed.split()[:2] == path.split()[:2]


def test_version_is_the_distribution_s(waitreg: Run) -> None:
    from importlib.metadata import version

    assert waitreg("--version").output == f"waitreg {version('wait-registry')}\n"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("", "Usage:"),
        ("sunk", "Usage:"),
        ("processor --twice", "Usage:"),
        ("topics", "Usage:"),
        ("topics drop", "Usage:"),
        ("config --set no-equals-sign", "Usage:"),
        ("downstream --mixture often:slow", "often"),
        ("downstream --port 99999", "0<=x<=65535"),
        ("downstream --port=-1", "0<=x<=65535"),
        ("load --topic t --records=-5", "x>=0"),
        ("load --topic t --records 1e3", "not a valid integer"),
        ("load --topic t --first=-1", "x>=0"),
        ("load --topic t --shape large", "'plain', 'tiny', 'binary', 'hostile'"),
        ("load --topic t --rate half", "not a valid float"),
        ("load --topic t --rate 0", "0<x<=1000000"),
        ("load --topic t --rate inf", "0<x<=1000000"),
        ("topics create --input-partitions 0", "x>=1"),
        ("topics create --set operations.topic=__consumer_offsets", "operations.topic is '__consumer_offsets'"),
        ("topics check --set operations.topic=__consumer_offsets", "operations.topic is '__consumer_offsets'"),
        ("dlq archive group=a --limit 99999999999999999999", "1<=x<=1000000000"),
        ("dlq redrive group=a --canary 99999999999999999999", "1<=x<=1000000000"),
        ("dlq list group=\udcff", r"waitreg dlq list: 'group=\udcff' isn't text in UTF-8"),
        ("dlq edit t:0:1 --header a \udcff", r"'\udcff' isn't text in UTF-8"),
        ("dlq archive group=a --reason \udcff --send", r"'\udcff' isn't text in UTF-8"),
        ("dlq jobs pause \udcff", r"'\udcff' isn't text in UTF-8"),
        ("topics check --set processor.topics=gr\udcfcn", "--set processor.topics isn't text in UTF-8 without NUL"),
        ("topics check --set processor.topics=bad!topic", "processor.topics is 'bad!topic', not a topic name"),
        ("topics create --set processor.topics=a!", "processor.topics is 'a!', not a topic name"),
        ("query", "Missing argument 'LIST|NAME'"),
        ("query record_by_key key=a key=b", "key is given twice, 'a' and 'b'"),
        ("rewind --to-latest --set processor.source=share", "use kafka-share-groups.sh"),
        ("procesor", "Did you mean 'processor'?"),
        ("processor --onse", "Did you mean one of: '--once'"),
    ],
)
def test_wrong_usage_ends_with_2_and_says_what_fits(capsys: pytest.CaptureFixture[str], line: str, said: str) -> None:
    assert main(line.split()) == 2
    errors = capsys.readouterr().err
    assert said in errors
    assert "Traceback" not in errors


def test_options_before_and_after_the_command_count_and_the_later_wins(waitreg: Run, tmp_path: Path) -> None:
    (tmp_path / "own.toml").write_text('[processor]\ngroup = "file"\ninstance = "file"\nhandler = "a.b:c"\n')
    before = ("--set", "processor.group=first", "--set", "log.level=DEBUG")
    after = ("--config", "own.toml", "--set", "processor.group=line")
    shown = waitreg(*before, "config", *after, WAITREG_PROCESSOR__INSTANCE="variable").output
    for line in ("group = 'line'", "instance = 'variable'", "handler = 'a.b:c'"):
        assert f"processor.{line}\n" in shown
    assert "log.level = 'DEBUG'\n" in shown


def test_config_says_what_services_refuse(waitreg: Run) -> None:
    assert json.loads(waitreg("config", "--json").output)["processor.max_in_flight"] == "50"
    assert waitreg("config").errors == ""
    shown = waitreg("config", "--set", "kafka.librdkafka.group.instance.id=shop-0")
    assert (shown.code, shown.errors.count("\n")) == (0, 1)
    assert shown.errors.startswith("error: kafka.librdkafka sets group.instance.id, which isn't free")


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
    assert ended.code == 2
    assert "No module named 'absent'" in ended.errors


def without_extras(script: str) -> subprocess.CompletedProcess[str]:
    """Run lines that call `main` where no package of an extra is installed."""
    # None in place of a module makes Python take it for one that isn't installed.
    absent = f"import sys; sys.modules.update(dict.fromkeys({sorted(set().union(*EXTRAS.values()))}))"
    whole = f"{absent}\nfrom waitreg.main import main\n{script}"
    return subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True, timeout=60)


def test_a_command_without_its_extra_says_in_one_line_what_to_install() -> None:
    commands = extras()
    assert set(commands.values()) == set(EXTRAS)
    needed = {
        "waitreg reconcile": ["--manifest", "m", "--calls", "c"],
        "waitreg query": ["stuck_now"],
        "waitreg history": ["folder"],
        "waitreg dlq show": ["dlq:0:1"],
        "waitreg dlq diff": ["dlq:0:1", "--input"],
        "waitreg dlq edit": ["dlq:0:1"],
        "waitreg dlq merge": ["orders.dlq"],
        "waitreg dlq purge": ["orders.dlq", "--before", "30d"],
        "waitreg dlq jobs rate": ["job-1", "5"],
        "waitreg dlq jobs approve": ["job-1", "--reason", "r"],
        **{f"waitreg dlq jobs {name}": ["job-1"] for name in ("show", "pause", "cancel")},
    }
    lines = [[*path.split()[1:], *needed.get(path, [])] for path in commands]
    ended = without_extras(f"for line in {lines}: print(main(line))")
    assert ended.stdout.split() == ["2"] * len(commands)
    for line, (path, extra) in zip(ended.stderr.splitlines(), commands.items(), strict=True):
        assert line.startswith(f"{path}: psycopg"), line
        assert line.endswith(f"not installed. Fix: pip install 'wait-registry[{extra}]'")


def test_a_command_without_its_extra_has_help_and_completes() -> None:
    entries = {path: entry for path, (_, entry) in all_entries().items()}
    script = f"for path in {list(entries)}: print(main([*path.split()[1:], '--help']), end=chr(0))"
    for (path, entry), shown in zip(entries.items(), without_extras(script).stdout.split("\0")[:-1], strict=True):
        text = " ".join(shown.split())
        assert text.startswith(f"Usage: {path} [OPTIONS]") and entry.summary in text and text.endswith(" 0")
        assert entry.extra is None or f"Fix: pip install 'wait-registry[{entry.extra}]'" in text
    line = {"_WAITREG_COMPLETE": "bash_complete", "COMP_WORDS": "waitreg sink --", "COMP_CWORD": "2"}
    completed = without_extras(f"import os; os.environ |= {line}; main()")
    assert ("plain,--config" in completed.stdout, completed.stderr) == (True, "")


@pytest.mark.parametrize(
    ("script", "foreign"),
    [
        ("main(['--help'])", {"confluent_kafka", "pydantic", "aiohttp", "psycopg", "pyspark", "rich"}),
        ("main(['processor', '--help']); import processor.service", {"psycopg", "pyspark", "pyarrow", "apscheduler"}),
    ],
)
def test_a_command_loads_only_what_it_needs(script: str, foreign: set[str]) -> None:
    # In a process of its own, since this one has loaded everything.
    whole = f"import sys; from waitreg.main import main; {script}; print({foreign} & set(sys.modules))"
    ended = subprocess.run([sys.executable, "-c", whole], capture_output=True, text=True, check=True, timeout=60)
    assert ended.stdout.splitlines()[-1] == "set()"


CAUSED = TransientError("Kafka gave no answer")
CAUSED.__cause__ = OSError("connection refused")


@pytest.mark.parametrize(
    ("error", "code", "shown"),
    [
        (None, 0, ""),
        (ConfigurationError("fix it"), 2, "waitreg broken: fix it\n"),
        (FencedError("another sink is alive"), 3, "waitreg broken: another sink is alive\n"),
        (ReconciliationError("one record is lost"), 4, "waitreg broken: one record is lost\n"),
        (TransientError("no answer"), 1, "waitreg broken: no answer\n"),
        (PermanentError("refused"), 1, "waitreg broken: refused\n"),
        (DataError("unreadable"), 1, "waitreg broken: unreadable\n"),
        (WaitRegistryError("stopped"), 1, "waitreg broken: stopped\n"),
        (CAUSED, 1, "waitreg broken: Kafka gave no answer (because: OSError: connection refused)\n"),
        (
            psycopg.errors.ProtocolViolation("query_wait_timeout"),
            1,
            "waitreg broken: a query to Postgres was interrupted, try again: query_wait_timeout. Fix: resume the pool "
            "of the pooler at postgres.url if it is paused, raise its size, or start Postgres behind it\n",
        ),
        (KeyboardInterrupt(), 130, "waitreg broken: interrupted\n"),
        (ZeroDivisionError("by accident"), 1, "Traceback (most recent call last):\n"),
    ],
    ids=repr,
)
def test_an_error_becomes_an_exit_code_and_a_line(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], error: BaseException, code: int, shown: str
) -> None:
    def run() -> int:
        if error is not None:
            raise error
        return 0

    monkeypatch.setattr(cli.waitreg, "get_command", lambda context, name: Command(name, callback=run))
    assert cli.main(["broken"]) == code
    errors = capsys.readouterr().err
    if isinstance(error, ZeroDivisionError):  # anything unforeseen is shown in full
        assert errors.startswith(shown) and errors.endswith("ZeroDivisionError: by accident\n")
    else:
        assert errors == shown
