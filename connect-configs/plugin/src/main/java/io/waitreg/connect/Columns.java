package io.waitreg.connect;

import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;

/** Column types in the form that both families of JDBC sinks take (the Confluent one with stringtype=unspecified). */
final class Columns {
  static final Schema TEXT = Schema.STRING_SCHEMA;
  static final Schema NULLABLE_TEXT = Schema.OPTIONAL_STRING_SCHEMA;
  static final Schema NULLABLE_INT = Schema.OPTIONAL_INT32_SCHEMA;
  static final Schema NULLABLE_BIGINT = Schema.OPTIONAL_INT64_SCHEMA;
  static final Schema NULLABLE_BYTEA = Schema.OPTIONAL_BYTES_SCHEMA;
  static final Schema TIMESTAMPTZ = SchemaBuilder.string().name("io.debezium.time.ZonedTimestamp").version(1).build();
  static final Schema NULLABLE_TIMESTAMPTZ =
      SchemaBuilder.string().name("io.debezium.time.ZonedTimestamp").version(1).optional().build();
  static final Schema NULLABLE_JSONB =
      SchemaBuilder.string().name("io.debezium.data.Json").version(1).optional().build();

  private Columns() {}
}
