"""Brings the rows of a Spark query into this process."""

from __future__ import annotations

import pyarrow as pa
from pyspark.sql import DataFrame
from pyspark.sql.pandas.serializers import ArrowCollectSerializer
from pyspark.util import _create_local_socket


def to_arrow(frame: DataFrame, schema: pa.Schema) -> pa.Table:
    """Run a query and return its rows in a schema, as `DataFrame.toArrow` does, but never wait indefinitely.

    Spark's driver offers the rows on a loopback port, to one connection. If another process connects first, Spark
    closes the port and never runs the query, and `toArrow` waits indefinitely. Here the query's end is awaited only
    after Spark has accepted the connection. Rows could come by a Unix socket instead
    (spark.python.unix.domain.socket.enabled), but Spark 4.2 then keeps a string per query until the JVM ends.

    Raises PySparkException if Spark doesn't give the rows, Py4JError if the query fails or the JVM doesn't answer.
    """
    port, secret, server = frame._jdf.collectAsArrowToPython()
    file, connection = _create_local_socket((port, secret))
    try:
        with connection, file:
            *batches, order = ArrowCollectSerializer().load_stream(file)
    finally:
        server.getResult()  # raises what has ended the query
    if not order:
        return schema.empty_table()
    return pa.Table.from_batches([batches[index] for index in order]).cast(schema)
