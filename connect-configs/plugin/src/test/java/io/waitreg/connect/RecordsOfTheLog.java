package io.waitreg.connect;

import io.waitreg.connect.record.RecordHeader;
import java.util.List;
import org.apache.kafka.common.record.TimestampType;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Headers;
import org.apache.kafka.connect.sink.SinkRecord;

/** Records as a sink's converters hand them on: bytes all over. */
final class RecordsOfTheLog {
  static final String TOPIC = "waitreg.waits";
  static final int PARTITION = 7;
  static final long OFFSET = 4_000_000_000L;
  static final long TIMESTAMP_MS = 1_795_227_601_000L;

  private RecordsOfTheLog() {}

  static SinkRecord record(Object key, Object value, List<RecordHeader> headers) {
    Headers listed = new ConnectHeaders();
    headers.forEach(header -> listed.add(header.name(), header.value(), Schema.OPTIONAL_BYTES_SCHEMA));
    return record(key, value, listed);
  }

  static SinkRecord record(Object key, Object value, Headers headers) {
    return new SinkRecord(
        TOPIC,
        PARTITION,
        Schema.OPTIONAL_BYTES_SCHEMA,
        key,
        Schema.OPTIONAL_BYTES_SCHEMA,
        value,
        OFFSET,
        TIMESTAMP_MS,
        TimestampType.LOG_APPEND_TIME,
        headers);
  }
}
