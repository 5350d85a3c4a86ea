package io.waitreg.connect;

import io.waitreg.connect.record.HeadersJson;
import io.waitreg.connect.record.Original;
import io.waitreg.connect.record.RecordHeader;
import io.waitreg.connect.record.Source;
import io.waitreg.connect.record.Times;
import io.waitreg.connect.record.WaitRecord;
import java.nio.charset.StandardCharsets;
import java.util.Date;
import java.util.List;
import org.apache.kafka.connect.data.Field;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;

/** A row of expired waits, in whatever types a source connector gives its columns. */
final class OutboxRow {
  static final String ID = "wait_expiration_uuid";

  private final Struct row;

  OutboxRow(Struct row) {
    this.row = row;
  }

  String waitId() {
    return required(ID, text(ID));
  }

  String waitTopic() {
    return required("wait_topic", text("wait_topic"));
  }

  int waitPartition() {
    return required("wait_partition", int32("wait_partition"));
  }

  long waitOffset() {
    return required("wait_offset", int64("wait_offset"));
  }

  /** Returns the registration that the row tells of. */
  WaitRecord registration() {
    return new WaitRecord(
        original(),
        waitId(),
        required("wait_expiration_time", timeMs("wait_expiration_time")),
        text("consumer_group"),
        text("instance"),
        int32("delivery"),
        text("dead_letter_topic"),
        null,
        null,
        null,
        text("idempotency_key"),
        source(),
        null,
        null);
  }

  private Source source() {
    String topic = text("source_topic");
    return topic == null ? null : new Source(topic, int32("source_partition"), int64("source_offset"));
  }

  private Original original() {
    return new Original(
        required("original_topic", text("original_topic")),
        int32("original_partition"),
        int64("original_offset"),
        int64("original_timestamp_ms"),
        text("original_timestamp_type"),
        bytes("original_key"),
        bytes("body"),
        headers());
  }

  private List<RecordHeader> headers() {
    String json = text("original_headers");
    return json == null ? List.of() : HeadersJson.decodeColumn(json.getBytes(StandardCharsets.UTF_8));
  }

  private String text(String column) {
    Object value = value(column);
    if (value == null || value instanceof String) {
      return (String) value;
    }
    throw unexpected(column, value, "text");
  }

  private byte[] bytes(String column) {
    Object value = value(column);
    if (value instanceof String) {
      throw unexpected(column, value, "bytes. With Debezium leave binary.handling.mode=bytes");
    }
    return RecordBytes.bytes("column " + column, "value.converter", value);
  }

  private Integer int32(String column) {
    Long number = int64(column);
    try {
      return number == null ? null : Math.toIntExact(number);
    } catch (ArithmeticException beyond32Bits) {
      throw unexpected(column, number, "a number of 32 bits");
    }
  }

  private Long int64(String column) {
    Object value = value(column);
    if (value instanceof Long || value instanceof Integer || value instanceof Short) {
      return ((Number) value).longValue();
    }
    if (value != null) {
      throw unexpected(column, value, "a whole number");
    }
    return null;
  }

  /** Returns a timestamptz as ms since the epoch, rounded down. */
  private Long timeMs(String column) {
    Object value = value(column);
    if (value instanceof String text) {
      return Times.parse(text);
    }
    if (value instanceof Date date) {
      return date.getTime();
    }
    if (value instanceof Long number) {
      return msOf(column, number);
    }
    if (value != null) {
      throw unexpected(column, value, "a time");
    }
    return null;
  }

  private long msOf(String column, long number) {
    String type = String.valueOf(row.schema().field(column).schema().name());
    return switch (type) {
      case "io.debezium.time.Timestamp" -> number;
      case "io.debezium.time.MicroTimestamp" -> Math.floorDiv(number, 1_000L);
      case "io.debezium.time.NanoTimestamp" -> Math.floorDiv(number, 1_000_000L);
      default -> throw unexpected(column, number, "a time");
    };
  }

  private Object value(String column) {
    Field field = row.schema().field(column);
    if (field == null) {
      throw new DataException(
          "row of expired waits: has no column %s, expected all columns of table expired_outbox".formatted(column));
    }
    return row.get(field);
  }

  private static <T> T required(String column, T value) {
    if (value == null) {
      throw new DataException("row of expired waits: column %s is null, expected a value".formatted(column));
    }
    return value;
  }

  private static DataException unexpected(String column, Object value, String expected) {
    return new DataException(
        "row of expired waits, column %s: saw a %s, expected %s"
            .formatted(column, value.getClass().getSimpleName(), expected));
  }
}
