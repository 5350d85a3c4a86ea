"""Put generated faults into one area of the product, one at a time, and see whether the tests of a tier find them.

    make mutation AREA=sink SEED=1                                 ten faults, the fast tier
    python -m tests.generated_faults --area sink --seed 1 --list   these faults alone, without tests

mutmut's operators generate the faults, and the seed draws some of them. The tool draws none that only changes a log or
the text of an error, and none that tests/generated_faults.toml leaves out. Each is alone in a worktree of HEAD. Exit
status: 0 enough faults found, 1 too few, 130 interrupted.
"""

from __future__ import annotations

import argparse
import difflib
import hashlib
import math
import re
import subprocess
import sys
import tempfile
import time
import tomllib
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any, Final, NamedTuple

from tests import tiers
from tests.support.chosen_stack import POSTGRES_SETTINGS
from tests.support.programs import INTERRUPTED, at_least_one, signals_interrupt
from tests.support.pytest_run import run_pytest
from tests.support.stack import KAFKA_VARIABLE, POSTGRES_VARIABLE
from waitreg.local.stack import EmbeddedStack

ROOT: Final = Path(__file__).parents[1]
# The tool of mutations comes with a pytest, which must not hide ours.
sys.path.append(str(ROOT / ".waitreg" / "tools" / "mutmut"))

AREAS: Final = {"processor": "processor", "redrive": "waitreg/redrive", "sink": "sink", "sweeper": "sweeper"}
TIERS: Final[dict[str, list[str | None]]] = {"fast": [tiers.FAST], "gate": [tiers.FAST, tiers.GATE], "all": [None]}
LEAST_SHARE: Final = {"fast": 0.7, "gate": 0.9, "all": 0.9}
# The virtual environment has these packages under other names, and from another checkout.
RENAMED: Final = {"wait_registry_sql": "sql", "wait_registry_jvm": "jvm", "wait_registry_connect": "connect-configs"}
RUN_LIMIT_S: Final = 3_600
FAILED: Final = re.compile(r"^(?:FAILED|ERROR) (?P<test>\S+?\.py\S*(?:\[.*?\])?)(?: - .*)?$", re.MULTILINE)


class Fault(NamedTuple):
    """A change of one file: its name (file, function, hash of the change), the whole file with it, and the diff."""

    name: str
    file: str
    source: str
    diff: str


def generated(area: str, seed: int) -> Iterator[Fault]:
    """Return every fault of an area's functions, in an order by the seed that other changes leave as it is."""
    import libcst as cst
    from mutmut.mutation.file_mutation import MutationVisitor, deep_replace
    from mutmut.mutation.mutators import mutation_operators
    from mutmut.mutation.pragma_handling import IgnoredCode

    found, seen = {}, Counter[str]()
    for file in sorted((ROOT / AREAS[area]).rglob("*.py")):
        path = file.relative_to(ROOT).as_posix()
        visitor = MutationVisitor(mutation_operators, IgnoredCode(set(), set(), set()))
        module = cst.MetadataWrapper(cst.parse_module(file.read_text("utf-8"))).visit(visitor)
        words = set(_words(module))
        for it in visitor.mutations:
            function = it.contained_by_top_level_function
            if isinstance(function, cst.FunctionDef) and it.original_node not in words:
                change = f"{module.code_for_node(it.original_node)} -> {module.code_for_node(it.mutated_node)}"
                where = f"{path}:{function.name.value}:"
                seen[where + change] += 1
                found[where + _hash(f"{change} {seen[where + change]}")] = (path, module, it)
    for name in sorted(found, key=lambda name: _hash(f"{seed} {name}")):
        path, module, it = found[name]
        source = deep_replace(module, it.original_node, it.mutated_node).code
        diff = difflib.unified_diff(module.code.splitlines(), source.splitlines(), path, path, lineterm="")
        yield Fault(name, path, source, "\n".join(diff))


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:8]


def _words(module: Any) -> Iterator[Any]:
    """Return the nodes that only words depend on: in log calls, in raised errors, and literals with a space."""
    import libcst.matchers as m

    text = m.SimpleString(value=m.MatchIfTrue(lambda value: " " in value))
    nodes = list(m.findall(module, m.Call(func=m.Attribute(value=m.Name("log"))) | m.Raise() | text))
    while nodes:
        yield (node := nodes.pop())
        nodes += node.children


def stages(area: str, tier: str) -> list[list[str]]:
    """Return pytest's arguments for one run after another: first the tests of the area, then the others."""
    near = [f"tests/unit/{area}", f"tests/integration/{area}", "tests/simulation"]
    others = ["tests", *(f"--ignore={path}" for path in near)]
    chosen = [["--tier", name] if name else [] for name in TIERS[tier]]
    return [[*options, *paths] for paths in (near, others) for options in chosen]


def run_tests(scratch: Path, arguments: list[str], stack: dict[str, str]) -> tuple[int | None, str]:
    """Run pytest until a test fails; return its status, None after the time limit, and its output."""
    return run_pytest(["-x", "-n", "2", *arguments], scratch, {**stack, "PYTHONPATH": str(scratch)}, RUN_LIMIT_S)


def tried(fault: Fault, scratch: Path, runs: list[list[str]], stack: dict[str, str]) -> tuple[str, str]:
    """Return the outcome of the runs with a fault, and the test that found it, which passes without the fault."""
    file = scratch / fault.file
    for arguments in runs:
        unchanged = file.read_text("utf-8")
        file.write_text(fault.source, "utf-8")
        try:
            status, output = run_tests(scratch, arguments, stack)
        finally:
            file.write_text(unchanged, "utf-8")
        if status is None:
            return "unclear", "time limit"
        if status in (0, 5):  # 5: the tier has no test there
            continue
        failed = FAILED.search(output)
        if failed is None or run_tests(scratch, [failed["test"]], stack)[0] != 0:
            print(output[-3_000:])
            return "unclear", failed["test"] if failed else f"pytest ended with {status}"
        return "found", failed["test"]
    return "survived", ""


@contextmanager
def worktree() -> Iterator[Path]:
    """Check HEAD out into a temporary folder, with links to what git doesn't keep."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder, "checkout")
        subprocess.run(["git", "worktree", "add", "-q", "--detach", scratch, "HEAD"], cwd=ROOT, check=True)
        try:
            for link in (".venv", ".waitreg", "jvm/jars"):
                (scratch / link).symlink_to((ROOT / link).resolve())
            for package, folder in RENAMED.items():
                (scratch / package).symlink_to(folder)
            yield scratch
        finally:
            subprocess.run(["git", "worktree", "remove", "--force", scratch], cwd=ROOT, check=False)


def main() -> int:
    """Run as the module's docstring says; return the exit status."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--area", choices=AREAS, required=True)
    parser.add_argument("--seed", type=int, required=True)
    parser.add_argument("--count", type=at_least_one, default=10, help="how many faults (default 10)")
    parser.add_argument("--tier", choices=TIERS, default="fast", help="gate runs the fast tier too (default fast)")
    parser.add_argument("--only", type=at_least_one, metavar="K", help="only the fault with this number")
    parser.add_argument("--list", action="store_true", help="print the faults and stop")
    options = parser.parse_args()
    left_out = tomllib.loads(Path(__file__).with_suffix(".toml").read_text("utf-8"))["left_out"]
    kept = (fault for fault in generated(options.area, options.seed) if fault.name not in left_out)
    faults = list(enumerate(islice(kept, options.count), 1))
    faults = [(number, fault) for number, fault in faults if options.only in (None, number)]
    for number, fault in faults:
        print(f"\n{number}. {fault.name}\n{fault.diff}")
    if options.list:
        return 0
    print(f"\narea {options.area}, seed {options.seed}, tier {options.tier}", flush=True)
    signals_interrupt()
    outcomes = []
    with worktree() as scratch, EmbeddedStack(postgres_settings=POSTGRES_SETTINGS) as running:
        stack = {KAFKA_VARIABLE: running.bootstrap_servers, POSTGRES_VARIABLE: running.postgres_url}
        for number, fault in faults:
            began = time.monotonic()
            outcome, by = tried(fault, scratch, stages(options.area, options.tier), stack)
            outcomes.append(outcome)
            print(f"{number:3} {outcome:8} {time.monotonic() - began:5.0f} s  {fault.name}  {by}", flush=True)
    least = math.ceil(LEAST_SHARE[options.tier] * len(faults))
    print(f"{outcomes.count('found')} of {len(faults)} found, at least {least} expected")
    return int(outcomes.count("found") < least)


if __name__ == "__main__":
    try:
        sys.exit(main())
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
