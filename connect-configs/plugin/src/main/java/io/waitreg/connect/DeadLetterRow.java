package io.waitreg.connect;

import io.waitreg.connect.record.DeadLetter;
import io.waitreg.connect.record.Failure;
import io.waitreg.connect.record.HeadersJson;
import io.waitreg.connect.record.Lineage;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;

/** A row of the table {@code dead_letter}, all but what the database or the sink fills in itself, and its key. */
final class DeadLetterRow {
  static final Schema KEY_SCHEMA =
      SchemaBuilder.struct()
          .name("io.waitreg.dead_letter.key")
          .field("topic", Columns.TEXT)
          .field("partition", Schema.INT32_SCHEMA)
          .field("offset", Schema.INT64_SCHEMA)
          .build();

  static final Schema SCHEMA =
      SchemaBuilder.struct()
          .name("io.waitreg.dead_letter")
          .field("topic", Columns.TEXT)
          .field("partition", Schema.INT32_SCHEMA)
          .field("offset", Schema.INT64_SCHEMA)
          .field("dead_letter_time", Columns.NULLABLE_TIMESTAMPTZ)
          .field("reason", Columns.NULLABLE_TEXT)
          .field("error_class", Columns.NULLABLE_TEXT)
          .field("error_message", Columns.NULLABLE_TEXT)
          .field("error_stacktrace", Columns.NULLABLE_TEXT)
          .field("wait_expiration_uuid", Columns.NULLABLE_TEXT)
          .field("idempotency_key", Columns.NULLABLE_TEXT)
          .field("original_topic", Columns.NULLABLE_TEXT)
          .field("original_partition", Columns.NULLABLE_INT)
          .field("original_offset", Columns.NULLABLE_BIGINT)
          .field("original_timestamp", Columns.NULLABLE_TIMESTAMPTZ)
          .field("original_timestamp_ms", Columns.NULLABLE_BIGINT)
          .field("original_timestamp_type", Columns.NULLABLE_TEXT)
          .field("consumer_group", Columns.NULLABLE_TEXT)
          .field("instance", Columns.NULLABLE_TEXT)
          .field("delivery", Columns.NULLABLE_INT)
          .field("wait_partition", Columns.NULLABLE_INT)
          .field("wait_offset", Columns.NULLABLE_BIGINT)
          .field("source_topic", Columns.NULLABLE_TEXT)
          .field("source_partition", Columns.NULLABLE_INT)
          .field("source_offset", Columns.NULLABLE_BIGINT)
          .field("key", Columns.NULLABLE_BYTEA)
          .field("headers", Columns.NULLABLE_JSONB)
          .field("body", Columns.NULLABLE_BYTEA)
          .build();

  private DeadLetterRow() {}

  /** Returns what names a dead letter: its own place in its topic. */
  static Struct key(String topic, int partition, long offset) {
    return new Struct(KEY_SCHEMA).put("topic", topic).put("partition", partition).put("offset", offset);
  }

  /**
   * Returns the row of a record of a dead letter topic.
   *
   * @param place as {@link #key} returns it
   * @param timestampMs the record's own time in ms, null for none; counts where the wait registry didn't write it
   */
  static Struct of(Struct place, DeadLetter letter, byte[] key, byte[] body, Long timestampMs) {
    Struct row =
        new Struct(SCHEMA)
            .put("topic", place.get("topic"))
            .put("partition", place.get("partition"))
            .put("offset", place.get("offset"))
            .put("key", key)
            .put("headers", HeadersJson.encode(letter.headers()))
            .put("body", body);
    if (letter.failure() == null) {
      return row.put("dead_letter_time", WaitRow.shown(timestampMs));
    }
    putFailure(row, letter.failure());
    putLineage(row, letter.lineage());
    return row;
  }

  private static void putFailure(Struct row, Failure failure) {
    row.put("dead_letter_time", WaitRow.shown(failure.timeMs()))
        .put("reason", failure.reason())
        .put("error_class", failure.errorClass())
        .put("error_message", failure.errorMessage())
        .put("error_stacktrace", failure.errorStacktrace());
  }

  private static void putLineage(Struct row, Lineage lineage) {
    row.put("wait_expiration_uuid", lineage.waitId())
        .put("idempotency_key", lineage.idempotencyKey() == null ? lineage.waitId() : lineage.idempotencyKey())
        .put("original_topic", lineage.originalTopic())
        .put("original_partition", lineage.originalPartition())
        .put("original_offset", lineage.originalOffset())
        .put("original_timestamp", WaitRow.shown(lineage.originalTimestampMs()))
        .put("original_timestamp_ms", lineage.originalTimestampMs())
        .put("original_timestamp_type", lineage.originalTimestampType())
        .put("consumer_group", lineage.group())
        .put("instance", lineage.instance())
        .put("delivery", lineage.delivery())
        .put("wait_partition", lineage.waitPartition())
        .put("wait_offset", lineage.waitOffset());
    WaitRow.putSource(row, lineage.source());
  }
}
