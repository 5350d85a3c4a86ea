package io.waitreg.connect;

import io.waitreg.connect.record.HeadersJson;
import io.waitreg.connect.record.Original;
import io.waitreg.connect.record.Source;
import io.waitreg.connect.record.Times;
import io.waitreg.connect.record.WaitRecord;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;

/** A row of the table {@code wait}, all but what the database fills in itself. */
final class WaitRow {
  static final Schema SCHEMA =
      SchemaBuilder.struct()
          .name("io.waitreg.wait")
          .field("wait_expiration_uuid", Columns.TEXT)
          .field("original_topic", Columns.TEXT)
          .field("original_partition", Columns.NULLABLE_INT)
          .field("original_offset", Columns.NULLABLE_BIGINT)
          .field("original_key", Columns.NULLABLE_BYTEA)
          .field("original_timestamp", Columns.NULLABLE_TIMESTAMPTZ)
          .field("original_timestamp_ms", Columns.NULLABLE_BIGINT)
          .field("original_timestamp_type", Columns.NULLABLE_TEXT)
          .field("original_headers", Columns.NULLABLE_JSONB)
          .field("wait_expiration_time", Columns.TIMESTAMPTZ)
          .field("body", Columns.NULLABLE_BYTEA)
          .field("consumer_group", Columns.NULLABLE_TEXT)
          .field("instance", Columns.NULLABLE_TEXT)
          .field("delivery", Columns.NULLABLE_INT)
          .field("dead_letter_topic", Columns.NULLABLE_TEXT)
          .field("expiry_policy", Columns.NULLABLE_TEXT)
          .field("max_deliveries", Columns.NULLABLE_INT)
          .field("redeliver_to", Columns.NULLABLE_TEXT)
          .field("idempotency_key", Columns.NULLABLE_TEXT)
          .field("wait_topic", Columns.TEXT)
          .field("wait_partition", Columns.NULLABLE_INT)
          .field("wait_offset", Columns.NULLABLE_BIGINT)
          .field("source_topic", Columns.NULLABLE_TEXT)
          .field("source_partition", Columns.NULLABLE_INT)
          .field("source_offset", Columns.NULLABLE_BIGINT)
          .field("traceparent", Columns.NULLABLE_TEXT)
          .field("tracestate", Columns.NULLABLE_TEXT)
          .build();

  private WaitRow() {}

  /**
   * Returns the row of a wait record.
   *
   * @param partition where it stands in the wait topic; null where that can't be seen
   * @param offset likewise
   */
  static Struct of(WaitRecord wait, String topic, Integer partition, Long offset) {
    Original original = wait.original();
    Struct row =
        new Struct(SCHEMA)
            .put("wait_expiration_uuid", wait.waitId())
            .put("original_topic", original.topic())
            .put("original_partition", original.partition())
            .put("original_offset", original.offset())
            .put("original_key", original.key())
            .put("original_timestamp", shown(original.timestampMs()))
            .put("original_timestamp_ms", original.timestampMs())
            .put("original_timestamp_type", original.timestampType())
            .put("original_headers", HeadersJson.encode(original.headers()))
            .put("wait_expiration_time", Times.format(wait.expiresAtMs()))
            .put("body", original.value())
            .put("consumer_group", wait.group())
            .put("instance", wait.instance())
            .put("delivery", wait.delivery())
            .put("dead_letter_topic", wait.deadLetterTopic())
            .put("expiry_policy", wait.expiryPolicy())
            .put("max_deliveries", wait.maxDeliveries())
            .put("redeliver_to", wait.redeliverTo())
            .put("idempotency_key", wait.idempotencyKey() == null ? wait.waitId() : wait.idempotencyKey())
            .put("wait_topic", topic)
            .put("wait_partition", partition)
            .put("wait_offset", offset)
            .put("traceparent", wait.traceparent())
            .put("tracestate", wait.tracestate());
    putSource(row, wait.source());
    return row;
  }

  static void putSource(Struct row, Source source) {
    if (source != null) {
      row.put("source_topic", source.topic())
          .put("source_partition", source.partition())
          .put("source_offset", source.offset());
    }
  }

  /** Returns a time that a timestamptz can show, null for any other (no timestamp is -1). */
  static String shown(Long timeMs) {
    return timeMs == null || timeMs == -1 || !Times.isShowable(timeMs) ? null : Times.format(timeMs);
  }
}
