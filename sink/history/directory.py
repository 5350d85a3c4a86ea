"""The folder of the history: Parquet files by day and group, and how far the wait topic is in them.

    day=2026-11-24/group=payments/part-00000042.parquet
    _state/position.arrow     registrations that were open at the last commit; its metadata has the number of the last
                              part, the topic and the next offset of each partition

Renaming `position.arrow` is the commit, and the first position is written before the first part. So a run that broke
off leaves one part more than the position says: the next run removes it before it reads the same entries again. Readers
skip `_state`, whose name begins with an underscore.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import logging
import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import IO, Any, Final
from urllib.parse import quote

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from sink.history.settled import ENTRIES
from wait_registry.errors import ConfigurationError, FencedError, TransientError
from wait_registry.kafka.cluster import TopicIdentity

log = logging.getLogger(__name__)

# What Spark, pyarrow and others read as null in the name of a folder.
NO_GROUP: Final = "__HIVE_DEFAULT_PARTITION__"
# Names of files have up to 255 bytes; the column has the whole name of the group.
MAX_NAME: Final = 200
# They distinguish longer names with the same beginning.
DIGEST_CHARACTERS: Final = 16
FORMAT: Final = 1
METADATA: Final = b"wait_registry"


@dataclass(frozen=True, slots=True)
class Progress:
    """How far the wait topic is in the history.

    Attributes:
        part: number of the last part, from 1; 0 before the first one.
        topic, topic_id: identity of the wait topic.
        positions: the next offset of each partition.
        opened: entries of all registrations that are open there.
    """

    part: int
    topic: str
    topic_id: str
    positions: Mapping[int, int]
    opened: pa.Table


class HistoryDirectory:
    """Reads and writes the folder; use it within `locked`."""

    def __init__(self, path: Path) -> None:
        """Name the folder; nothing is read or created yet."""
        self.path = path
        self._position = path / "_state" / "position.arrow"

    @contextmanager
    def locked(self) -> Iterator[None]:
        """Create the folder if it is missing, and keep other runs out of it; the lock ends with the process.

        Raises:
            FencedError: another run is at work.
            ConfigurationError: the folder can't be created or written to.
        """
        try:
            self._position.parent.mkdir(parents=True, exist_ok=True)
            with self._position.with_name("lock").open("w") as file:
                _lock(file, self.path)
                yield
        except OSError as error:
            if error.filename is None:
                raise  # of a connection, not of the folder
            raise ConfigurationError(
                f"can't write to {error.filename}: {error.strerror}. Make {self.path} a folder that this user may "
                "create and write to, or name another one"
            ) from None

    def progress(self) -> Progress | None:
        """Return how far the history is, None in a new folder; the leftover of a run that broke off is removed.

        Raises:
            ConfigurationError: the folder is of another version, damaged, or its position is older than its parts.
        """
        found = self._read() if self._position.exists() else None
        self._remove_leftovers(-1 if found is None else found.part)
        return found

    def begin(self, topic: str, topic_id: str, positions: Mapping[int, int]) -> Progress:
        """Write the position of a history without parts, which begins at these offsets, and return it."""
        start = Progress(0, topic, topic_id, positions, ENTRIES.empty_table())
        _write(self._position, partial(_write_progress, start))
        return start

    def commit(self, progress: Progress, rows: pa.Table) -> int:
        """Write a part, and return the number of its files.

        Args:
            progress: how far the history is with these rows; its part is the next one.
            rows: what was settled since the last commit.
        """
        files = 0
        for folder, table in self._by_folder(rows):
            part = folder / f"part-{progress.part:08d}.parquet"
            _write(part, partial(pq.write_table, table, compression="zstd"))
            files += 1
        _write(self._position, partial(_write_progress, progress))
        return files

    def _read(self) -> Progress:
        try:
            with pa.ipc.open_file(self._position) as reader:
                fields = json.loads(reader.schema.metadata[METADATA])
                if fields["format"] != FORMAT:
                    raise ConfigurationError(
                        f"{self._position} is of format {fields['format']}: use the version that wrote it"
                    )
                positions = {int(partition): int(offset) for partition, offset in fields["positions"].items()}
                opened = reader.read_all().cast(ENTRIES)
            return Progress(int(fields["part"]), str(fields["topic"]), str(fields["topic_id"]), positions, opened)
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise ConfigurationError(
                f"{self._position} can't be read ({error}): restore it, or start a history in another folder"
            ) from None

    def _remove_leftovers(self, last: int) -> None:
        """Remove what a run left that broke off before its commit; `last` is -1 without a position."""
        parts = {file: int(file.stem[-8:]) for file in self.path.glob("day=*/group=*/*part-????????.parquet")}
        for file, part in parts.items():
            if part > last + 1:
                seen = "is missing" if last < 0 else f"ends with part {last}"
                raise ConfigurationError(
                    f"{self._position} {seen}, but {file} exists. Restore the newest _state, or keep this folder and "
                    "start a history in another folder"
                )
        for file, part in parts.items():
            if part > last or file.name.startswith("."):
                log.info("removing %s, of a run that broke off", file)
                file.unlink()

    def _by_folder(self, rows: pa.Table) -> Iterator[tuple[Path, pa.Table]]:
        days = pc.strftime(rows["settled_at"], "%Y-%m-%d").combine_chunks()
        groups = rows["consumer_group"].combine_chunks()
        for place in pa.table({"day": days, "group": groups}).group_by(["day", "group"]).aggregate([]).to_pylist():
            chosen = rows.filter(pc.and_(_equal(days, place["day"]), _equal(groups, place["group"])))
            folder = self.path / f"day={place['day'] or NO_GROUP}" / f"group={_folder_name(place['group'])}"
            yield folder, chosen.sort_by([("settled_at", "ascending")])


def require_same_topic(progress: Progress, seen: TopicIdentity) -> None:
    """Raise ConfigurationError unless the history is of this topic."""
    if (progress.topic, progress.topic_id) != (seen.topic, seen.topic_id):
        raise ConfigurationError(
            f"the history is of topic {progress.topic} with the ID {progress.topic_id}, not of {seen.topic} with the "
            f"ID {seen.topic_id}: set wait.topic, or start a history in another folder if the topic was recreated"
        )


def _equal(values: pa.Array, value: str | None) -> pa.Array:
    return pc.is_null(values) if value is None else pc.fill_null(pc.equal(values, value), False)


def _folder_name(group: str | None) -> str:
    if group is None:
        return NO_GROUP
    name = quote(group, safe="")
    if len(name) <= MAX_NAME:
        return name
    begin = name[:MAX_NAME]
    # Not in the middle of an escape.
    begin = begin[: begin.rfind("%")] if "%" in begin[-2:] else begin
    return f"{begin}-{hashlib.sha256(group.encode()).hexdigest()[:DIGEST_CHARACTERS]}"


def _lock(file: IO[Any], path: Path) -> None:
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise FencedError(f"another run writes the history in {path}: wait until it has ended") from None


def _write(path: Path, write: Callable[[IO[bytes]], object]) -> None:
    """Write a file under another name, and rename it when it is on the disk, so that readers see all of it or none.

    Raises:
        TransientError: the disk is full, or broken.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        hidden = path.with_name(f".{path.name}")
        with hidden.open("wb") as file:
            write(file)
            file.flush()
            os.fsync(file.fileno())
        hidden.replace(path)
        folder = os.open(path.parent, os.O_RDONLY)
        try:
            os.fsync(folder)
        finally:
            os.close(folder)
    except OSError as error:
        if error.filename is not None:
            raise
        raise TransientError(f"{path} can't be written: {error}. Make room, then run this again") from error


def _write_progress(progress: Progress, file: IO[bytes]) -> None:
    fields = {
        "format": FORMAT,
        "part": progress.part,
        "topic": progress.topic,
        "topic_id": progress.topic_id,
        "positions": progress.positions,
    }
    opened = progress.opened.replace_schema_metadata({METADATA: json.dumps(fields)})
    with pa.ipc.new_file(file, opened.schema, options=pa.ipc.IpcWriteOptions(compression="zstd")) as writer:
        writer.write_table(opened)
