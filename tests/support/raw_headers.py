"""Produces a record whose header name is any bytes, which only a C client can do: librdkafka itself, by ctypes."""

from __future__ import annotations

import ctypes
from pathlib import Path

import confluent_kafka

# Argument types of rd_kafka_producev (rdkafka.h, rd_kafka_vtype_t).
END, TOPIC, VALUE, KEY, MSGFLAGS, HEADERS = 0, 1, 4, 5, 7, 10
COPY = 2
FLUSH_MS = 30_000


def produce_with_header_name(bootstrap: str, topic: str, name: bytes, value: bytes, key: bytes = b"") -> None:
    """Produce one record with one header and wait for it; an empty key is none."""
    package = Path(confluent_kafka.__file__).parent
    library = ctypes.CDLL(str(next((package.parent / "confluent_kafka.libs").glob("librdkafka-*"))))
    for function in ("rd_kafka_conf_new", "rd_kafka_new", "rd_kafka_headers_new"):
        getattr(library, function).restype = ctypes.c_void_p
    error = ctypes.create_string_buffer(512)
    conf = ctypes.c_void_p(library.rd_kafka_conf_new())
    library.rd_kafka_conf_set(conf, b"bootstrap.servers", bootstrap.encode(), error, 512)
    producer = ctypes.c_void_p(library.rd_kafka_new(0, conf, error, 512))
    assert producer.value, error.value
    headers = ctypes.c_void_p(library.rd_kafka_headers_new(ctypes.c_size_t(1)))
    library.rd_kafka_header_add(headers, name, ctypes.c_ssize_t(len(name)), b"x", ctypes.c_ssize_t(1))
    refused = library.rd_kafka_producev(
        producer,
        ctypes.c_int(TOPIC),
        ctypes.c_char_p(topic.encode()),
        ctypes.c_int(VALUE),
        ctypes.c_char_p(value),
        ctypes.c_size_t(len(value)),
        ctypes.c_int(KEY),
        ctypes.c_char_p(key or None),
        ctypes.c_size_t(len(key)),
        ctypes.c_int(MSGFLAGS),
        ctypes.c_int(COPY),
        ctypes.c_int(HEADERS),
        headers,
        ctypes.c_int(END),
    )
    assert refused == 0
    assert library.rd_kafka_flush(producer, FLUSH_MS) == 0
    library.rd_kafka_destroy(producer)
