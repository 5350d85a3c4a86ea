"""Fetches the jars with the Ivy inside pyspark, and accepts only files with the committed sums."""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.resources.abc import Traversable
from importlib.util import find_spec
from pathlib import Path
from typing import cast

from wait_registry.errors import ConfigurationError
from wait_registry.java.jars import (
    JAR_KINDS,
    JarKind,
    committed_sums,
    jar_directory,
    jar_lists,
    jars_home,
    java_command,
    verify_jars,
)

RETRIEVE_PATTERN = "[conf]/[artifact]-[revision](-[classifier]).[ext]"


def fetch_jars(home: Path, kinds: Sequence[str] = JAR_KINDS, lists: Traversable | None = None) -> list[str]:
    """Fetch the jars of each kind whose folder doesn't hold exactly the committed jars.

    Args:
        home: folder with one folder per kind.
        kinds: the kinds wanted.
        lists: the folder with ivy.xml and the sums of each kind; `jvm.jar_lists` by default.

    Returns:
        The kinds that were fetched; if none, the network isn't used.

    Raises:
        ConfigurationError: Ivy can't fetch them, or a fetched jar has another SHA-256 than the committed one.
    """
    home.mkdir(parents=True, exist_ok=True)
    with _one_at_a_time(home):
        listed = lists or jar_lists()
        sums = {kind: committed_sums(kind, listed) for kind in kinds}
        wanted = {kind: sums[kind] for kind in kinds if not _is_verified(home / kind, sums[kind])}
        if wanted:
            scratch = Path(tempfile.mkdtemp(prefix=".fetching-", dir=home))
            try:
                _run_ivy(wanted, scratch, listed)
                _put_in_place(wanted, scratch, home)
            finally:
                shutil.rmtree(scratch, ignore_errors=True)
        return list(wanted)


def ivy_command(kinds: Iterable[str], target: Path, lists: Traversable) -> list[str]:
    """Return the Ivy call; mirrors come from $IVY_SETTINGS or ~/.ivy2/ivysettings.xml, proxies from $JAVA_TOOL_OPTIONS.

    Raises:
        ConfigurationError: no usable Java, or no pyspark with an Ivy in it.
    """
    settings = Path(os.environ.get("IVY_SETTINGS") or Path.home() / ".ivy2" / "ivysettings.xml")
    return [
        *(java_command(), "-jar", str(_ivy_jar())),
        *(("-settings", str(settings)) if settings.is_file() else ()),
        *("-ivy", str(lists.joinpath("ivy.xml")), "-retrieve", f"{target}/{RETRIEVE_PATTERN}"),
        *("-types", "jar", "bundle", "-confs", *kinds),
    ]


def _ivy_jar() -> Path:
    spec = find_spec("pyspark")
    jars = sorted(Path(spec.origin).parent.glob("jars/ivy-*.jar")) if spec is not None and spec.origin else []
    if not jars:
        raise ConfigurationError("fetching jars needs the Ivy inside pyspark: pip install 'wait-registry[sink]'")
    return jars[-1]


def _is_verified(directory: Path, sums: Mapping[str, str]) -> bool:
    try:
        verify_jars(directory, sums)
    except ConfigurationError as problem:
        print(f"jars: {problem.args[0].split(':')[0]}", flush=True)
        return False
    return True


def _run_ivy(kinds: Mapping[str, Mapping[str, str]], target: Path, lists: Traversable) -> None:
    total = sum(map(len, kinds.values()))
    print(f"jars: fetching {total} for {' and '.join(kinds)} (55 to 70 MB, a minute or two)", flush=True)
    ivy = subprocess.run(
        ivy_command(kinds, target, lists), check=False, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    )
    if ivy.returncode != 0:
        print(ivy.stdout, end="", flush=True)
        raise ConfigurationError(
            "Ivy could not fetch the jars (a proxy goes into JAVA_TOOL_OPTIONS, a mirror into ~/.ivy2/ivysettings.xml "
            "or $IVY_SETTINGS); see its output above"
        )


def _put_in_place(kinds: Mapping[str, Mapping[str, str]], scratch: Path, home: Path) -> None:
    for kind, sums in kinds.items():
        try:
            verify_jars(scratch / kind, sums)
        except ConfigurationError as problem:
            raise ConfigurationError(
                f"a fetched jar differs from its committed sum, nothing was changed; if ~/.ivy2/cache holds a damaged "
                f"copy, remove it: {problem}"
            ) from None
    for kind in kinds:
        # Two renames, so that the folder is either the old one or the new one.
        if (home / kind).exists():
            (home / kind).rename(scratch / f"{kind}.old")
        (scratch / kind).rename(home / kind)


@contextmanager
def _one_at_a_time(home: Path) -> Iterator[None]:
    with (home / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def main(action: str, kinds: Sequence[JarKind]) -> int:
    """Run `fetch` (download missing or changed jars) or `verify` for some kinds of jars; returns 0.

    Raises:
        ConfigurationError: a jar differs from its committed sum, or can't be fetched.
    """
    if action == "fetch":
        fetch_jars(jars_home(), kinds or JAR_KINDS)
    for kind in kinds or JAR_KINDS:
        print(f"jars: {len(committed_sums(kind))} verified in {jar_directory(kind)}")
    return 0


if __name__ == "__main__":
    try:
        sys.exit(main(sys.argv[1], cast("Sequence[JarKind]", sys.argv[2:])))
    except ConfigurationError as problem:
        sys.exit(f"jars: {problem}")
