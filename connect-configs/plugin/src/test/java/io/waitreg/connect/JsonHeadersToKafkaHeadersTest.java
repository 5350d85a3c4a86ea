package io.waitreg.connect;

import static org.junit.jupiter.api.Assertions.assertArrayEquals;
import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import io.waitreg.connect.record.HeadersJson;
import io.waitreg.connect.record.RecordHeader;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.ValueSource;

class JsonHeadersToKafkaHeadersTest {
  @Test
  void theProducersPartitionerPlacesADeadLetter() {
    SourceRecord made = apply(Map.of(), ExpiredRow.plain());
    assertEquals("orders.dlq", made.topic());
    assertNull(made.kafkaPartition());
    assertEquals(Map.of("lsn", 1L), made.sourceOffset());
  }

  @Test
  void theRecordsTimeIsThatOfItsExport() {
    assertNull(apply(Map.of(), ExpiredRow.plain()).timestamp());
  }

  @Test
  void theRecordsTimeMayBeTheOriginals() {
    Map<String, String> original = Map.of("timestamp", "original");
    assertEquals(1795227600123L, apply(original, ExpiredRow.plain()).timestamp());
    assertNull(apply(original, ExpiredRow.plain().put("original_timestamp_ms", -1L)).timestamp());
    assertNull(apply(original, ExpiredRow.plain().put("original_timestamp_ms", null)).timestamp());
  }

  @Test
  void aTombstoneGoesToThePartitionOfItsWaitRecord() {
    SourceRecord made = apply(Map.of("emit", "tombstone"), ExpiredRow.plain());
    assertEquals("waitreg.waits", made.topic());
    assertEquals(1, made.kafkaPartition());
    assertNull(made.value());
    assertNull(made.timestamp());
  }

  @Test
  void aTombstoneNeedsNoMoreThanItsOwnTablesColumns() {
    Schema schema =
        SchemaBuilder.struct()
            .field("wait_expiration_uuid", Schema.STRING_SCHEMA)
            .field("wait_topic", Schema.STRING_SCHEMA)
            .field("wait_partition", Schema.INT32_SCHEMA)
            .build();
    String id = ExpiredRow.plain().getString("wait_expiration_uuid");
    Struct row = new Struct(schema).put("wait_expiration_uuid", id).put("wait_topic", "w").put("wait_partition", 7);
    SourceRecord made = apply(Map.of("emit", "tombstone"), row);
    assertArrayEquals(id.getBytes(StandardCharsets.UTF_8), (byte[]) made.key());
    assertEquals(7, made.kafkaPartition());
  }

  @ParameterizedTest
  @ValueSource(strings = {"c", "r"})
  void anInsertAndARowOfTheSnapshotAreExported(String op) {
    SourceRecord made = apply(Map.of("after", "true"), ExpiredRow.enveloped(op, null, ExpiredRow.plain()));
    assertEquals("orders.dlq", made.topic());
  }

  @ParameterizedTest
  @ValueSource(strings = {"d", "u", "t", "m"})
  void anythingElseThatBefallsARowIsNoExport(String op) {
    assertNull(apply(Map.of("after", "true"), ExpiredRow.enveloped(op, ExpiredRow.plain(), null)));
    assertNull(apply(Map.of("after", "true"), ExpiredRow.enveloped(op, null, ExpiredRow.plain())));
  }

  @Test
  void anInsertWithoutARowIsNoExport() {
    assertNull(apply(Map.of("after", "true"), ExpiredRow.enveloped("c", null, null)));
  }

  @ParameterizedTest
  @ValueSource(strings = {"true", "false"})
  void whatFollowsADeleteIsDropped(String after) {
    assertNull(transform(Map.of("after", after)).apply(ExpiredRow.record(null, null)));
  }

  @Test
  void aDeleteThatWasFlattenedIsDropped() {
    Schema schema = ExpiredRow.schema(ExpiredRow.Types.DEBEZIUM).field("__deleted", Schema.STRING_SCHEMA).build();
    Struct row = new Struct(schema).put("__deleted", "true");
    assertNull(apply(Map.of(), row));
  }

  @ParameterizedTest
  @ValueSource(strings = {"true", "false"})
  void aHeartbeatPassesAsBytes(String after) {
    Schema schema =
        SchemaBuilder.struct()
            .name("io.debezium.connector.common.Heartbeat")
            .field("ts_ms", Schema.INT64_SCHEMA)
            .build();
    Schema keySchema = SchemaBuilder.struct().field("serverName", Schema.STRING_SCHEMA).build();
    Struct key = new Struct(keySchema).put("serverName", "waitreg");
    var beat =
        new SourceRecord(
            Map.of(), Map.of(), "__debezium-heartbeat.waitreg", 0, keySchema, key, schema,
            new Struct(schema).put("ts_ms", 17L));
    SourceRecord made = transform(Map.of("after", after)).apply(beat);
    assertEquals("__debezium-heartbeat.waitreg", made.topic());
    assertEquals("waitreg", text(made.key()));
    assertEquals("17", text(made.value()));
    assertNull(transform(Map.of("after", after)).apply(ExpiredRow.record(new Struct(schema))).key());
  }

  @Test
  void aRowOfAnotherTableIsRefused() {
    Schema schema = SchemaBuilder.struct().field("id", Schema.INT64_SCHEMA).optional().build();
    Struct row = new Struct(schema).put("id", 1L);
    assertRefused("expected a row of expired waits", Map.of(), row);
    assertRefused("expected a row of expired waits", Map.of("after", "true"), row);
    assertRefused(
        "expected a row of expired waits", Map.of("after", "true"), ExpiredRow.enveloped("c", null, row));
  }

  @Test
  void whatIsNoStructIsRefused() {
    assertRefused("saw a String", Map.of(), "text");
    assertRefused("saw a Map1", Map.of(), Map.of("wait_expiration_uuid", "x"));
  }

  @Test
  void theOptionAfterMustFitTheRow() {
    assertRefused("Set after=false", Map.of("after", "true"), ExpiredRow.plain());
    assertRefused("Set after=true", Map.of(), ExpiredRow.enveloped("c", null, ExpiredRow.plain()));
  }

  @Test
  void aRowWithNothingInItIsRefusedByColumn() {
    Struct empty = new Struct(ExpiredRow.schema(ExpiredRow.Types.DEBEZIUM).build());
    assertRefused("column wait_expiration_uuid is null", Map.of(), empty);
    assertRefused("column wait_expiration_uuid is null", Map.of("emit", "tombstone"), empty);
  }

  @ParameterizedTest
  @ValueSource(
      strings = {"wait_expiration_uuid", "original_topic", "wait_expiration_time", "wait_partition", "wait_offset"})
  void aRowWithoutWhatADeadLetterNeedsIsRefused(String column) {
    assertRefused("column " + column + " is null", Map.of(), without(column));
  }

  @Test
  void everyColumnMustBeThereLestABodyIsLost() {
    SchemaBuilder fewer = SchemaBuilder.struct();
    for (Field field : ExpiredRow.plain().schema().fields()) {
      if (!field.name().equals("body")) {
        fewer.field(field.name(), field.schema());
      }
    }
    Struct row = new Struct(fewer.build());
    row.schema().fields().forEach(field -> row.put(field, ExpiredRow.plain().get(field.name())));
    assertRefused("has no column body", Map.of(), row);
  }

  @Test
  void bytesAsTextAreRefused() {
    SchemaBuilder texts = SchemaBuilder.struct();
    for (Field field : ExpiredRow.plain().schema().fields()) {
      texts.field(field.name(), field.name().equals("body") ? Schema.STRING_SCHEMA : field.schema());
    }
    Struct row = new Struct(texts.build());
    row.schema()
        .fields()
        .forEach(field -> row.put(field, field.name().equals("body") ? "eA==" : ExpiredRow.plain().get(field.name())));
    assertRefused("binary.handling.mode=bytes", Map.of(), row);
  }

  @Test
  void anIdThatIsNoneIsRefused() {
    assertRefused(
        "expected a canonical lower-case UUID", Map.of("emit", "tombstone"),
        ExpiredRow.plain().put("wait_expiration_uuid", "customer-17"));
  }

  @Test
  void aRowThatNamesNoTopicNeedsTheOption() {
    Struct row = ExpiredRow.plain().put("dead_letter_topic", null);
    assertRefused("Set it", Map.of(), row);
    assertEquals("orders.billing.dlq", apply(Map.of("topic", "{topic}.{group}.dlq"), row).topic());
    assertEquals("orders.dlq", apply(Map.of("topic", "late"), ExpiredRow.plain()).topic());
  }

  @Test
  void aHeaderNameWithNulIsExportedAsItIs() {
    String json = HeadersJson.encode(List.of(new RecordHeader("a\0b", new byte[] {1})));
    SourceRecord made = apply(Map.of(), ExpiredRow.plain().put("original_headers", json));
    assertEquals("a\0b", made.headers().iterator().next().key());
  }

  @Test
  void aHeaderNameThatKafkaCannotHoldIsRefused() {
    String json = HeadersJson.encode(List.of(new RecordHeader("\ud800", new byte[] {1})));
    assertRefused("surrogate pair", Map.of(), ExpiredRow.plain().put("original_headers", json));
  }

  @Test
  void itWorksOnRecordsOfSinksToo() {
    Struct row = ExpiredRow.plain();
    var transform = new JsonHeadersToKafkaHeaders<SinkRecord>();
    transform.configure(Map.of());
    assertEquals("orders.dlq", transform.apply(new SinkRecord("t", 0, null, null, row.schema(), row, 5)).topic());
  }

  @Test
  void anUnknownWordIsRefusedWithWhatIsAllowed() {
    assertTrue(refusal(Map.of("emit", "tombstones")).contains("record, tombstone"));
    assertTrue(refusal(Map.of("timestamp", "now")).contains("none, original"));
    assertTrue(refusal(Map.of("after", "yes")).contains("true or false"));
    assertTrue(refusal(Map.of("topic", "{name}.dlq")).contains("expected {topic} or {group}"));
    assertTrue(refusal(Map.of("topic", "")).contains("expected at most 249"));
  }

  @Test
  void everyOptionIsDocumented() {
    var options = new JsonHeadersToKafkaHeaders<SourceRecord>().config().configKeys();
    List<String> expected = List.of("after", "emit", "json.field", "timestamp", "topic");
    assertEquals(expected, options.keySet().stream().sorted().toList());
    options.values().forEach(option -> assertTrue(option.documentation.length() > 20, option.name));
  }

  private static Struct without(String column) {
    SchemaBuilder nullable = SchemaBuilder.struct();
    for (Field field : ExpiredRow.plain().schema().fields()) {
      nullable.field(field.name(), field.name().equals(column) ? optional(field) : field.schema());
    }
    Struct row = new Struct(nullable.build());
    row.schema().fields().forEach(field -> row.put(field, ExpiredRow.plain().get(field.name())));
    return row.put(column, null);
  }

  private static Schema optional(Field field) {
    return new SchemaBuilder(field.schema().type()).name(field.schema().name()).optional().build();
  }

  private static String refusal(Map<String, String> options) {
    return assertThrows(ConfigException.class, () -> transform(options)).getMessage();
  }

  private static void assertRefused(String because, Map<String, String> options, Object value) {
    String message = assertThrows(DataException.class, () -> apply(options, value)).getMessage();
    assertTrue(message.contains(because), message);
  }

  private static SourceRecord apply(Map<String, String> options, Object value) {
    return transform(options).apply(ExpiredRow.record(value));
  }

  private static JsonHeadersToKafkaHeaders<SourceRecord> transform(Map<String, String> options) {
    var transform = new JsonHeadersToKafkaHeaders<SourceRecord>();
    transform.configure(options);
    return transform;
  }

  private static String text(Object bytes) {
    return new String((byte[]) bytes, StandardCharsets.UTF_8);
  }
}
