package io.waitreg.connect;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;

import com.fasterxml.jackson.databind.JsonNode;
import io.waitreg.connect.record.GoldenVector;
import io.waitreg.connect.record.Times;
import org.apache.kafka.connect.data.Struct;

/** What a row of the table wait must hold, from the fields of a golden vector. */
final class WaitRows {
  private WaitRows() {}

  static void assertRow(JsonNode fields, Struct row, Integer partition, Long offset) {
    row.validate();
    JsonNode original = fields.get("original");
    assertColumn(fields.get("wait_id"), row, "wait_expiration_uuid");
    for (String name : new String[] {"topic", "partition", "offset", "timestamp_ms", "timestamp_type"}) {
      assertColumn(original.get(name), row, "original_" + name);
    }
    assertArrayEquals(GoldenVector.binary(original.get("key")), row.getBytes("original_key"));
    assertArrayEquals(GoldenVector.binary(original.get("value")), row.getBytes("body"));
    assertEquals(original.get("headers"), GoldenVector.column(row.getString("original_headers")));
    assertEquals(fields.get("expires_at_ms").longValue(), Times.parse(row.getString("wait_expiration_time")));
    JsonNode timestampMs = original.get("timestamp_ms");
    boolean isKnown = !timestampMs.isNull() && timestampMs.longValue() != -1;
    assertEquals(isKnown ? Times.format(timestampMs.longValue()) : null, row.getString("original_timestamp"));
    assertColumn(fields.get("group"), row, "consumer_group");
    for (String name :
        new String[] {
          "instance", "delivery", "dead_letter_topic", "expiry_policy", "max_deliveries", "redeliver_to"
        }) {
      assertColumn(fields.get(name), row, name);
    }
    JsonNode key = fields.get("idempotency_key");
    assertColumn(key.isNull() ? fields.get("wait_id") : key, row, "idempotency_key");
    for (String name : new String[] {"topic", "partition", "offset"}) {
      JsonNode source = fields.get("source");
      assertColumn(source.isNull() ? source : source.get(name), row, "source_" + name);
    }
    assertColumn(fields.get("traceparent"), row, "traceparent");
    assertColumn(fields.get("tracestate"), row, "tracestate");
    assertEquals(RecordsOfTheLog.TOPIC, row.getString("wait_topic"));
    assertEquals(partition, row.getInt32("wait_partition"));
    assertEquals(offset, row.getInt64("wait_offset"));
  }

  private static void assertColumn(JsonNode expected, Struct row, String column) {
    Object value = row.get(column);
    assertEquals(expected.isNull() ? null : expected.asText(), value == null ? null : value.toString(), column);
  }
}
