"""The story that the tests of this folder look at, played once a run."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.security.secured_story import SecuredStory
from tests.support.secured_broker import SecuredBroker
from tests.support.secured_postgres import SecuredPostgres


@pytest.fixture(scope="session")
def story(
    secured: SecuredBroker, secured_postgres: SecuredPostgres, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[SecuredStory]:
    """Three services on a secured cluster, after everything has happened."""
    with SecuredStory(secured, secured_postgres, tmp_path_factory.mktemp("secured-story")) as played:
        played.play()
        yield played
