"""What masks hide and a proof shows; what the page of an edit gives back is what it was given."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.unit.console.test_permission import olga
from wait_registry.dead_letters.difference import Content
from wait_registry.display import MOST_BYTES
from wait_registry.records.operation import Place
from waitreg.console.access.masks import HIDDEN, masked, parse_masks
from waitreg.console.access.permission import Reveal
from waitreg.console.actions.tokens import REVEAL_S, RevealTokens
from waitreg.console.pages.edit_form import part, read_edit, value_part

NUMBER = "4111"


@pytest.mark.parametrize(
    "value",
    [
        '{"card": {"number": "4111", "year": 30}}',
        '{"card": [{"number": 4111}, {"number": ["4111"]}]}',
        '{"card": "4111"}',
        '[{"CARD": {"Number": "4111"}}]',
        '{"Card.Number": "4111", "card": {}}',
        '{"x": 1, "card.number.full": {"digits": ["4111"]}}',
        '"{\\"card\\": {\\"number\\": 4111}}"',
        "4111",
        "no JSON: 4111",
        '{"card": {"number": 1, "number": "4111"}}',
        '{"card": {"number": "4111"}, "limit": 1e999999999999999999999}',
        '{"card": {"number": "4111"}, "limit": NaN}',
        '{"card": {"number": "4111"}, "x": "\\ud800"}',
        "[" * 3000 + "4111" + "]" * 3000,
    ],
)
def test_a_path_is_hidden_in_each_form_of_a_value(value: str) -> None:
    seen = masked(Content(b"k", (), value.encode()), parse_masks(["cards value.card.number"]).of("cards"))
    assert NUMBER.encode() not in (seen.value or b"")
    assert HIDDEN.encode() in (seen.value or b"")


def test_names_with_dots_are_parts_of_a_path() -> None:
    value = b'{"a.b": {"c": 1, "cd": 2}, "a": {"b.c": 3, "b": [{"c": 4}]}, "a.bc": 5, "b.c": 6, "": 7}'
    expected = b'{"a.b": {"c": "H", "cd": 2}, "a": {"b.c": "H", "b": [{"c": "H"}]}, "a.bc": 5, "b.c": 6, "": 7}'
    seen = masked(Content(None, (), value), ["value.a.b.c"]).value or b""
    assert json.loads(seen.replace(HIDDEN.encode(), b"H")) == json.loads(expected)


def test_the_rest_of_a_value_stays_as_it_is_written() -> None:
    value = b'{"card": {"number": "4111", "year": 1.50}, "id": 12345678901234567890}'
    seen = masked(Content(b"k", (), value), ["value.card.number"])
    assert seen == Content(b"k", (), b'{"card": {"number": "(hidden)", "year": 1.50}, "id": 12345678901234567890}')
    value = b'{"a":1e999999999999999999999,"b" : 1e400}'
    assert masked(Content(b"k", (), value), ["value.card.number"]).value == value


@pytest.mark.parametrize("part", ["key", "value", "value.card.number", "header:x"])
@pytest.mark.parametrize(
    "name",
    [
        "DLQ_ERROR_MESSAGE", "RETRY_ERROR_MESSAGE", "DLQ_ERROR_STACKTRACE", "ORIGINAL_KEY", "ORIGINAL_HEADERS",
        "kafka_dlt-exception-message", "__connect.errors.exception.stacktrace",
    ],
)  # fmt: skip
def test_headers_that_quote_a_record_are_hidden_with_any_part(part: str, name: str) -> None:
    content = Content(None, ((name, b"4111"), ("ORIGINAL_TOPIC", b"cards")), None)
    assert masked(content, [part]).headers == ((name, HIDDEN.encode()), ("ORIGINAL_TOPIC", b"cards"))
    assert masked(content, []) == content


def test_keys_headers_and_values_are_hidden_and_null_stays_null() -> None:
    content = Content(b"k", (("Token", b"t"), ("other", b"o"), ("token", None)), b"v")
    hidden = HIDDEN.encode()
    assert masked(content, ["key", "value", "header:token"]) == Content(
        hidden, (("Token", hidden), ("other", b"o"), ("token", hidden)), hidden
    )
    assert masked(Content(None, (), None), ["key", "value", "value.x"]) == Content(None, (), None)


KEY = b"k" * 32
PLACE = Place("orders.dlq", 0, 17)
ADA = olga("admin", name="ada")


def test_a_proof_is_for_one_person_place_and_time() -> None:
    now_s = [1_000.0]
    tokens = RevealTokens(KEY, lambda: now_s[0])
    proof = tokens.sign(Reveal(ADA, PLACE, "shop"))
    assert tokens.proves(proof, ADA, PLACE)
    assert not tokens.proves(proof, olga("admin"), PLACE)
    assert not tokens.proves(proof, ADA, PLACE._replace(offset=1))
    assert not RevealTokens(b"x" * 32, lambda: 1_000.0).proves(proof, ADA, PLACE)
    now_s[0] += REVEAL_S
    assert not tokens.proves(proof, ADA, PLACE)


def test_no_other_text_is_a_proof() -> None:
    tokens = RevealTokens(KEY, lambda: 0.0)
    proof = tokens.sign(Reveal(ADA, PLACE, "shop"))
    for other in ("", ".", "ä", "\ud800", f"{proof}=", f"{proof}A", proof[:-1], proof[1:]):
        assert not tokens.proves(other, ADA, PLACE)
    for index in range(len(proof)):
        changed = f"{proof[:index]}{'A' if proof[index] != 'A' else 'B'}{proof[index + 1 :]}"
        assert not tokens.proves(changed, ADA, PLACE)


def read(value: bytes, /, **head: Any) -> Any:
    given_ = {"key": ["null", ""], "headers": [], "value": "bytes", "allow": [], **head}
    return read_edit(json.dumps(given_).encode() + b"\n" + value)


@given(st.none() | st.binary(max_size=30) | st.text(max_size=9).map(lambda text: text.encode("utf-8", "ignore")))
def test_each_part_comes_back_as_it_was(data: bytes | None) -> None:
    shown = part(data)
    text = shown.hex if shown.kind == "hex" else shown.text
    edited = read(data or b"", key=[shown.kind, text], headers=[["a", shown.kind, text]])
    assert (edited.content.key, edited.content.headers) == (data, (("a", data),))
    digits = read(part(data).hex.encode(), value="null" if data is None else "hex")
    assert digits.content.value == data


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (None, "null"),
        (b"", "text"),
        (b"a\tb", "text"),
        ("ä\ufeff".encode(), "text"),
        (b"a\nb", "hex"),
        (b"a\rb", "hex"),
        (b"a\0b", "hex"),
        (b"\x1b[2J", "hex"),
        (b"\xff", "hex"),
    ],
)
def test_a_line_is_text_only_if_a_field_keeps_it(data: bytes | None, kind: str) -> None:
    assert part(data).kind == kind


@pytest.mark.parametrize(
    ("data", "kind"),
    [
        (b"\n\na\nb\n", "text"),
        (b"a\r\nb", "hex"),
        (b"a" * MOST_BYTES, "text"),
        (b"a" * (MOST_BYTES + 1), "file"),
        (bytes(MOST_BYTES + 1), "file"),
    ],
)
def test_a_value_is_text_only_if_a_text_area_keeps_it(data: bytes, kind: str) -> None:
    assert value_part(data).kind == kind


def test_a_byte_order_mark_is_named() -> None:
    assert value_part(b"\xef\xbb\xbf{}").note == "It begins with a byte order mark."
    assert value_part(b"{}").note == ""
