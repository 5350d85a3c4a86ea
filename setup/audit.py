"""Look the locked Python packages up among known vulnerabilities: `make audit`, and a step of `make check`.

    python setup/audit.py

pip-audit does it, in a virtual environment of its own below .waitreg/tools, over requirements.txt and
requirements-build.txt. A vulnerability fails the gate, unless setup/accepted_vulnerabilities.toml names it with a
reason and a last day. Where nothing can be looked up, for lack of pip-audit, of a network or of an answer, a line says
loudly which packages were not audited and why, and the gate continues: it must run without a network.

The jars aren't looked up: jvm/*.sha256 lists those that Spark, the embedded broker and Connect bring as
file names alone, and no tool of theirs reads those.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tomllib
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
LOCKED = ("requirements.txt", "requirements-build.txt")
ACCEPTED = ROOT / "setup" / "accepted_vulnerabilities.toml"
TOOL = ROOT / ".waitreg" / "tools" / "pip-audit"
TOOL_VERSION = "pip-audit>=2.9,<3"
INSTALL_LIMIT_S = 180
ANSWER_LIMIT_S = 5
AUDIT_LIMIT_S = 120
SHOWN_NAMES = 5


class NotAudited(Exception):
    """Nothing was looked up; the message says why."""


@dataclass(frozen=True)
class Accepted:
    """A vulnerability that the gate lets pass up to a day, included, and why."""

    id: str
    package: str
    reason: str
    until: date


@dataclass(frozen=True)
class Verdict:
    """What the gate says, line by line; ``failed`` when a fix is needed."""

    lines: tuple[str, ...]
    failed: bool


def judge(report: Mapping[str, Any], accepted: Sequence[Accepted], today: date) -> Verdict:
    """Judge a report of pip-audit (its JSON format).

    :param today: an entry whose last day is before it accepts nothing.
    """
    packages = report["dependencies"]
    skipped = [package for package in packages if "skip_reason" in package]
    failures, passed, used = [], [], set()
    for package in packages:
        for found in package.get("vulns", ()):
            entry = _entry(package["name"], found, accepted)
            if entry is not None and today <= entry.until:
                used.add(entry)
                passed.append(f"accepted until {entry.until}: {entry.id} in {entry.package}, {entry.reason}")
            else:
                failures.append(_failure(package, found, entry))
    looked_up = len(packages) - len(skipped)
    unused = [f"{one.id} ({one.package})" for one in accepted if one not in used] if not skipped else []
    lines = [
        *failures,
        *passed,
        *(f"not found any more, remove it from {ACCEPTED.name}: {name}" for name in unused),
        *_not_audited(skipped),
        f"audited {looked_up} packages: {len(failures)} known vulnerabilities, {len(passed)} accepted",
    ]
    return Verdict(tuple(lines), bool(failures))


def read_accepted(text: str) -> tuple[Accepted, ...]:
    """Read the accepted vulnerabilities.

    :raises TypeError: an entry lacks id, package, reason or until, or has more than these.
    """
    return tuple(Accepted(**entry) for entry in tomllib.loads(text).get("accepted", ()))


def main() -> int:
    """Audit; the exit status is 1 for a vulnerability alone."""
    accepted = read_accepted(ACCEPTED.read_text("utf-8"))
    try:
        report = _report(_tool())
    except NotAudited as why:
        print(f"NOT AUDITED for known vulnerabilities: {why}")
        return 0
    verdict = judge(report, accepted, datetime.now(UTC).date())
    print("\n".join(verdict.lines))
    return 1 if verdict.failed else 0


def _entry(package: str, found: Mapping[str, Any], accepted: Iterable[Accepted]) -> Accepted | None:
    names = {found["id"], *found.get("aliases", ())}
    return next((one for one in accepted if one.package == package and one.id in names), None)


def _failure(package: Mapping[str, Any], found: Mapping[str, Any], entry: Accepted | None) -> str:
    fixed = ", ".join(found.get("fix_versions", ())) or "no version yet"
    overdue = f"; accepted until {entry.until}, which is over" if entry else ""
    return (
        f"VULNERABLE {package['name']} {package['version']}: {found['id']}, fixed in {fixed}{overdue}. Raise it "
        f"(pyproject.toml, `make lock`), or accept it for a while in {ACCEPTED.name}"
    )


def _not_audited(skipped: Sequence[Mapping[str, Any]]) -> list[str]:
    if not skipped:
        return []
    names = ", ".join(package["name"] for package in skipped[:SHOWN_NAMES])
    more = f" and {len(skipped) - SHOWN_NAMES} more" if len(skipped) > SHOWN_NAMES else ""
    return [f"NOT AUDITED, {len(skipped)} packages ({names}{more}): {skipped[0]['skip_reason']}"]


def _tool() -> Path:
    """Return pip-audit, installed where it isn't yet."""
    tool = TOOL / "bin" / "pip-audit"
    if _runs(tool):
        return tool
    try:
        subprocess.run([sys.executable, "-m", "venv", "--clear", str(TOOL)], check=True, capture_output=True)
        install = [str(TOOL / "bin" / "python"), "-m", "pip", "install", "--quiet", TOOL_VERSION]
        subprocess.run(install, check=True, capture_output=True, timeout=INSTALL_LIMIT_S)
    except (OSError, subprocess.SubprocessError) as error:
        raise NotAudited(f"pip-audit can't be installed here ({_last_line(error)})") from error
    return tool


def _runs(tool: Path) -> bool:
    try:
        return subprocess.run([str(tool), "--version"], check=False, capture_output=True).returncode == 0
    except OSError:
        return False


def _report(tool: Path) -> dict[str, Any]:
    files = [part for name in LOCKED for part in ("-r", str(ROOT / name))]
    quiet = ["--progress-spinner", "off", "--format", "json", "--timeout", str(ANSWER_LIMIT_S)]
    try:
        # Status 1 says that something was found, and comes with the report.
        done = subprocess.run(
            [str(tool), *files, "--require-hashes", "--disable-pip", *quiet],
            check=False,
            capture_output=True,
            text=True,
            timeout=AUDIT_LIMIT_S,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise NotAudited(f"pip-audit gave no answer ({_last_line(error)})") from error
    try:
        report: dict[str, Any] = json.loads(done.stdout)
    except ValueError as error:
        said = done.stderr.strip().splitlines() or ["it said nothing"]
        raise NotAudited(f"pip-audit gave no report ({said[-1]})") from error
    return report


def _last_line(error: Exception) -> str:
    said = getattr(error, "stderr", None) or b""
    text = said.decode(errors="replace") if isinstance(said, bytes) else str(said)
    return next(iter(reversed(text.strip().splitlines())), type(error).__name__)


if __name__ == "__main__":
    sys.exit(main())
