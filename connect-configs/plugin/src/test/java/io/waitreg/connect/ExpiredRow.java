package io.waitreg.connect;

import com.fasterxml.jackson.databind.JsonNode;
import io.waitreg.connect.record.GoldenVector;
import io.waitreg.connect.record.Times;
import java.nio.ByteBuffer;
import java.util.Date;
import java.util.Map;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.data.Timestamp;
import org.apache.kafka.connect.source.SourceRecord;

/** A row of the golden vectors as the source connectors deliver it. */
final class ExpiredRow {
  private static final Schema TEXT = Schema.OPTIONAL_STRING_SCHEMA;

  /** How a connector gives the time of expiry. */
  enum Types {
    DEBEZIUM(SchemaBuilder.string().name("io.debezium.time.ZonedTimestamp").build()),
    JDBC(Timestamp.SCHEMA),
    MICROSECONDS(SchemaBuilder.int64().name("io.debezium.time.MicroTimestamp").build()),
    NANOSECONDS(SchemaBuilder.int64().name("io.debezium.time.NanoTimestamp").build()),
    MILLISECONDS(SchemaBuilder.int64().name("io.debezium.time.Timestamp").build());

    private final Schema time;

    Types(Schema time) {
      this.time = time;
    }
  }

  private ExpiredRow() {}

  static SchemaBuilder schema(Types types) {
    return SchemaBuilder.struct()
        .name("expired_outbox")
        .field("id", Schema.INT64_SCHEMA)
        .field("wait_expiration_uuid", TEXT)
        .field("original_topic", TEXT)
        .field("original_partition", Schema.OPTIONAL_INT32_SCHEMA)
        .field("original_offset", Schema.OPTIONAL_INT64_SCHEMA)
        .field("original_key", Schema.OPTIONAL_BYTES_SCHEMA)
        .field("original_timestamp_ms", Schema.OPTIONAL_INT64_SCHEMA)
        .field("original_timestamp_type", TEXT)
        .field("original_headers", SchemaBuilder.string().name("io.debezium.data.Json").optional().build())
        .field("wait_expiration_time", types.time)
        .field("body", Schema.OPTIONAL_BYTES_SCHEMA)
        .field("consumer_group", TEXT)
        .field("instance", TEXT)
        .field("delivery", Schema.OPTIONAL_INT32_SCHEMA)
        .field("dead_letter_topic", TEXT)
        .field("idempotency_key", TEXT)
        .field("wait_topic", TEXT)
        .field("wait_partition", Schema.OPTIONAL_INT32_SCHEMA)
        .field("wait_offset", Schema.OPTIONAL_INT64_SCHEMA)
        .field("source_topic", TEXT)
        .field("source_partition", Schema.OPTIONAL_INT32_SCHEMA)
        .field("source_offset", Schema.OPTIONAL_INT64_SCHEMA)
        .optional();
  }

  /** Returns a row of a vector. */
  static Struct of(JsonNode columns, Types types) {
    var row = new Struct(schema(types).build()).put("id", 1L);
    for (Field field : row.schema().fields()) {
      JsonNode value = columns.get(field.name());
      if (value != null && !value.isNull()) {
        row.put(field, value(field, value, types));
      }
    }
    return row;
  }

  /** Returns the plain row of the vectors. */
  static Struct plain() {
    return of(GoldenVector.of("expired").get(0).input().get("row"), Types.DEBEZIUM);
  }

  /** Returns a row within Debezium's envelope. */
  static Struct enveloped(String op, Struct before, Struct after) {
    Schema row = (after == null ? before == null ? plain() : before : after).schema();
    Schema envelope =
        SchemaBuilder.struct()
            .name("waitreg.expired_outbox.Envelope")
            .field("before", row)
            .field("after", row)
            .field("source", SchemaBuilder.struct().field("lsn", Schema.INT64_SCHEMA).optional().build())
            .field("op", Schema.STRING_SCHEMA)
            .build();
    return new Struct(envelope).put("op", op).put("before", before).put("after", after);
  }

  /** Returns a record of a source connector. */
  static SourceRecord record(Object value) {
    return record(value instanceof Struct struct ? struct.schema() : null, value);
  }

  static SourceRecord record(Schema schema, Object value) {
    return new SourceRecord(Map.of("server", "waitreg"), Map.of("lsn", 1L), "waitreg.expired_outbox", schema, value);
  }

  private static Object value(Field field, JsonNode value, Types types) {
    if (field.name().equals("wait_expiration_time")) {
      return time(value.asText(), types);
    }
    return switch (field.schema().type()) {
      case INT32 -> value.intValue();
      case INT64 -> value.longValue();
      // Debezium gives buffers, JDBC sources arrays.
      case BYTES ->
          types == Types.JDBC ? GoldenVector.binary(value) : ByteBuffer.wrap(GoldenVector.binary(value));
      default -> value.asText();
    };
  }

  private static Object time(String text, Types types) {
    long ms = Times.parse(text);
    return switch (types) {
      case DEBEZIUM -> text;
      case JDBC -> new Date(ms);
      case MICROSECONDS -> ms * 1_000 + 999;
      case NANOSECONDS -> ms * 1_000_000 + 999_999;
      case MILLISECONDS -> ms;
    };
  }
}
