package io.waitreg.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.waitreg.connect.record.GoldenVector;
import io.waitreg.connect.record.HeaderNames;
import io.waitreg.connect.record.RecordHeader;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.source.SourceRecord;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.NullSource;
import org.junit.jupiter.params.provider.ValueSource;

class WaitRecordToRowTest {
  private static final JsonNode PLAIN =
      GoldenVector.of("wait_record").stream()
          .filter(vector -> vector.operation().equals("decode") && vector.name().equals("plain"))
          .findFirst()
          .orElseThrow()
          .input();
  private static final String ID = new String(GoldenVector.binary(PLAIN.get("key")), StandardCharsets.UTF_8);

  private final WaitRecordToRow<SinkRecord> transform = new WaitRecordToRow<>();

  @TestFactory
  Stream<DynamicTest> aWaitRecordBecomesItsRowAndNothingElseDoes() {
    return Stream.of("wait_record", "wait_record_legacy")
        .flatMap(file -> GoldenVector.of(file).stream())
        .filter(vector -> vector.operation().equals("decode") && !vector.input().get("value").isNull())
        .map(vector -> DynamicTest.dynamicTest(vector.toString(), () -> run(vector)));
  }

  private void run(GoldenVector vector) {
    SinkRecord record = record(vector.input());
    if (vector.isRefused()) {
      assertThrows(DataException.class, () -> transform.apply(record));
      return;
    }
    SinkRecord made = transform.apply(record);
    assertEquals(WaitRow.SCHEMA, made.valueSchema());
    assertEquals(ID, made.key());
    WaitRows.assertRow(
        vector.expected(), (Struct) made.value(), RecordsOfTheLog.PARTITION, RecordsOfTheLog.OFFSET);
  }

  @Test
  void aTombstonePassesWithItsIdAsText() {
    List<RecordHeader> outcome = List.of(RecordHeader.of(HeaderNames.WAIT_OUTCOME, "expired"));
    SinkRecord made = transform.apply(RecordsOfTheLog.record(utf8(ID), null, outcome));
    assertEquals(ID, made.key());
    assertEquals(Schema.STRING_SCHEMA, made.keySchema());
    assertNull(made.value());
    assertNull(made.valueSchema());
  }

  @Test
  void headersGoNoFurtherThanTheRow() {
    assertTrue(transform.apply(record(PLAIN)).headers().isEmpty());
    List<RecordHeader> outcome = List.of(RecordHeader.of(HeaderNames.WAIT_OUTCOME, "expired"));
    assertTrue(transform.apply(RecordsOfTheLog.record(utf8(ID), null, outcome)).headers().isEmpty());
  }

  @Test
  void noHeaderCanHoldATombstoneBack() {
    var headers = new ConnectHeaders().addString(HeaderNames.WAIT_OUTCOME, "done");
    assertNull(transform.apply(RecordsOfTheLog.record(utf8(ID), null, headers)).value());
    assertNull(transform.apply(RecordsOfTheLog.record(utf8(ID), null, List.of())).value());
  }

  @ParameterizedTest
  @NullSource
  @ValueSource(strings = {"", "customer-17", "019FC448-D29B-8ABC-9DEF-0123456789AB"})
  void aTombstoneWhoseKeyIsNoWaitIdIsRefused(String key) {
    assertRefused("tombstone's key", RecordsOfTheLog.record(key == null ? null : utf8(key), null, List.of()));
  }

  @Test
  void theKeyMayBeTextOrABuffer() {
    byte[] value = {1};
    for (Object key : new Object[] {utf8(ID), ID, ByteBuffer.wrap(utf8(ID))}) {
      assertEquals(ID, transform.apply(RecordsOfTheLog.record(key, value, headers(PLAIN))).key());
    }
  }

  @Test
  void aKeyThatIsNotUtf8IsRefused() {
    assertRefused("key", RecordsOfTheLog.record(new byte[] {(byte) 0xff}, new byte[0], headers(PLAIN)));
  }

  @Test
  void headersThatAnotherConverterReadAreRefusedWithTheCure() {
    var headers = new ConnectHeaders().addString(HeaderNames.ORIGINAL_TOPIC, "orders");
    assertRefused(
        "Set header.converter=org.apache.kafka.connect.converters.ByteArrayConverter",
        RecordsOfTheLog.record(utf8(ID), new byte[0], headers));
  }

  @Test
  void aValueThatAnotherConverterReadIsRefusedWithTheCure() {
    assertRefused(
        "Set value.converter=org.apache.kafka.connect.converters.ByteArrayConverter",
        RecordsOfTheLog.record(utf8(ID), "text", headers(PLAIN)));
    Struct other = new Struct(SchemaBuilder.struct().name("other").build());
    assertRefused("schema 'other'", RecordsOfTheLog.record(utf8(ID), other, headers(PLAIN)));
    Struct unnamed = new Struct(SchemaBuilder.struct().build());
    assertRefused("schema 'null'", RecordsOfTheLog.record(utf8(ID), unnamed, headers(PLAIN)));
  }

  @Test
  void nothingInARecordMustBeThere() {
    assertRefused("key", RecordsOfTheLog.record(null, new byte[0], (ConnectHeaders) null));
    assertRefused("WAIT_EXPIRATION_TIME", RecordsOfTheLog.record(utf8(ID), new byte[0], (ConnectHeaders) null));
    var bare = new SinkRecord("t", 0, null, ID, null, null, 5);
    assertNull(transform.apply(bare).value());
    assertNull(transform.apply(bare).timestamp());
  }

  @Test
  void everyHeaderMayBeNull() {
    for (RecordHeader nulled : headers(PLAIN)) {
      var headers = new ArrayList<>(headers(PLAIN));
      headers.replaceAll(
          header -> header.name().equals(nulled.name()) ? new RecordHeader(nulled.name(), null) : header);
      SinkRecord record = RecordsOfTheLog.record(utf8(ID), new byte[] {1}, headers);
      boolean mayBeNull =
          List.of(HeaderNames.ORIGINAL_KEY, HeaderNames.ORIGINAL_HEADERS).contains(nulled.name());
      if (mayBeNull) {
        transform.apply(record);
      } else {
        assertRefused(nulled.name(), record);
      }
    }
  }

  @Test
  void aRowOfTheConverterGetsItsPlace() {
    Struct row = (Struct) new WaitRecordConverter().toConnectData("t", kafkaHeaders(), new byte[] {1}).value();
    SinkRecord made = transform.apply(RecordsOfTheLog.record(utf8(ID), row, List.of()));
    assertEquals(RecordsOfTheLog.TOPIC, ((Struct) made.value()).getString("wait_topic"));
    assertEquals(RecordsOfTheLog.PARTITION, ((Struct) made.value()).getInt32("wait_partition"));
    assertEquals(RecordsOfTheLog.OFFSET, ((Struct) made.value()).getInt64("wait_offset"));
    assertRefused("another id", RecordsOfTheLog.record(utf8(ID.replace('9', '8')), row, List.of()));
    assertRefused("another id", RecordsOfTheLog.record(null, row, List.of()));
  }

  @Test
  void thePlaceIsTheLogsWhateverOtherTransformsMadeOfTheTopic() {
    SinkRecord record = record(PLAIN);
    SinkRecord routed =
        record.newRecord("elsewhere", 0, record.keySchema(), record.key(), record.valueSchema(), record.value(), 0L);
    SinkRecord made = transform.apply(routed);
    assertEquals("elsewhere", made.topic());
    assertEquals(RecordsOfTheLog.TOPIC, ((Struct) made.value()).getString("wait_topic"));
    assertEquals(RecordsOfTheLog.PARTITION, ((Struct) made.value()).getInt32("wait_partition"));
  }

  @Test
  void itWorksOnRecordsOfSourcesToo() {
    SinkRecord consumed = record(PLAIN);
    var record =
        new SourceRecord(
            Map.of(), Map.of(), "mirror", null, null, consumed.key(), null, consumed.value(), null, consumed.headers());
    var row = (Struct) new WaitRecordToRow<SourceRecord>().apply(record).value();
    assertEquals("mirror", row.getString("wait_topic"));
    assertNull(row.getInt32("wait_partition"));
    assertNull(row.getInt64("wait_offset"));
  }

  private static Headers kafkaHeaders() {
    var kafka = new RecordHeaders();
    headers(PLAIN).forEach(header -> kafka.add(header.name(), header.value()));
    return kafka;
  }

  private static SinkRecord record(JsonNode input) {
    return RecordsOfTheLog.record(
        GoldenVector.binary(input.get("key")), GoldenVector.binary(input.get("value")), headers(input));
  }

  private static List<RecordHeader> headers(JsonNode input) {
    return GoldenVector.headers(input.get("headers"));
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private void assertRefused(String because, SinkRecord record) {
    String message = assertThrows(DataException.class, () -> transform.apply(record)).getMessage();
    assertTrue(message.contains(because), message);
  }
}
