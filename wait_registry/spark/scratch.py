"""Spark's scratch folders: made when its context starts, and needed for as long as the context lives."""

from __future__ import annotations

import re
from functools import lru_cache
from pathlib import Path
from typing import Final

from pyspark import SparkContext

from wait_registry.spark import SparkGone

# What Spark names its folders by, on the driver's host and on those of executors.
_LOST_FILE: Final = re.compile(
    r"(?:NoSuchFileException|FileNotFoundException): "
    r"(/\S*/(?:blockmgr|executor|pyspark|spark|userFiles)-[0-9a-f]{8}-\S+)"
)


def require_scratch(context: SparkContext, said: str = "") -> None:
    """Raise `SparkGone` if scratch folders were removed, or code couldn't be loaded: Spark never makes up for either.

    Args:
        context: Spark's, which works; its driver runs on this host.
        said: the text of an error of Spark's. It may name a file in a folder of an executor, or in one that is only
            partly removed.
    """
    lost = next((folder for folder in scratch_folders(context) if not Path(folder).is_dir()), None)
    if lost is None and (found := _LOST_FILE.search(said)) is not None:
        lost = found[1]
    if "NoClassDefFoundError" in said or "UnsatisfiedLinkError" in said:
        raise SparkGone(
            "Spark's JVM couldn't load a library from its temporary folder, and doesn't try again: the folder was "
            "full, or is mounted noexec. Start this command again; if it is mounted noexec, set "
            "JAVA_TOOL_OPTIONS=-Djava.io.tmpdir=FOLDER in the environment first"
        )
    if lost is not None:
        raise SparkGone(
            f"Spark's scratch folder {lost} is gone, removed perhaps with other old temporary files. Set "
            "spark.local.dir in [spark.conf] to a folder that is not cleaned up, and start this command again"
        )


@lru_cache(maxsize=1)
def scratch_folders(context: SparkContext) -> tuple[str, ...]:
    """Return the folders in which the driver keeps blocks, the files that tasks fetch, and what Python hands to it."""
    environment = context._jsc.sc().env()
    blocks = environment.blockManager().diskBlockManager().localDirs()
    return (*(str(folder) for folder in blocks), str(environment.driverTmpDir().get()), str(context._temp_dir))
