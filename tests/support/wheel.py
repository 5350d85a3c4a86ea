"""The product as its users install it: a wheel in an environment that has nothing else of this checkout."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).parents[2]


def build_wheel(folder: Path) -> Path:
    """Build the wheel of what Git tracks, in a tree of its own: setuptools takes what an older build/ left."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True)
    for path in map(Path, listed.stdout.splitlines()):
        if path.parts[0] != "tests":
            (folder / "tree" / path).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(ROOT / path, folder / "tree" / path)
    options = ("-q", "--no-deps", "--no-build-isolation", "-w", str(folder))
    _run(sys.executable, "-m", "pip", "wheel", *options, str(folder / "tree"))
    [wheel] = folder.glob("*.whl")
    return wheel


def install_wheel(wheel: Path, folder: Path) -> Path:
    """Install a wheel into a new environment, and return its Python. What the wheel depends on is the tests' own."""
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    _run(sys.executable, "-m", "pip", "--python", str(python), "install", "-q", "--no-deps", "--no-index", str(wheel))
    [packages] = folder.glob("lib/python*/site-packages")
    # A .pth file that is found by way of this one is not read, so the checkout that it installs stays out.
    (packages / "dependencies.pth").write_text(sysconfig.get_path("purelib"), "utf-8")
    return python


def _run(*command: str) -> None:
    # PYTHONPATH has the checkout, where `make lock` leaves metadata: pip would take the product for installed.
    variables = {name: value for name, value in os.environ.items() if name != "PYTHONPATH"}
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False, timeout=240)
    assert done.returncode == 0, done.stderr
