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
    "legacy format: empty object": ("{}", []),
    "legacy format: strings are UTF-8": (
        '{"a":"1","b":"\u20ac","c":""}',
        [("a", b"1"), ("b", b"\xe2\x82\xac"), ("c", b"")],
    ),
    "legacy format: a null": ('{"a":null}', [("a", None)]),
    "legacy format: a name given twice": ('{"a":"1","b":"2","a":"3"}', [("a", b"3"), ("b", b"2")]),
    "legacy format: a number that is given again as text": ('{"a":-1.5e+3,"a":"x"}', [("a", b"x")]),
    "escapes": ('[["\\u00e9\\uD83D\\ude00\\/\\b\\f","MQ=="]]', [("\u00e9\U0001f600/\b\f", b"1")]),
    "DEL and no-break space as they are": ('[["\x7f\u00a0",null]]', [("\x7f\u00a0", None)]),
    "escaped base64": ('[["a","\\u004dQ=="]]', [("a", b"1")]),
    "base64 with bits that mean nothing": ('[["a","MR=="]]', [("a", b"1")]),
    "a name object given twice": ('[[{"base64":1,"base64":"YQ=="},null]]', [("a", None)]),
    "white space of all four kinds": ("\t\r\n []\t\r\n ", []),
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
    "legacy format: a number": b'{"a":1}',
    "legacy format: a nested object": b'{"a":{"b":"c"}}',
    "a value of padding": b'[["a","===="]]',
    "a value with one character too many": b'[["a","MQ==M"]]',
    "two values in one": b'[["a","MQ==MQ=="]]',
    "a value with too much padding": b'[["a","M==="]]',
    "a value with padding behind whole groups": b'[["a","MTIz="]]',
    "a value with a whole group of padding": b'[["a","MTIz===="]]',
    "a value with a blank": b'[["a","MQ= ="]]',
    "a value beyond ASCII": b'[["a","\xc3\xa9\xc3\xa9=="]]',
    "half of a surrogate pair": rb'[["\ud83d",null]]',
    "the other half of a surrogate pair": rb'[["\ude00",null]]',
    "half of a surrogate pair before a character": rb'[["\ud83dA",null]]',
    "half of a surrogate pair before another escape": rb'[["\ud83d\u0041",null]]',
    "a surrogate in UTF-8": b'[["\xed\xa0\xbd",null]]',
    "an overlong NUL": b'[["\xc0\x80",null]]',
    "a byte order mark": b"\xef\xbb\xbf[]",
    "NUL behind it": b"[]\x00",
    "a control character in a name": b'[["a\tb",null]]',
    "an escape without digits": rb'[["\u00g0",null]]',
    "an unknown escape": rb'[["\x41",null]]',
    "a comma at the end": b'[["a",null],]',
    "a comma at the end of an object": b'{"a":"1",}',
    "no comma": b'[["a" null]]',
    "single quotes": b"[['a',null]]",
    "a comment": b"[]//",
    "a vertical tab as white space": b"[\x0b]",
    "a word": b"[nil]",
    "a word too short": b'[["a",nul]]',
    "a word in capitals": b'[["a",NULL]]',
    "not a number": b'{"a":NaN,"a":"x"}',
    "a number with a leading zero": b'{"a":01,"a":"x"}',
    "a number with a plus": b'{"a":+1,"a":"x"}',
    "a number without digits": b'{"a":-,"a":"x"}',
    "a number that ends in a point": b'{"a":1.,"a":"x"}',
    "a number that ends in an exponent": b'{"a":1e,"a":"x"}',
    "a number beyond any": b'{"a":1e400,"a":"x"}',
    "a name that isn't a text": b'{1:"x"}',
    "an object without a colon": b'{"a" "x"}',
    "an object that ends early": b'{"a":"x"',
    "a name object with a null": b'[[{"base64":null},null]]',
    "deep nesting": b"[" * 5000 + b"]" * 5000,
    "deep nesting that is replaced": b'{"a":' + b"[" * 1024 + b"]" * 1024 + b',"a":"x"}',
}


MIB = 1024 * 1024


def headers_json_size_vectors() -> list[Json]:
    """Return the vectors of how much JSON is read: in a wait record, and in a column, where it is longer."""
    return [
        vector("in a wait record", "decode", 16 * MIB, []),
        vector("too much for a wait record", "decode", 16 * MIB + 1, "error"),
        vector("in a column", "decode_column", 32 * MIB, []),
        vector("too much for a column", "decode_column", 32 * MIB + 1, "error"),
    ]


def headers_json_vectors() -> list[Json]:
    """Return the vectors of headers in JSON."""
    return [
        *(vector(name, "encode", listed(pairs), text) for name, (pairs, text) in BOTH.items()),
        *(vector(name, "decode", b64(text.encode()), listed(pairs)) for name, (pairs, text) in BOTH.items()),
        *(vector(name, "decode", b64(text.encode()), listed(pairs)) for name, (text, pairs) in READ.items()),
        *(vector(name, "decode", b64(data), "error") for name, data in REFUSED.items()),
    ]
