"""What lets JVMs start quickly, where starts count for more than speed: in tests and chaos runs."""

from __future__ import annotations

from pathlib import Path

# Made by `make test`; see `class_archive`.
CLASS_ARCHIVE = Path(__file__).parents[2] / ".waitreg" / "spark-classes.jsa"
# No compiler that takes its time, no collector with threads of its own: 4 s of CPU instead of 10 for a sink,
# 5 instead of 7 to 11 for a broker.
COMPILER_AND_COLLECTOR = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"


def quick_jvm(*options: str) -> dict[str, str]:
    """Return environment variables for a process that starts Spark; ``options`` are further ones of its JVM.

    They leave spark.driver.extraJavaOptions alone, which is the product's.
    """
    # An archive that doesn't fit is ignored by the JVM; a test may look at what is printed, so without a word.
    archive = [f"-XX:SharedArchiveFile={CLASS_ARCHIVE}", "-Xlog:cds=off", "-Xlog:cds+dynamic=off"]
    submitted = (COMPILER_AND_COLLECTOR, *(archive if CLASS_ARCHIVE.exists() else ()), *options)
    return {"SPARK_SUBMIT_OPTS": " ".join(submitted), "SPARK_LAUNCHER_OPTS": COMPILER_AND_COLLECTOR}
