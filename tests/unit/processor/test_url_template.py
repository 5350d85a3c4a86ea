"""A record's headers in the URL of the HTTP handler."""

from __future__ import annotations

from urllib.parse import unquote_to_bytes

import pytest
from hypothesis import given
from hypothesis import strategies as st

from processor.handlers.url_template import url_template
from wait_registry.errors import ConfigurationError, MalformedError
from wait_registry.handler import Record
from wait_registry.records.headers import Headers
from waitreg.testing import DeadLetter, outcome_of

HEADERS: Headers = (("customer", b"first"), ("customer", b"blue & green"), ("a b", b"\xff/"), ("id", b"7"))


def record_with(headers: Headers) -> Record:
    return Record("orders", 0, 0, 0, None, b"", headers, 1, "id", "shop", None)


@pytest.mark.parametrize(
    ("template", "url"),
    [
        ("http://shop/orders", "http://shop/orders"),
        ("http://shop/orders/{header:customer}", "http://shop/orders/blue%20%26%20green"),
        ("http://shop/{header:id}/items?dry=1", "http://shop/7/items?dry=1"),
        ("https://u:p@shop:8443/v{header:id}/{header:a b}", "https://u:p@shop:8443/v7/%FF%2F"),
        ("http://bücher/ö/{header:id}{header:id}", "http://xn--bcher-kva/%C3%B6/77"),
    ],
)
def test_the_last_header_of_a_name_is_filled_in(template: str, url: str) -> None:
    assert str(url_template(template)(record_with(HEADERS))) == url


@given(st.binary(min_size=1))
def test_any_value_is_one_segment_and_nothing_else(value: bytes) -> None:
    try:
        url = url_template("http://shop/orders/{header:id}/items?dry=1")(record_with((("id", value),)))
    except MalformedError:
        assert b"." in value or b"%2e" in value.lower()
        return
    before, filled, after = url.raw_path.rsplit("/", 2)
    assert (url.host, url.port, url.raw_query_string, url.raw_fragment) == ("shop", 80, "dry=1", "")
    assert (before, after) == ("/orders", "items")
    assert unquote_to_bytes(filled) == value


@pytest.mark.parametrize("template", ["", "?v=1", "#x", ";v=1", "/items"])
@pytest.mark.parametrize("value", [b"..", b".", b"../admin", b"a/..", rb"..\x", b"..;x", b"%2e%2E", b"a%2F.%2F"])
def test_no_value_leads_out_of_its_segment(template: str, value: bytes) -> None:
    with pytest.raises(MalformedError, match="would be a dot segment"):
        url_template(f"http://shop/customers/{{header:id}}{template}")(record_with((("id", value),)))


@pytest.mark.parametrize("value", [b"...", b"v1.2", b"a/b", b".well-known", b"a..b", b"\xff;%"])
def test_dots_and_slashes_within_a_value_are_sent(value: bytes) -> None:
    url = url_template("http://shop/customers/{header:id}?file=../x")(record_with((("id", value),)))
    assert unquote_to_bytes(url.raw_path) == b"/customers/" + value


@pytest.mark.parametrize(
    ("headers", "said"),
    [
        ((), "takes the header 'id', and the record has none"),
        ((("ID", b"7"),), "and the record has none"),
        ((("id", None),), "and the record has none"),
        ((("id", b"7"), ("id", b"")), "or an empty one"),
        ((("id", b".."),), "would be a dot segment"),
        ((("id", b"."),), "would be a dot segment"),
    ],
)
def test_a_record_without_a_value_is_dead_lettered_as_malformed(headers: Headers, said: str) -> None:
    outcome = outcome_of("http://user:secret@shop/{header:id}", record_with(headers), retry={"delays": ["10s"]})
    assert isinstance(outcome, DeadLetter)
    assert outcome.reason == "malformed"
    assert said in str(outcome.error)
    assert "secret" not in str(outcome.error)


@pytest.mark.guarantee("P8.8")
@pytest.mark.parametrize(
    "template",
    [
        "http://{header:host}/orders",
        "http://shop:{header:port}/orders",
        "http://{header:user}:secret@shop/orders",
        "http://shop?{header:id}",
        "http://shop?x=/{header:id}",
        "http://shop/orders?customer={header:customer}",
        "http://shop/orders#{header:customer}",
        "http://shop/{key}",
        "http://shop/{header:}",
        "http://shop/{header:id",
        "http://shop/{{header:id}}",
    ],
)
def test_a_place_outside_of_the_path_is_refused_at_the_start(template: str) -> None:
    with pytest.raises(ConfigurationError, match=r"begin a \{header:name\} in its path") as caught:
        url_template(template)
    assert "secret" not in str(caught.value)
