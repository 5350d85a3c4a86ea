"""A handler that can't be imported, called or opened: the line of the user's own code, and nothing consumed."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import SettingsFactory
from tests.support.command import run_waitreg
from tests.support.committed_offsets import committed
from tests.support.topics import Topics

MODULES = {
    "missing_import.py": "import json\n\nimport no_such_library\n\nasync def handle(record):\n    return None\n",
    "no_syntax.py": "async def handle(record)\n    return None\n",
    "no_environment.py": "import os\nURL = os.environ['SHOP_URL']\n\nasync def handle(record):\n    return None\n",
    "two_parameters.py": "async def handle(record, session):\n    return None\n",
    "no_handler.py": "handle = 'https://shop'\n",
    "never_opens.py": (
        "class Charge:\n"
        "    async def __aenter__(self):\n"
        "        raise ConnectionError('the pool is closed')\n\n"
        "    async def __aexit__(self, *of_no_interest):\n"
        "        return None\n\n"
        "    async def handle(self, record):\n"
        "        return None\n"
    ),
    "never_made.py": (
        "class Charge:\n"
        "    def __init__(self):\n"
        "        self.url = {}['SHOP_URL']\n\n"
        "    async def __aenter__(self):\n"
        "        return self\n\n"
        "    async def __aexit__(self, *of_no_interest):\n"
        "        return None\n\n"
        "    async def handle(self, record):\n"
        "        return None\n"
    ),
}
SAID = {
    "nowhere:handle": "No module named 'nowhere'. It is looked up in the current directory and on PYTHONPATH",
    "missing_import:handle": "No module named 'no_such_library' (missing_import.py:3: import no_such_library)",
    "no_syntax:handle": "(no_syntax.py:1: async def handle(record))",
    "no_environment:handle": "KeyError: 'SHOP_URL' (no_environment.py:2: URL = os.environ['SHOP_URL'])",
    "two_parameters:handle": "takes 2 parameters (record, session); expected one, the record: def handle(record)",
    "two_parameters:handel": "'two_parameters' has no 'handel'; it has: handle",
    "no_handler:handle": "is a str; expected an async def, a function or a class",
    "http://:8080/orders": "processor.handler is a URL that can't be called: host and port can't be read",
    "never_opens:Charge": (
        "opening it (__aenter__) failed: ConnectionError: the pool is closed "
        "(never_opens.py:3: raise ConnectionError('the pool is closed'))"
    ),
    "never_made:Charge": "KeyError: 'SHOP_URL' (never_made.py:3: self.url = {}['SHOP_URL'])",
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    for name, text in MODULES.items():
        (tmp_path / name).write_text(text)
    return tmp_path


@pytest.mark.parametrize("handler", [name for name in SAID if name != "never_opens:Charge"])
def test_a_handler_that_cannot_be_loaded_is_refused_first(handler: str, folder: Path) -> None:
    variables = {
        "WAITREG_PROCESSOR__GROUP": "shop",
        "WAITREG_PROCESSOR__TOPICS": "orders",
        "WAITREG_PROCESSOR__HANDLER": handler,
        "WAITREG_KAFKA__BOOTSTRAP_SERVERS": "127.0.0.1:1",
    }
    ended = run_waitreg(folder, "processor", variables=variables)
    assert ended.code == 2, ended.errors
    assert SAID[handler] in ended.errors
    assert "Traceback" not in ended.errors


def test_a_handler_that_cannot_be_opened_ends_the_processor_first(
    prepared: SettingsFactory, topics: Topics, folder: Path
) -> None:
    settings = prepared({"processor.handler": "never_opens:Charge"}, 1)
    topics.produce(settings.processor.topics[0], [b"value"])
    ended = run_waitreg(folder, "processor", settings=settings)
    assert ended.code == 2, ended.errors
    assert SAID["never_opens:Charge"] in ended.errors
    assert "Traceback" not in ended.errors
    assert topics.read(settings.wait.topic) == []
    assert committed(topics.bootstrap, settings.processor.group, settings.processor.topics[0], 1) == [-1]
