"""A folder that can't be used is named with the reason."""

from __future__ import annotations

from pathlib import Path

import pytest

from sink.history.directory import HistoryDirectory
from wait_registry.errors import ConfigurationError
from wait_registry.local.stack import EmbeddedStack


@pytest.mark.parametrize("path", ["/dev/null/x", "/proc/x"])
def test_a_folder_that_cannot_be_created_is_refused(path: str) -> None:
    with pytest.raises(ConfigurationError, match=rf"can't write to {path}.*: (Not a directory|No such file)"):
        EmbeddedStack(Path(path)).start()
    with (
        pytest.raises(ConfigurationError, match=rf"can't write to {path}.*: (Not a directory|No such file)"),
        HistoryDirectory(Path(path)).locked(),
    ):
        pass
