package io.waitreg.connect;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.waitreg.connect.record.GoldenVector;
import io.waitreg.connect.record.RecordHeader;
import io.waitreg.connect.record.Times;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

class DeadLetterToRowTest {
  private static final byte[] KEY = {1, (byte) 0xff, 0};
  private static final byte[] BODY = {0};

  private final DeadLetterToRow<SinkRecord> transform = new DeadLetterToRow<>();

  @TestFactory
  Stream<DynamicTest> everyRecordBecomesARow() {
    return GoldenVector.of("dead_letter").stream()
        .filter(vector -> vector.operation().equals("decode"))
        .map(vector -> DynamicTest.dynamicTest(vector.toString(), () -> run(vector)));
  }

  private void run(GoldenVector vector) {
    SinkRecord made = transform.apply(RecordsOfTheLog.record(KEY, BODY, GoldenVector.headers(vector.input())));
    Struct row = (Struct) made.value();
    row.validate();
    JsonNode expected = vector.expected();
    assertEquals(expected.get("headers"), GoldenVector.column(row.getString("headers")));
    assertArrayEquals(KEY, row.getBytes("key"));
    assertArrayEquals(BODY, row.getBytes("body"));
    JsonNode failure = expected.get("failure");
    long timeMs = failure.isNull() ? RecordsOfTheLog.TIMESTAMP_MS : failure.get("time_ms").longValue();
    assertEquals(Times.format(timeMs), row.getString("dead_letter_time"));
    for (String name : List.of("reason", "error_class", "error_message", "error_stacktrace")) {
      assertColumn(failure.path(name), row, name);
    }
    JsonNode lineage = expected.get("lineage");
    assertColumn(lineage.path("wait_id"), row, "wait_expiration_uuid");
    JsonNode key = lineage.path("idempotency_key");
    assertColumn(key.isTextual() ? key : lineage.path("wait_id"), row, "idempotency_key");
    for (String name : List.of("topic", "partition", "offset")) {
      assertColumn(lineage.path("source").path(name), row, "source_" + name);
    }
    assertColumn(lineage.path("group"), row, "consumer_group");
    for (String name :
        List.of(
            "original_topic",
            "original_partition",
            "original_offset",
            "original_timestamp_ms",
            "original_timestamp_type",
            "instance",
            "delivery",
            "wait_partition",
            "wait_offset")) {
      assertColumn(lineage.path(name), row, name);
    }
    JsonNode timestamp = lineage.path("original_timestamp_ms");
    assertEquals(
        timestamp.isNumber() ? Times.format(timestamp.longValue()) : null, row.getString("original_timestamp"));
  }

  @Test
  void itsPlaceIsThePrimaryKey() {
    SinkRecord made = transform.apply(RecordsOfTheLog.record(KEY, BODY, List.of()));
    for (Struct place : List.of((Struct) made.key(), (Struct) made.value())) {
      assertEquals(RecordsOfTheLog.TOPIC, place.getString("topic"));
      assertEquals(RecordsOfTheLog.PARTITION, place.getInt32("partition"));
      assertEquals(RecordsOfTheLog.OFFSET, place.getInt64("offset"));
    }
  }

  @Test
  void headersGoNoFurtherThanTheRow() {
    List<RecordHeader> twice = List.of(RecordHeader.of("a", "1"), RecordHeader.of("a", "2"));
    assertTrue(transform.apply(RecordsOfTheLog.record(KEY, BODY, twice)).headers().isEmpty());
  }

  @Test
  void nothingInARecordMustBeThere() {
    var bare = new SinkRecord("t", 0, null, null, null, null, 5);
    var row = (Struct) transform.apply(bare).value();
    assertNull(row.getBytes("key"));
    assertNull(row.getBytes("body"));
    assertNull(row.getString("dead_letter_time"));
    assertEquals("[]", row.getString("headers"));
    assertNull(row.getString("reason"));
  }

  @Test
  void whatOtherConvertersReadIsRefusedWithTheCure() {
    var headers = new ConnectHeaders().addInt("code", 123);
    assertRefused("Set header.converter=", RecordsOfTheLog.record(KEY, BODY, headers));
    assertRefused("Set key.converter=", RecordsOfTheLog.record("text", BODY, List.of()));
    assertRefused("Set value.converter=", RecordsOfTheLog.record(KEY, "text", List.of()));
  }

  @Test
  void aRecordOnItsWayToKafkaIsRefused() {
    var record = new SourceRecord(Map.of(), Map.of(), "t", null, null);
    assertThrows(DataException.class, () -> new DeadLetterToRow<SourceRecord>().apply(record));
  }

  private static void assertColumn(JsonNode expected, Struct row, String column) {
    Object value = row.get(column);
    boolean isNull = expected.isNull() || expected.isMissingNode();
    assertEquals(isNull ? null : expected.asText(), value == null ? null : value.toString(), column);
  }

  private void assertRefused(String because, SinkRecord record) {
    String message = assertThrows(DataException.class, () -> transform.apply(record)).getMessage();
    assertTrue(message.contains(because), message);
  }
}
