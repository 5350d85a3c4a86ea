"""Where Prometheus comes from: PATH first, then what was fetched before; without either and without apt, a sentence."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[3] / "setup" / "prometheus.sh"
WORKS = "#!/bin/sh\nexit 0\n"
BROKEN = "#!/bin/sh\nexit 126\n"


class Checkout:
    """A checkout with nothing but the script, on a machine with nothing but a shell."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.bin = folder / "bin"
        (folder / "setup").mkdir()
        self.bin.mkdir()
        shutil.copy(SCRIPT, folder / "setup")
        for tool in ("sh", "dirname"):
            path = shutil.which(tool)
            assert path is not None
            (self.bin / tool).symlink_to(path)

    def add(self, where: Path, script: str = WORKS) -> Path:
        where.mkdir(parents=True, exist_ok=True)
        for name in ("prometheus", "promtool"):
            (where / name).write_text(script)
            (where / name).chmod(0o755)
        return where

    def run(self) -> subprocess.CompletedProcess[str]:
        command = [str(self.bin / "sh"), str(self.folder / "setup" / SCRIPT.name)]
        return subprocess.run(command, env={"PATH": str(self.bin)}, capture_output=True, text=True, check=False)


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return Checkout(tmp_path)


@pytest.mark.parametrize("fetched", [False, True])
def test_programs_that_are_there_are_used_without_the_network(checkout: Checkout, fetched: bool) -> None:
    where = checkout.add(checkout.folder / ".waitreg" / "tools" if fetched else checkout.bin)
    done = checkout.run()
    assert (done.returncode, done.stdout) == (0, ".waitreg/tools\n" if fetched else f"{where}\n")


def test_programs_that_do_not_run_here_are_as_good_as_none(checkout: Checkout) -> None:
    checkout.add(checkout.folder / ".waitreg" / "tools", BROKEN)
    done = checkout.run()
    assert done.returncode == 2
    assert "install Prometheus 2.42 or newer" in done.stderr
