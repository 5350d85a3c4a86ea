"""Fuzz the readers of everything that another client may have written.

    make fuzz MINUTES=60                        every target in turn
    make fuzz MINUTES=5 TARGET=headers_json     one of them
    make fuzz ARGS=--list                       the targets

Each target runs under atheris (libFuzzer) in a process of its own, beginning with the golden vectors and the corpus in
tests/fuzz/corpus. What reached new code is minimized and kept there; an ordinary test replays it. A finding is kept in
.waitreg/fuzz and printed with the line that repeats it. Exit status: 0 nothing found, 1 something, 2 no atheris.
"""

from __future__ import annotations

import argparse
import importlib.util
import re
import subprocess
import sys
import tempfile
from hashlib import sha256
from pathlib import Path

from tests.fuzz.inputs import corpus_of, keep
from tests.fuzz.targets import TARGETS

ROOT = Path(__file__).parents[2]
FINDINGS = ROOT / ".waitreg" / "fuzz"
# An input that takes longer is a finding, and so is a process of more MB.
LIMITS = ("-max_len=2048", "-timeout=10", "-rss_limit_mb=2048")
MERGE_LIMIT_S = 300


def main() -> int:
    """Run as the module's docstring says; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--minutes", type=float, default=5.0, help="for all targets together")
    parser.add_argument("--target", action="append", choices=TARGETS, help="only this one; may be repeated")
    parser.add_argument("--list", action="store_true", help="print the targets")
    options = parser.parse_args()
    if options.list:
        print("\n".join(TARGETS))
        return 0
    if importlib.util.find_spec("atheris") is None:
        print("saw no atheris, expected it on PYTHONPATH. Run it by `make fuzz`, which fetches it", file=sys.stderr)
        return 2
    chosen = options.target or list(TARGETS)
    share_s = options.minutes * 60 / sum(TARGETS[name].share for name in chosen)
    found = sum([fuzz(name, max(5, round(share_s * TARGETS[name].share))) for name in chosen])
    print(f"{len(chosen)} targets, {found} targets with a finding")
    return 1 if found else 0


def fuzz(name: str, seconds: int) -> bool:
    """Fuzz a target for a number of seconds, write its corpus again, and return whether an input broke something."""
    FINDINGS.mkdir(parents=True, exist_ok=True)
    target = TARGETS[name]
    with tempfile.TemporaryDirectory(prefix="waitreg-fuzz-") as scratch:
        seeds, new, least = (Path(scratch, folder) for folder in ("seeds", "found", "least"))
        for folder in (seeds, new, least):
            folder.mkdir()
        for one in [*target.seeds(), *corpus_of(name)]:
            (seeds / sha256(one).hexdigest()[:16]).write_bytes(one)
        words = Path(scratch, "words")
        escaped = ("".join(f"\\x{byte:02x}" for byte in word) for word in target.words)
        words.write_text("".join(f'"{word}"\n' for word in escaped), "ascii")
        limits = (f"-max_total_time={seconds}", "-print_final_stats=1", f"-dict={words}")
        said = _run(name, *limits, f"-artifact_prefix={FINDINGS}/{name}-", str(new), str(seeds))
        _run(name, "-merge=1", f"-max_total_time={MERGE_LIMIT_S}", str(least), str(seeds), str(new))
        kept = keep(name, (path.read_bytes() for path in least.iterdir()))
    executions = re.search(r"stat::number_of_executed_units:\s*(\d+)", said)
    print(f"{name}: {executions[1] if executions else 0} executions, {kept} inputs kept", flush=True)
    finding = re.search(r"Test unit written to (\S+)", said)
    if finding is not None:
        error = re.search(r"=== Uncaught Python exception: ===\n(.*?)(?:\n==|\Z)", said, re.DOTALL)
        print(f"FOUND {finding[1]}\n{(error[1] if error else said)[-3_000:]}")
        print(f"repeat it by: python -m tests.fuzz.child {name} {finding[1]}")
    return finding is not None


def _run(name: str, *options: str) -> str:
    command = [sys.executable, "-m", "tests.fuzz.child", name, *LIMITS, *options]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, errors="replace", check=False)
    return done.stdout + done.stderr


if __name__ == "__main__":
    sys.exit(main())
