"""P6: Spark's checkpoint is scratch: deleted or torn, under a running sink or between two, the view stays exact."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.faults.a_sinks_log import SinksLog
from tests.integration.sink.conftest import StartSink
from tests.support.database import Database
from tests.support.settings import with_broker
from tests.support.tcp_proxy import FETCH, Fate, KafkaProxy
from tests.support.topics import Topics
from tests.support.waiting import wait_until


def checkpoints(folder: Path) -> list[Path]:
    """Return the wait stream's checkpoints, of which a sink has one."""
    return sorted(folder.glob("waitreg-sink-wait-*"))


@pytest.mark.fault("F65")
def test_a_checkpoint_deleted_and_one_torn_in_mid_batch_and_one_left_behind(
    prepared: SettingsFactory, topics: Topics, database: Database, start_sink: StartSink, tmp_path: Path
) -> None:
    settings = prepared(
        {"sink.trigger_s": 0.1, "sink.restart_backoff_max_s": 0.2, "sink.checkpoint_dir": str(tmp_path)}
    )
    log, held = SinksLog(settings, topics, database), list[int]()
    with KafkaProxy(topics.bootstrap, lambda request: Fate.HOLD if request in held else Fate.PASS) as proxy:
        sink = start_sink(with_broker(settings, proxy.bootstrap_servers)).wait_ready()
        log.goes_on_and_is_shown("at first")

        [checkpoint] = checkpoints(tmp_path)
        shutil.rmtree(checkpoint)
        log.goes_on_and_is_shown("after the deletion")
        [checkpoint] = wait_until(lambda: checkpoints(tmp_path), what="the same one written anew, or another")

        held.append(FETCH)  # Spark has written where the batch ends, and nobody has read it yet
        log.go_on()
        assert proxy.held.wait(60), "no batch was begun"
        torn = [file for file in checkpoint.rglob("*") if file.is_file() and file.stat().st_size]
        assert checkpoint / "offsets" in {file.parent for file in torn}
        for file in torn:
            os.truncate(file, file.stat().st_size // 2)
        left = Path(shutil.copytree(checkpoint, f"{checkpoint}-left"))
        proxy.let_go()
        log.wait_shown("after the tear")
        assert not sink.ended
        sink.stop()

    log.go_on()
    assert start_sink(settings, once=True).wait_ended() is None
    log.wait_shown("after a start beside what was left behind")
    assert not left.exists(), "it was cleared away instead of read"
