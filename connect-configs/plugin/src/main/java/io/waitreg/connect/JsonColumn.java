package io.waitreg.connect;

import io.waitreg.connect.record.HeadersJson;
import io.waitreg.connect.record.RecordHeader;
import java.nio.ByteBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.StandardCharsets;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.header.Headers;

/** A column with headers in JSON, as the pattern's published source has it: its headers go on as text. */
final class JsonColumn {
  private JsonColumn() {}

  /**
   * Returns the record with the column's headers behind its own; all else stays.
   *
   * @throws DataException the value is no row with that column, the column holds no headers, or one that isn't text
   */
  static <R extends ConnectRecord<R>> R addHeaders(R record, String column) {
    if (!(record.value() instanceof Struct row) || row.schema().field(column) == null) {
      throw new DataException("json.field: saw no row with a column '%s', expected one".formatted(column));
    }
    String json = row.getString(column);
    if (json == null) {
      return record;
    }
    Headers headers = record.headers().duplicate();
    for (RecordHeader header : HeadersJson.decodeColumn(json.getBytes(StandardCharsets.UTF_8))) {
      headers.add(header.name(), text(column, header.value()), Schema.OPTIONAL_STRING_SCHEMA);
    }
    return record.newRecord(
        record.topic(),
        record.kafkaPartition(),
        record.keySchema(),
        record.key(),
        record.valueSchema(),
        record.value(),
        record.timestamp(),
        headers);
  }

  private static String text(String column, byte[] value) {
    if (value == null) {
      return null;
    }
    try {
      return StandardCharsets.UTF_8.newDecoder().decode(ByteBuffer.wrap(value)).toString();
    } catch (CharacterCodingException refused) {
      throw new DataException(
          "json.field: saw a header in column '%s' that isn't UTF-8, which can't go on as text".formatted(column));
    }
  }
}
