package io.waitreg.connect.record;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;

/** The codec's records as the fields of a vector, both ways. */
final class VectorFields {
  private VectorFields() {}

  static ObjectNode of(WaitRecord wait) {
    return object()
        .<ObjectNode>set("wait_id", GoldenVector.plain(wait.waitId()))
        .<ObjectNode>set("original", of(wait.original()))
        .<ObjectNode>set("expires_at_ms", number(wait.expiresAtMs()))
        .<ObjectNode>set("group", GoldenVector.plain(wait.group()))
        .<ObjectNode>set("instance", GoldenVector.plain(wait.instance()))
        .<ObjectNode>set("delivery", number(wait.delivery()))
        .<ObjectNode>set("dead_letter_topic", GoldenVector.plain(wait.deadLetterTopic()))
        .<ObjectNode>set("expiry_policy", GoldenVector.plain(wait.expiryPolicy()))
        .<ObjectNode>set("max_deliveries", number(wait.maxDeliveries()))
        .<ObjectNode>set("redeliver_to", GoldenVector.plain(wait.redeliverTo()))
        .<ObjectNode>set("idempotency_key", GoldenVector.plain(wait.idempotencyKey()))
        .<ObjectNode>set("source", of(wait.source()))
        .<ObjectNode>set("traceparent", GoldenVector.plain(wait.traceparent()))
        .set("tracestate", GoldenVector.plain(wait.tracestate()));
  }

  static WaitRecord wait(JsonNode fields) {
    JsonNode original = fields.get("original");
    return new WaitRecord(
        new Original(
            text(original.get("topic")),
            int32(original.get("partition")),
            int64(original.get("offset")),
            int64(original.get("timestamp_ms")),
            text(original.get("timestamp_type")),
            GoldenVector.binary(original.get("key")),
            GoldenVector.binary(original.get("value")),
            GoldenVector.headers(original.get("headers"))),
        text(fields.get("wait_id")),
        int64(fields.get("expires_at_ms")),
        text(fields.get("group")),
        text(fields.get("instance")),
        int32(fields.get("delivery")),
        text(fields.get("dead_letter_topic")),
        text(fields.get("expiry_policy")),
        int32(fields.get("max_deliveries")),
        text(fields.get("redeliver_to")),
        text(fields.get("idempotency_key")),
        source(fields.get("source")),
        text(fields.get("traceparent")),
        text(fields.get("tracestate")));
  }

  static JsonNode of(Lineage lineage) {
    if (lineage == null) {
      return JsonNodeFactory.instance.nullNode();
    }
    return object()
        .<ObjectNode>set("original_topic", GoldenVector.plain(lineage.originalTopic()))
        .<ObjectNode>set("original_partition", number(lineage.originalPartition()))
        .<ObjectNode>set("original_offset", number(lineage.originalOffset()))
        .<ObjectNode>set("original_timestamp_ms", number(lineage.originalTimestampMs()))
        .<ObjectNode>set("original_timestamp_type", GoldenVector.plain(lineage.originalTimestampType()))
        .<ObjectNode>set("wait_id", GoldenVector.plain(lineage.waitId()))
        .<ObjectNode>set("wait_partition", number(lineage.waitPartition()))
        .<ObjectNode>set("wait_offset", number(lineage.waitOffset()))
        .<ObjectNode>set("group", GoldenVector.plain(lineage.group()))
        .<ObjectNode>set("instance", GoldenVector.plain(lineage.instance()))
        .<ObjectNode>set("delivery", number(lineage.delivery()))
        .<ObjectNode>set("max_deliveries", number(lineage.maxDeliveries()))
        .<ObjectNode>set("idempotency_key", GoldenVector.plain(lineage.idempotencyKey()))
        .set("source", of(lineage.source()));
  }

  static Lineage lineage(JsonNode fields) {
    return new Lineage(
        text(fields.get("original_topic")),
        int32(fields.get("original_partition")),
        int64(fields.get("original_offset")),
        int64(fields.get("original_timestamp_ms")),
        text(fields.get("original_timestamp_type")),
        text(fields.get("wait_id")),
        int32(fields.get("wait_partition")),
        int64(fields.get("wait_offset")),
        text(fields.get("group")),
        text(fields.get("instance")),
        int32(fields.get("delivery")),
        int32(fields.get("max_deliveries")),
        text(fields.get("idempotency_key")),
        source(fields.get("source")));
  }

  static JsonNode of(Failure failure) {
    if (failure == null) {
      return JsonNodeFactory.instance.nullNode();
    }
    return object()
        .<ObjectNode>set("reason", GoldenVector.plain(failure.reason()))
        .<ObjectNode>set("error_class", GoldenVector.plain(failure.errorClass()))
        .<ObjectNode>set("error_message", GoldenVector.plain(failure.errorMessage()))
        .<ObjectNode>set("error_stacktrace", GoldenVector.plain(failure.errorStacktrace()))
        .set("time_ms", number(failure.timeMs()));
  }

  static Failure failure(JsonNode fields) {
    return new Failure(
        text(fields.get("reason")),
        text(fields.get("error_class")),
        text(fields.get("error_message")),
        text(fields.get("error_stacktrace")),
        int64(fields.get("time_ms")));
  }

  /** Returns a number in the type that the vector's reader gives it. */
  static JsonNode number(Number number) {
    return number == null ? JsonNodeFactory.instance.nullNode() : GoldenVector.parsed(number.toString());
  }

  static ObjectNode object() {
    return JsonNodeFactory.instance.objectNode();
  }

  private static ObjectNode of(Original original) {
    return object()
        .<ObjectNode>set("topic", GoldenVector.plain(original.topic()))
        .<ObjectNode>set("partition", number(original.partition()))
        .<ObjectNode>set("offset", number(original.offset()))
        .<ObjectNode>set("timestamp_ms", number(original.timestampMs()))
        .<ObjectNode>set("timestamp_type", GoldenVector.plain(original.timestampType()))
        .<ObjectNode>set("key", GoldenVector.shown(original.key()))
        .<ObjectNode>set("value", GoldenVector.shown(original.value()))
        .set("headers", GoldenVector.listed(original.headers()));
  }

  private static JsonNode of(Source source) {
    if (source == null) {
      return JsonNodeFactory.instance.nullNode();
    }
    return object()
        .<ObjectNode>set("topic", GoldenVector.plain(source.topic()))
        .<ObjectNode>set("partition", number(source.partition()))
        .set("offset", number(source.offset()));
  }

  private static Source source(JsonNode fields) {
    return fields.isNull()
        ? null
        : new Source(text(fields.get("topic")), int32(fields.get("partition")), int64(fields.get("offset")));
  }

  private static String text(JsonNode value) {
    return value.isNull() ? null : value.asText();
  }

  private static Integer int32(JsonNode value) {
    return value.isNull() ? null : Integer.valueOf(value.intValue());
  }

  private static Long int64(JsonNode value) {
    return value.isNull() ? null : Long.valueOf(value.longValue());
  }
}
