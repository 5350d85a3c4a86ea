"""Prints, as JSON, what an image of ours holds: who it runs as, whether there is a Java, which packages Python finds.

Part of `make compose-test`; runs in the image. No arguments.
"""

from __future__ import annotations

import importlib.util
import json
import os
from collections.abc import Iterator

NOT_OF_THE_IMAGE = {"proc", "sys", "dev"}


def files() -> Iterator[str]:
    """Return the names of all files of the image."""
    for folder, folders, names in os.walk("/"):
        if folder == "/":
            folders[:] = [name for name in folders if name not in NOT_OF_THE_IMAGE]
        yield from names


if __name__ == "__main__":
    found = {package: importlib.util.find_spec(package) is not None for package in ("pyspark", "psycopg")}
    print(json.dumps({"user": os.getuid(), "java": "libjvm.so" in set(files()), **found}))
