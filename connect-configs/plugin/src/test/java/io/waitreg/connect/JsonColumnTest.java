package io.waitreg.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertNull;
import static org.junit.jupiter.api.Assertions.assertSame;
import static org.junit.jupiter.api.Assertions.assertThrows;

import java.util.Iterator;
import java.util.Map;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaBuilder;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.source.SourceRecord;
import org.junit.jupiter.api.Test;
import org.junit.jupiter.params.ParameterizedTest;
import org.junit.jupiter.params.provider.NullAndEmptySource;
import org.junit.jupiter.params.provider.ValueSource;

/** What the pattern's published source asks of its header transform: {@code json.field}. */
class JsonColumnTest {
  private static final Schema SCHEMA =
      SchemaBuilder.struct().field("original_headers", Schema.OPTIONAL_STRING_SCHEMA).build();

  @Test
  void headersOfTheColumnFollowTheRecordsOwn() {
    SourceRecord given = record(row("[[\"a\",\"MQ==\"],[\"a\",null],[\"b\",\"4oKs\"]]"));
    given.headers().addString("Exception", "ExpiredRecordException");
    SourceRecord made = applied(given);
    Iterator<Header> headers = made.headers().iterator();
    String[][] all = {{"Exception", "ExpiredRecordException"}, {"a", "1"}, {"a", null}, {"b", "€"}};
    for (String[] expected : all) {
      Header header = headers.next();
      assertEquals(expected[0], header.key());
      assertEquals(expected[1], header.value());
    }
    assertSame(given.value(), made.value());
    assertEquals(given.topic(), made.topic());
  }

  @Test
  void theOlderDialectsObjectIsReadToo() {
    Header header = applied(record(row("{\"a\": \"1\"}"))).headers().iterator().next();
    assertEquals("a", header.key());
    assertEquals("1", header.value());
  }

  @Test
  void noHeadersChangeNothing() {
    SourceRecord given = record(row(null));
    assertSame(given, applied(given));
    assertNull(applied(given).headers().lastWithName("a"));
  }

  @ParameterizedTest
  @ValueSource(strings = {"no JSON", "[[\"a\",\"/w==\"]]"})
  void whatCantBeTextIsRefused(String json) {
    assertThrows(DataException.class, () -> applied(record(row(json))));
  }

  @ParameterizedTest
  @NullAndEmptySource
  void aRecordWithoutTheColumnIsRefused(String value) {
    assertThrows(DataException.class, () -> applied(record(value)));
    assertThrows(DataException.class, () -> applied(record(new Struct(SchemaBuilder.struct().build()))));
  }

  private static Struct row(String json) {
    return new Struct(SCHEMA).put("original_headers", json);
  }

  private static SourceRecord record(Object value) {
    return new SourceRecord(Map.of(), Map.of(), "dlq", null, null, value);
  }

  private static SourceRecord applied(SourceRecord record) {
    try (JsonHeadersToKafkaHeaders<SourceRecord> transform = new JsonHeadersToKafkaHeaders<>()) {
      transform.configure(Map.of("json.field", "original_headers"));
      return transform.apply(record);
    }
  }
}
