"""An example's folder, run as a user runs it: its waitreg.toml, its code, a processor process in it."""

from __future__ import annotations

import sys
import tomllib
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.integration.processor.wait_topic import Story, stories
from tests.support.command import run_waitreg
from tests.support.kafka_io import Outgoing, ReadRecord
from tests.support.naming import Names
from tests.support.topics import Topics
from wait_registry.settings.loading import load_settings
from wait_registry.settings.tree import Settings

ROOT = Path(__file__).parents[3]


class Example:
    """Runs one folder of `examples` with topics and a group of the test's own; nothing else in it is changed."""

    def __init__(self, topics: Topics, names: Names) -> None:
        self.python = sys.executable
        self.topics = topics
        self._names = names
        self._environment: dict[str, str] = {}
        self.settings = Settings()

    def run(self, folder: str, values: list[Outgoing], environment: Mapping[str, str]) -> None:
        """Publish the records and work them off in a processor process whose current directory is the folder."""
        place = ROOT / "examples" / folder
        self._environment = self._own_names(place) | dict(environment)
        self.settings = load_settings(config_file=place / "waitreg.toml", env=self._environment)
        self.topics.create_own(self.settings, input_partitions=2)
        self.topics.produce(self.settings.processor.topics[0], list(values))
        self.process(folder)

    def _own_names(self, place: Path) -> dict[str, str]:
        own = tomllib.loads((place / "waitreg.toml").read_text("utf-8"))
        return {
            "WAITREG_KAFKA__BOOTSTRAP_SERVERS": self.topics.bootstrap,
            "WAITREG_WAIT__TOPIC": self._names("wait"),
            "WAITREG_WAIT__REPLICATION_FACTOR": "1",
            "WAITREG_WAIT__MIN_INSYNC_REPLICAS": "1",
            "WAITREG_PROCESSOR__TOPICS": self._names(own["processor"]["topics"][0]),
            "WAITREG_PROCESSOR__GROUP": self._names(own["processor"]["group"]),
            "WAITREG_DEAD_LETTER__TOPIC": self._names("dlq"),
            "WAITREG_TELEMETRY__PORT": "0",
        }

    def process(self, folder: str) -> None:
        """Work off what is in the topics now, with the settings of the last run."""
        # The current directory comes first on the path, as it does for the installed command.
        variables = {"PYTHONDONTWRITEBYTECODE": "1", **self._environment}
        ended = run_waitreg(ROOT / "examples" / folder, "processor", "--once", variables=variables, python=self.python)
        assert ended.code == 0, ended.errors[-4000:]

    def stories(self) -> dict[bytes, Story]:
        """Return each record's history in the wait topic, by its key (which the tests choose to be unique)."""
        found = stories(self.topics.read(self.settings.wait.topic)).values()
        return {story.waits[0].header("ORIGINAL_KEY") or b"": story for story in found}

    def outcomes(self) -> dict[str, str]:
        return {key.decode(): outcome_of(story) for key, story in self.stories().items()}

    def wait_ids(self) -> dict[str, str]:
        return {key.decode(): (story.waits[0].key or b"").decode() for key, story in self.stories().items()}

    def dead_letters(self) -> dict[str, ReadRecord]:
        letters = self.topics.read(self.settings.dead_letter.topic)
        found = {(letter.key or b"").decode(): letter for letter in letters}
        assert len(found) == len(letters), "a dead letter a record"
        return found


def outcome_of(story: Story) -> str:
    """Return the one outcome of a record that is resolved."""
    assert story.resolved, f"{story.origin} is not resolved"
    (outcome,) = story.outcomes
    return outcome


@pytest.fixture
def example(topics: Topics, names: Names) -> Example:
    """An example whose topics and group are this test's own."""
    return Example(topics, names)
