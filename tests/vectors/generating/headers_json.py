"""Vectors of headers in JSON."""

from __future__ import annotations

from tests.vectors.generating.vector import Json, b64, listed, vector

BOTH: dict[str, tuple[list[tuple[str, bytes | None]], str]] = {
    "none": ([], "[]"),
    "one": ([("a", b"1")], '[["a","MQ=="]]'),
    "null and empty apart": ([("a", None), ("b", b"")], '[["a",null],["b",""]]'),
    "duplicates in order": ([("a", b"2"), ("a", b"1"), ("a", b"2")], '[["a","Mg=="],["a","MQ=="],["a","Mg=="]]'),
    "any bytes": ([("x", b"\xff\x00\xfe")], '[["x","/wD+"]]'),
    "the alphabet is the standard one": ([("x", b"\xfb\xff\xbf")], '[["x","+/+/"]]'),
    "an empty name": ([("", b"x")], '[["","eA=="]]'),
    "names beyond ASCII": ([("\u00e9\u20ac\U0001f600", b"x")], '[["\u00e9\u20ac\U0001f600","eA=="]]'),
    "names that JSON escapes": ([('"\\\t\u001f', b"x")], '[["\\"\\\\\\t\\u001f","eA=="]]'),
    "a name that looks like an escape": ([("\\u0000", b"x")], '[["\\\\u0000","eA=="]]'),
    "a name with NUL": ([("a\0b", b"x"), ("c", None)], '[[{"base64":"YQBi"},"eA=="],["c",null]]'),
    "a name with half a surrogate pair": ([("\ud800", b"x")], '[[{"base64":"7aCA"},"eA=="]]'),
    "a name that is JSON": ([('{"base64":"YQ=="}', b"")], '[["{\\"base64\\":\\"YQ==\\"}",""]]'),
}
READ: dict[str, tuple[str, list[tuple[str, bytes | None]]]] = {
    "white space": (' [ [ "a" , "MQ==" ] ] ', [("a", b"1")]),
    "escaped NUL in a name": ('[["a\\u0000","MQ=="]]', [("a\0", b"1")]),
    "older dialect: empty object": ("{}", []),
    "older dialect: strings are UTF-8": (
        '{"a":"1","b":"\u20ac","c":""}',
        [("a", b"1"), ("b", b"\xe2\x82\xac"), ("c", b"")],
    ),
    "older dialect: a null": ('{"a":null}', [("a", None)]),
}
REFUSED: dict[str, bytes] = {
    "nothing": b"",
    "not JSON": b"[[",
    "more behind it": b"[] []",
    "not UTF-8": b'[["\xff",null]]',
    "a string": b'"x"',
    "a number": b"5",
    "null": b"null",
    "a flat list": b'["a","MQ=="]',
    "a pair of one": b'[["a"]]',
    "a pair of three": b'[["a","MQ==",null]]',
    "a pair that is an object": b'[{"a":"MQ=="}]',
    "a name that is a number": b'[[1,"MQ=="]]',
    "a name that is null": b'[[null,"MQ=="]]',
    "a name object with another member": b'[[{"base64":"YQ==","x":1},null]]',
    "a name object without base64": b"[[{},null]]",
    "a name object whose base64 is no text": b'[[{"base64":1},null]]',
    "a name object that isn't UTF-8": b'[[{"base64":"/w=="},null]]',
    "a value that is a number": b'[["a",1]]',
    "a value that is a list": b'[["a",["MQ=="]]]',
    "a value without padding": b'[["a","MQ"]]',
    "a value in the URL alphabet": b'[["a","-_-_"]]',
    "a value with a line break": b'[["a","MQ==\\n"]]',
    "a value that isn't base64": b'[["a","!"]]',
    "older dialect: a number": b'{"a":1}',
    "older dialect: a nested object": b'{"a":{"b":"c"}}',
    "deep nesting": b"[" * 5000 + b"]" * 5000,
}


def headers_json_vectors() -> list[Json]:
    """Return the vectors of headers in JSON."""
    return [
        *(vector(name, "encode", listed(pairs), text) for name, (pairs, text) in BOTH.items()),
        *(vector(name, "decode", b64(text.encode()), listed(pairs)) for name, (pairs, text) in BOTH.items()),
        *(vector(name, "decode", b64(text.encode()), listed(pairs)) for name, (text, pairs) in READ.items()),
        *(vector(name, "decode", b64(data), "error") for name, data in REFUSED.items()),
    ]
