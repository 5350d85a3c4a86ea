package io.waitreg.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.fasterxml.jackson.databind.JsonNode;
import io.waitreg.connect.record.GoldenVector;
import io.waitreg.connect.record.HeaderNames;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.header.internals.RecordHeaders;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.api.TestFactory;

class WaitRecordConverterTest {
  private final WaitRecordConverter converter = new WaitRecordConverter();

  @TestFactory
  Stream<DynamicTest> aWaitRecordBecomesItsRowButForItsPlace() {
    return Stream.of("wait_record", "wait_record_legacy")
        .flatMap(file -> GoldenVector.of(file).stream())
        .filter(vector -> vector.operation().equals("decode") && !vector.input().get("value").isNull())
        // What is wrong with a key, a converter can't see.
        .filter(vector -> !vector.name().contains("key") || !vector.isRefused())
        .map(vector -> DynamicTest.dynamicTest(vector.toString(), () -> run(vector)));
  }

  private void run(GoldenVector vector) {
    byte[] value = GoldenVector.binary(vector.input().get("value"));
    RecordHeaders headers = headers(vector.input());
    if (vector.isRefused() || headers.lastHeader(HeaderNames.WAIT_EXPIRATION_UUID) == null) {
      assertThrows(DataException.class, () -> converter.toConnectData(RecordsOfTheLog.TOPIC, headers, value));
      return;
    }
    SchemaAndValue made = converter.toConnectData(RecordsOfTheLog.TOPIC, headers, value);
    assertEquals(WaitRow.SCHEMA, made.schema());
    WaitRows.assertRow(vector.expected(), (Struct) made.value(), null, null);
  }

  @Test
  void aTombstoneIsNull() {
    assertSame(SchemaAndValue.NULL, converter.toConnectData("t", new RecordHeaders(), null));
    assertSame(SchemaAndValue.NULL, converter.toConnectData("t", null, null));
    assertSame(SchemaAndValue.NULL, converter.toConnectData("t", null));
  }

  @Test
  void aRecordWithoutHeadersIsRefused() {
    assertThrows(DataException.class, () -> converter.toConnectData("t", new byte[0]));
    assertThrows(DataException.class, () -> converter.toConnectData("t", null, new byte[0]));
  }

  @Test
  void keysAndSourcesAreRefusedWithTheCure() {
    converter.configure(Map.of(), false);
    var keys = assertThrows(ConfigException.class, () -> converter.configure(Map.of(), true));
    assertTrue(keys.getMessage().contains("StringConverter"), keys.getMessage());
    var sources = assertThrows(DataException.class, () -> converter.fromConnectData("t", null, null));
    assertTrue(sources.getMessage().contains("ByteArrayConverter"), sources.getMessage());
  }

  private static RecordHeaders headers(JsonNode input) {
    var headers = new RecordHeaders();
    GoldenVector.headers(input.get("headers")).forEach(header -> headers.add(header.name(), header.value()));
    return headers;
  }
}
