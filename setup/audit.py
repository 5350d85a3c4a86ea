"""Look the locked Python packages up among known vulnerabilities: `make audit`, and a step of `make check`.

    python setup/audit.py

pip-audit does it, in a virtual environment of its own below .waitreg/tools, over requirements.txt and
requirements-build.txt. A vulnerability fails the gate, unless setup/accepted_vulnerabilities.toml names it with a
reason and a last day that isn't over. Where nothing can be looked up, for lack of pip-audit, of a network or of an
answer, a line says so loudly, and the gate continues: it must run without a network.

The jars aren't looked up: jvm/*.sha256 lists those that Spark, the embedded broker and Connect bring as
file names alone, and no tool of theirs reads those.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
LOCKED = ("requirements.txt", "requirements-build.txt")
ACCEPTED = ROOT / "setup" / "accepted_vulnerabilities.toml"
TOOL = ROOT / ".waitreg" / "tools" / "pip-audit"
TOOL_VERSION = "pip-audit>=2.9,<3"
INSTALL_LIMIT_S = 180
ANSWER_LIMIT_S = 5
AUDIT_LIMIT_S = 120
SKIPPED = re.compile(r"^Name +Skip Reason\n[- ]*\n", re.MULTILINE)


def accepted_ids(text: str, today: date) -> Iterator[str]:
    """Yield the IDs of the accepted vulnerabilities, and print those whose last day is over."""
    for entry in tomllib.loads(text).get("accepted", ()):
        if today <= entry["until"]:
            yield entry["id"]
        else:
            print(f"{entry['id']} in {entry['package']} was accepted until {entry['until']}, which is over")


def main() -> int:
    """Audit; the exit status is 1 for a vulnerability alone."""
    ignored = accepted_ids(ACCEPTED.read_text("utf-8"), datetime.now(UTC).date())
    options = [part for id in ignored for part in ("--ignore-vuln", id)]
    options += [part for name in LOCKED for part in ("-r", str(ROOT / name))]
    options += ["--require-hashes", "--disable-pip", "--progress-spinner", "off", "--timeout", str(ANSWER_LIMIT_S)]
    try:
        _install()
        done = _run(str(TOOL / "bin" / "pip-audit"), *options, limit_s=AUDIT_LIMIT_S)
    except (OSError, subprocess.SubprocessError) as error:
        print(f"NOT AUDITED for known vulnerabilities: {type(error).__name__}: {error}")
        return 0
    found, _, rest = SKIPPED.sub("\0", done.stdout).partition("\0")
    skipped = rest.splitlines()
    print(found, end="")
    last = next(iter(reversed(done.stderr.strip().splitlines())), "")
    # The tool ends with 1 for its own errors too, which print no table.
    if done.returncode and not found.strip():
        print(f"NOT AUDITED for known vulnerabilities: {last or 'pip-audit gave no report'}")
        return 0
    if skipped:
        print(f"NOT AUDITED, {len(skipped)} packages: {' '.join(skipped[0].split())}, ...")
    print(f"{last}{' in the other packages' if skipped else ''}")
    if done.returncode:
        print(f"Raise what is listed (pyproject.toml, `make lock`), or accept it for a while in {ACCEPTED.name}")
    return done.returncode


def _install() -> None:
    """Install pip-audit where it isn't yet."""
    if not (TOOL / "bin" / "pip-audit").is_file():
        _run(sys.executable, "-m", "venv", "--clear", str(TOOL), limit_s=INSTALL_LIMIT_S, check=True)
        pip = (str(TOOL / "bin" / "python"), "-m", "pip", "install", "--quiet", TOOL_VERSION)
        _run(*pip, limit_s=INSTALL_LIMIT_S, check=True)


def _run(*command: str, limit_s: float, check: bool = False) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, timeout=limit_s, check=check)


if __name__ == "__main__":
    sys.exit(main())
