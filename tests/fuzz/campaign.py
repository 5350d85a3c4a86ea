"""One target's turn: unpack its corpus, let libFuzzer work on it, keep what reached new code."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests.fuzz.corpus import corpus_of, keep, unpack
from tests.fuzz.target import Target

ROOT = Path(__file__).parents[2]
FINDINGS = ROOT / ".waitreg" / "fuzz"
MAX_INPUT_BYTES = 2_048
# An input that takes so long is a finding, and so is a process of so many MB.
TIMEOUT_S, RSS_MB = 10, 2_048
MERGE_LIMIT_S = 300
_EXECUTIONS = re.compile(r"stat::number_of_executed_units:\s*(\d+)")
_ERROR = re.compile(r"=== Uncaught Python exception: ===\n(.*?)(?:\n==|\Z)", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What came of a turn; ``finding`` is the file of an input that broke something."""

    target: str
    executions: int
    kept: int
    finding: Path | None
    said: str

    def __str__(self) -> str:
        line = f"{self.target}: {self.executions} executions, {self.kept} inputs kept"
        if self.finding is None:
            return line
        repeat = f"python -m tests.fuzz.child {self.target} {self.finding}"
        return f"{line}, FOUND {self.finding}\n{self.said}\nrepeat it by: {repeat}"


def fuzz(target: Target, seconds: int) -> Outcome:
    """Fuzz a target for so many seconds, and write its corpus again."""
    FINDINGS.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="waitreg-fuzz-") as scratch:
        folder = Path(scratch)
        unpack([*target.seeds(), *corpus_of(target.name)], folder / "seeds")
        (folder / "found").mkdir()
        words = folder / "words"
        words.write_text("".join(f'"{_escaped(word)}"\n' for word in target.words), "ascii")
        said = _run(
            target,
            f"-max_total_time={seconds}",
            f"-dict={words}",
            "-print_final_stats=1",
            f"-artifact_prefix={FINDINGS}/{target.name}-",
            str(folder / "found"),
            str(folder / "seeds"),
        )
        _run(target, "-merge=1", f"-max_total_time={MERGE_LIMIT_S}", *(str(folder / part) for part in _MERGED))
        kept = keep(target.name, (path.read_bytes() for path in (folder / "least").iterdir()))
    written = re.search(r"Test unit written to (\S+)", said)
    error = _ERROR.search(said)
    executions = _EXECUTIONS.search(said)
    return Outcome(
        target.name,
        int(executions[1]) if executions else 0,
        kept,
        Path(written[1]) if written else None,
        (error[1] if error else said)[-3_000:],
    )


_MERGED = ("least", "seeds", "found")


def _run(target: Target, *options: str) -> str:
    if "-merge=1" in options:
        Path(options[2]).mkdir(exist_ok=True)
    limits = (f"-max_len={MAX_INPUT_BYTES}", f"-timeout={TIMEOUT_S}", f"-rss_limit_mb={RSS_MB}")
    command = [sys.executable, "-m", "tests.fuzz.child", target.name, *limits, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    return done.stdout + done.stderr


def _escaped(word: bytes) -> str:
    return "".join(f"\\x{byte:02x}" for byte in word)
