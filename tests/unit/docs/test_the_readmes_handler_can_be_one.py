"""The README's handler is one: the processor would take it as it stands."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from processor.handlers.loading import load_handler
from processor.handlers.python import ContextualHandler
from tests.evidence import ROOT
from tests.support.pages import read
from wait_registry.settings.processor import ProcessorSettings


def test_the_processor_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    page = read(ROOT / "README.md")
    (code,) = [block for block in page.blocks if "class ChargeOrder" in block]
    module = ModuleType("orders_of_the_readme")
    exec(compile(code, "README.md", "exec"), module.__dict__)
    monkeypatch.setitem(sys.modules, module.__name__, module)
    handler = load_handler(ProcessorSettings(handler=f"{module.__name__}:ChargeOrder"))
    assert isinstance(handler, ContextualHandler)
    assert "export WAITREG_PROCESSOR__HANDLER=orders:ChargeOrder" in read(ROOT / "docs" / "first-handler.md").text
