"""The Spark session of sink, sweeper and rebuild."""

from __future__ import annotations

import logging
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping
from concurrent.futures import Future
from contextlib import contextmanager, suppress
from pathlib import Path
from traceback import walk_tb

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError, Py4JJavaError
from pyspark import SparkConf, SparkContext
from pyspark.java_gateway import launch_gateway
from pyspark.sql import SparkSession

from wait_registry.errors import ConfigurationError, TransientError, WaitRegistryError
from wait_registry.java.jars import jar_directory, java_command
from wait_registry.settings.masking import sounds_secret
from wait_registry.settings.runtime import SparkSettings
from wait_registry.settings.tree import Settings
from wait_registry.spark import SparkGone, StartStopped, jvm_gone
from wait_registry.spark.scratch import require_scratch

log = logging.getLogger(__name__)

# A batch that is larger than this part of the heap fails as a job, with a message, instead of ending the JVM.
RESULT_SHARE_OF_HEAP = 2
# A cancelled read's job is gone, and the group ID, which many reads share, is wanted.
QUIET_LOGGERS = (
    "org.apache.spark.scheduler.DAGScheduler",
    "org.apache.spark.sql.kafka010.KafkaSourceProvider",
)
# Where Spark is one process nothing of it needs to be reached from outside, nor the host's name to resolve.
LOOPBACK = {"spark.driver.host": "127.0.0.1", "spark.driver.bindAddress": "127.0.0.1"}
REDACTED = "(?i)secret|password|passwd|token|credential|jaas|access[.]?key|private|[.]key$|ssl[.].*(key|trust)store"
# A connection that breaks is noticed before the process behind it is seen to have ended.
END_SEEN_S = 5.0
START_POLL_S = 0.1
# With which Spark ends its JVM if it can make no scratch folder.
NO_FOLDER_STATUS = 53
ROOM = "See that spark.local.dir and the temporary folder have room and can be written to"
LOCAL_MASTER = re.compile(r"^local(\[(\*|\d+)\])?$")


@contextmanager
def session_of(
    settings: Settings, app_name: str, shared: SparkSession | None, stop: threading.Event | None = None
) -> Iterator[SparkSession]:
    """Yield a shared session, or without one a session of this block's own; arguments and errors as `spark_session`."""
    session = shared or spark_session(settings, app_name, stop)
    try:
        yield session
    finally:
        if shared is None:
            stop_session(session)


def spark_session(settings: Settings, app_name: str, stop: threading.Event | None = None) -> SparkSession:
    """Return the process's Spark session, started as ``settings.spark`` says.

    Any master may be set; by default Spark runs within this process's child JVM, which ends with this process.

    Args:
        settings: of the service.
        app_name: what Spark calls it.
        stop: set to give the start up.

    Raises:
        ConfigurationError: Java or the jars are not there or not as they should be, or Spark refuses a setting.
        TransientError: the JVM ends before it answers, or the host refuses something: the message says what.
        StartStopped: ``stop`` was set first; end the process, and with it the JVM.
    """
    # In a thread of its own: a JVM that starts takes its time, and answers no request to end. And in the main thread,
    # pyspark would claim SIGINT, for a handler that waits for the JVM.
    started: Future[SparkSession] = Future()
    thread = threading.Thread(target=_start, args=(started, settings, app_name), name="spark-start", daemon=True)
    thread.start()
    while thread.is_alive():
        if stop is not None and stop.is_set():
            raise StartStopped("Spark was still starting when this process was asked to stop")
        thread.join(START_POLL_S)
    return started.result()


def _start(started: Future[SparkSession], settings: Settings, app_name: str) -> None:
    try:
        started.set_result(_started(settings, app_name))
    except BaseException as error:  # noqa: BLE001 - handed to the thread that waits, which raises it
        started.set_exception(error)


def _started(settings: Settings, app_name: str) -> SparkSession:
    java_command()  # says what is wrong with Java in a sentence; what Spark says of it is a page
    os.environ.setdefault("PYSPARK_PYTHON", sys.executable)
    if LOCAL_MASTER.match(settings.spark.master):
        os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("PYSPARK_DRIVER_PYTHON", sys.executable)
    jars = sorted(jar_directory("spark", settings.spark.jars_dir).glob("*.jar"))
    conf = session_conf(settings.spark, jars)
    builder = SparkSession.builder.appName(app_name)
    for name, value in conf.items():
        builder = builder.config(name, value)
    try:
        with files_of_ones_own():
            _launch(conf)
            session = builder.getOrCreate()
            _quieten(session)
    except Py4JJavaError as error:  # it answers, and says what it doesn't like
        raise _refused(error, settings.spark.master) from None  # Spark has just logged it with its whole stack
    except (RuntimeError, Py4JError, OSError, EOFError) as error:
        raise _ended_early(error, settings.spark.driver_memory) from error
    return session


def _launch(conf: Mapping[str, str]) -> None:
    """Start the JVM in a process group of its own, without secrets, which its command line would show.

    A signal to our own group, which ends us in order, doesn't take it away from us meanwhile. It still ends when we do,
    however that is: its standard input is a pipe from us. What is secret the session gets later.
    """
    if SparkContext._gateway is None:
        shown = SparkConf().setAll([(name, value) for name, value in conf.items() if not sounds_secret(name)])
        SparkContext._ensure_initialized(gateway=launch_gateway(shown, {"process_group": 0}))


def _ended_early(error: Exception, driver_memory: str) -> TransientError:
    status = _exit_status(error)
    if status == NO_FOLDER_STATUS:
        return TransientError(f"Spark's JVM could make no folder (exit status {status}). {ROOM}, then start again.")
    if status is None:
        seen = f"{type(error).__name__}: {error}"
    elif status < 0:
        seen = f"signal {-status}: {signal.strsignal(-status)}"
    else:
        seen = f"exit status {status}, with what it says above"
    return TransientError(
        f"Spark's JVM ended before it answered ({seen}). Where memory is short the kernel kills it, or it finds no "
        f"room: it needs spark.driver_memory={driver_memory} and about half a gigabyte more, of the host's and of the "
        "container's limit. Give it that, or see to what it says, then start again."
    )


def _refused(error: Py4JJavaError, master: str) -> WaitRegistryError:
    """Translate what Spark says of its start: a value that it can't use, or what the host or a cluster refuses it."""
    thrown = error.java_exception
    said = f"Spark's JVM has started, and Spark refuses to: {thrown.toString()}"
    if is_instance_of(SparkContext._gateway, thrown, "java.io.IOException"):
        return TransientError(f"{said}. {ROOM}, then start again")
    bad_value = is_instance_of(SparkContext._gateway, thrown, "java.lang.IllegalArgumentException")
    if bad_value or master.startswith("local"):
        return ConfigurationError(f"{said}. Correct spark.master, spark.driver_memory or spark.conf")
    return TransientError(f"{said}. See to that, or correct spark.conf, then start again")


def _exit_status(error: Exception) -> int | None:
    """Return how the JVM ended (negative: the signal), None if that is unknown."""
    gateway = SparkContext._gateway
    # Until the JVM has answered once, pyspark keeps the process to itself.
    places = [frame.f_locals.get("proc") for frame, _ in walk_tb(error.__traceback__)]
    for process in (getattr(gateway, "proc", None), *places):
        if isinstance(process, subprocess.Popen):
            with suppress(subprocess.TimeoutExpired):
                return int(process.wait(END_SEEN_S))
    return None


@contextmanager
def files_of_ones_own() -> Iterator[None]:
    """Have processes that are started within this make files that no other user may read: Spark spills records."""
    before = os.umask(0o077)
    try:
        yield
    finally:
        os.umask(before)


def require_spark(session: SparkSession, failed: Exception | None = None) -> None:
    """Raise `SparkGone` unless the session's JVM answers, and its context and scratch folders are still there.

    ``failed`` is what Spark has just raised.
    """
    try:
        context = session.sparkContext
        if context._jsc.sc().isStopped():
            raise SparkGone("Spark has stopped its context; start this service again")
        require_scratch(context, "" if failed is None else str(failed))
    except (Py4JError, OSError, EOFError, AttributeError) as error:
        raise jvm_gone(error) from error


def stop_session(session: SparkSession) -> None:
    """End a session; one whose JVM is gone has ended already, which is only logged: it must not hide why."""
    try:
        session.stop()
    except (Py4JError, OSError, EOFError) as error:
        log.warning("Spark could not be stopped, its JVM is gone: %s", error)


def _quieten(session: SparkSession) -> None:
    """Silence warnings of Spark's that a reader can't act on."""
    configurator = session.sparkContext._jvm.org.apache.logging.log4j.core.config.Configurator
    levels = session.sparkContext._jvm.org.apache.logging.log4j.Level
    for logger in QUIET_LOGGERS:
        configurator.setLevel(logger, levels.ERROR)


def session_conf(settings: SparkSettings, jars: list[Path]) -> Mapping[str, str]:
    """Return the session's Spark properties; the user's own ``spark.conf`` comes last and wins."""
    return {
        "spark.master": failing_fast(settings.master),
        "spark.jars": ",".join(str(jar) for jar in jars),
        "spark.driver.memory": settings.driver_memory,
        "spark.driver.maxResultSize": result_limit(settings.driver_memory),
        "spark.driver.extraJavaOptions": java_options(settings.driver_memory),
        "spark.pyspark.python": sys.executable,
        "spark.pyspark.driver.python": sys.executable,
        "spark.task.maxFailures": "1",
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        # For a user who switches the UI on: Spark's own pattern doesn't know the names of Kafka's secrets.
        "spark.redaction.regex": REDACTED,
        "spark.log.level": "WARN",
        "spark.sql.session.timeZone": "UTC",
        "spark.sql.execution.arrow.pyspark.enabled": "true",
        "spark.sql.execution.arrow.maxRecordsPerBatch": "20000",
        "spark.sql.shuffle.partitions": "2",
        # Without "kafka": its first source makes every record a row of Java objects and back (docs/decisions/0022).
        "spark.sql.sources.useV1SourceList": "avro,csv,json,orc,parquet,text",
        # Consumers keep megabytes fetched ahead, per partition: let go soon of those that no read uses any more.
        "spark.kafka.consumer.cache.timeout": "30s",
        "spark.kafka.consumer.cache.evictorThreadRunInterval": "10s",
        "spark.kafka.consumer.fetchedData.cache.timeout": "30s",
        "spark.kafka.consumer.fetchedData.cache.evictorThreadRunInterval": "10s",
        **(LOOPBACK if LOCAL_MASTER.match(settings.master) else {}),
        **settings.conf,
    }


def failing_fast(master: str) -> str:
    """Return ``master`` with task retries off where Spark runs in one process, which ignores spark.task.maxFailures."""
    match = LOCAL_MASTER.match(master)
    return f"local[{match.group(2) or 1},1]" if match else master


def java_options(driver_memory: str) -> str:
    """Return the options of the driver's JVM with a heap such as ``512m`` or ``2g``."""
    heap = _mebibytes(driver_memory)
    return " ".join(
        (
            # Out of memory leaves a JVM that answers and does nothing: better to end it and be restarted.
            "-XX:+ExitOnOutOfMemoryError",
            # Next to a heap of 512 MB it takes 150 MB less than G1, and less CPU time.
            "-XX:+UseSerialGC",
            # A heap that grows as it must, except for the young generation: 100 MB less of 512 (docs/decisions/0018).
            f"-Xms{heap * 3 // 8}m -Xmn{heap * 9 // 32}m -XX:SurvivorRatio=4",
            "-XX:MinHeapFreeRatio=20 -XX:MaxHeapFreeRatio=40",
            "-Djava.net.preferIPv4Stack=true",
        )
    )


def result_limit(driver_memory: str) -> str:
    """Return spark.driver.maxResultSize for a heap such as ``512m`` or ``2g``."""
    return f"{max(64, _mebibytes(driver_memory) // RESULT_SHARE_OF_HEAP)}m"


def _mebibytes(driver_memory: str) -> int:
    return int(driver_memory[:-1]) * (1024 if driver_memory[-1] == "g" else 1)
