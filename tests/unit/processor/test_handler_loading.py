"""From ``processor.handler`` to a handler, and what is said when it can't be one."""

from __future__ import annotations

import asyncio
import sys
import types
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from processor.handlers.grpc import GrpcHandler
from processor.handlers.http import HttpHandler
from processor.handlers.loading import load_handler
from processor.handlers.open_handler import OpenHandler
from processor.handlers.python import AsynchronousHandler, PlainFunctionHandler
from tests.unit.processor.parts import RECORD
from wait_registry.errors import ConfigurationError
from wait_registry.handler import Record
from wait_registry.settings.processor import ProcessorSettings


class Opened:
    def __init__(self) -> None:
        self.story = ["made"]

    async def __aenter__(self) -> Opened:
        self.story.append("entered")
        return self

    async def __aexit__(self, *_: object) -> None:
        self.story.append("left")

    async def handle(self, record: Record) -> None:
        self.story.append("called")


class Plain(Opened):
    def handle(self, record: Record) -> None:  # type: ignore[override]
        self.story.append("called")


class CallableObject:
    async def __call__(self, record: Record) -> None: ...


async def coroutine_function(record: Record) -> None: ...
def plain_function(record: Record, *, optional: int = 1) -> None: ...
def two(record: Record, other: Any) -> None: ...
def none_at_all() -> None: ...
def keyword_only(record: Record, *, needed: int) -> None: ...


class NotAContext:
    async def handle(self, record: Record) -> None: ...


class WantsArguments(Opened):
    def __init__(self, url: str) -> None:
        super().__init__()


def generator(record: Record) -> Iterator[None]:
    yield


class Exits(Opened):
    def __init__(self) -> None:
        raise SystemExit


class Yields(Opened):
    async def handle(self, record: Record) -> Any:
        yield


class HandleTakesTwo(Opened):
    async def handle(self, record: Record, other: object) -> None: ...  # type: ignore[override]


@pytest.fixture(autouse=True)
def module() -> Iterator[None]:
    """Make this module importable under a plain name."""
    found = types.ModuleType("handlers_of_a_user")
    found.__dict__.update(globals(), value=42, instance=CallableObject(), partly=partial(CallableObject()))
    sys.modules["handlers_of_a_user"] = found
    yield
    del sys.modules["handlers_of_a_user"]


def load(name: str) -> OpenHandler:
    return load_handler(ProcessorSettings(handler=name, max_in_flight=2))


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        ("handlers_of_a_user:coroutine_function", AsynchronousHandler),
        ("handlers_of_a_user:instance", AsynchronousHandler),
        ("handlers_of_a_user:partly", AsynchronousHandler),
        ("handlers_of_a_user:plain_function", PlainFunctionHandler),
        ("http://shop/orders", HttpHandler),
        ("http://shop.example.:8080", HttpHandler),
        ("https://user:p%40ss@shop:8443/orders?dry=1", HttpHandler),
        ("http://10.0.0.1/", HttpHandler),
        ("http://[::1]:8080/", HttpHandler),
        ("http://[fe80::1%25eth0]/orders", HttpHandler),
        ("http://orders_service/", HttpHandler),
        ("http://bücher.example/orders", HttpHandler),
        ("grpc://shop:50051", GrpcHandler),
        ("grpcs://10.0.0.1:443", GrpcHandler),
        ("grpc://[::1]:50051", GrpcHandler),
        ("grpc://bücher.example:50051", GrpcHandler),
    ],
)
def test_the_kind_of_handler_follows_from_what_is_found(name: str, kind: type[Any]) -> None:
    assert isinstance(load(name), kind)


@pytest.mark.parametrize("name", ["Opened", "Plain"])
def test_a_handler_class_is_entered_and_left_once(name: str) -> None:
    async def main() -> list[str]:
        handler = load(f"handlers_of_a_user:{name}")
        await handler.open()
        assert (handler.slots is None) == (name == "Opened")
        if handler.slots is not None:
            await handler.slots.acquire()
        await handler.call(RECORD)
        await handler.close()
        story: list[str] = handler.instance.story  # type: ignore[attr-defined]
        return story

    assert asyncio.run(main()) == ["made", "entered", "called", "left"]


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("processor:handle", "'processor' is the name of a package of wait-registry. Fix: rename your module"),
        ("waitreg.orders:handle", "for instance to 'my_waitreg.orders'"),
        ("", r"processor.handler is ''; expected 'module:name'"),
        ("just_a_name", r"expected 'module:name'"),
        ("no_such_module_at_all:x", r"importing 'no_such_module_at_all' failed: ModuleNotFoundError.*PYTHONPATH"),
        ("handlers_of_a_user:plain_functoin", r"has no 'plain_functoin'; it has: .*"),
        ("handlers_of_a_user:value", r"is a int; expected an async def, a function or a class"),
        ("handlers_of_a_user:two", r"takes 2 parameters \(record, other\); expected one, the record"),
        ("handlers_of_a_user:none_at_all", r"takes 0 parameters \(none\); expected one, the record"),
        ("handlers_of_a_user:keyword_only", r"takes 2 parameters \(record, needed\); expected one"),
        ("handlers_of_a_user:NotAContext", r"is a class without __aenter__, __aexit__;"),
        ("handlers_of_a_user:WantsArguments", r"can't be made without arguments: .*url"),
        ("handlers_of_a_user:HandleTakesTwo", r"HandleTakesTwo.handle' takes 2 parameters"),
        ("handlers_of_a_user:generator", r"generator' is a generator function, .* without yield"),
        ("handlers_of_a_user:Exits", r"can't be made without arguments: SystemExit"),
        ("handlers_of_a_user:Yields", r"Yields.handle' is a generator function"),
    ],
)
def test_what_can_not_be_a_handler_is_refused_with_what_was_seen(name: str, said: str) -> None:
    with pytest.raises(ConfigurationError, match=said):
        load(name)


@pytest.mark.guarantee("P8.8")
@pytest.mark.parametrize(
    ("url", "said"),
    [
        ("http://:8080/orders", "host and port can't be read"),
        ("http://", "it names no host"),
        ("https:///orders", "it names no host"),
        ("http://shop:80800/orders", "host and port can't be read"),
        ("http://shop:port/orders", "host and port can't be read"),
        ("http://[::1/orders", "host and port can't be read"),
        ("http://user:secret@:8080/orders", "host and port can't be read"),
        ("http://shop..example/orders", "'shop..example' is no host name and no address"),
        (f"http://{'a' * 64}/orders", "is no host name"),
        ("http://10.1/orders", "'10.1' is no host name"),
        ("http://user:sécrèt€@shop/orders", "its user or password"),
        ("http://us%3Aer:secret@shop/orders", "its user or password"),
        ("grpc://", "it names no host"),
        ("grpc://:50051", "it names no host"),
        ("grpc://shop", "it names no port"),
        ("grpcs://shop:0", "it names no port"),
        ("grpc://shop:port", "host and port can't be read"),
        ("grpc://[::1:50051", "host and port can't be read"),
        ("grpc://shop..example:50051", "'shop..example' is no host name and no address"),
        ("grpc://10.1:50051", "'10.1' is no host name"),
        ("grpc://shop:50051/orders", "more than host and port"),
        ("grpc://user:sécret@shop:50051", "more than host and port"),
        ("grpc://shop:50051?dry=1", "more than host and port"),
    ],
)
def test_an_address_that_can_not_be_called_is_refused_and_not_repeated(url: str, said: str) -> None:
    kind, form = ("URL", "http(s)://host:port/path") if url[0] == "h" else ("gRPC address", "grpc://host:port, or")
    with pytest.raises(ConfigurationError, match=rf"processor\.handler is a {kind} that can't be called") as caught:
        load(url)
    assert said in str(caught.value)
    assert form in str(caught.value)
    assert url == "grpc://" or url not in str(caught.value)
    assert "cr" not in str(caught.value), "no part of a password is shown"
    assert caught.value.__context__ is None or caught.value.__suppress_context__


def test_a_missing_grpcio_is_refused_with_the_extra_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delitem(sys.modules, "processor.handlers.grpc")
    monkeypatch.setitem(sys.modules, "grpc", None)
    with pytest.raises(ConfigurationError, match=r"pip install 'wait-registry\[grpc\]'"):
        load("grpc://shop:50051")
