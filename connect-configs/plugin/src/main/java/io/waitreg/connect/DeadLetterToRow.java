package io.waitreg.connect;

import io.waitreg.connect.record.DeadLetter;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.components.Versioned;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * Turns a record of a dead letter topic into a row of the table {@code dead_letter}, for sinks.
 *
 * <p>The connector reads key, value and headers as bytes (ByteArrayConverter for all three). The record's key becomes
 * the row's primary key: topic, partition and offset of the dead letter. A record that the wait registry didn't write
 * is kept whole, with reason null. Headers go no further than the row: Debezium's sink dies of a name that comes twice.
 */
public final class DeadLetterToRow<R extends ConnectRecord<R>> implements Transformation<R>, Versioned {
  /** Makes a transform; it has no options. */
  public DeadLetterToRow() {}

  @Override
  public R apply(R record) {
    RecordPlace place = RecordPlace.of(record);
    if (place.partition() == null || place.offset() == null) {
      throw new DataException("dead letter: saw a record without partition or offset, expected a sink's");
    }
    Struct key = DeadLetterRow.key(place.topic(), place.partition(), place.offset());
    Struct row =
        DeadLetterRow.of(
            key,
            DeadLetter.decode(RecordBytes.headers(record.headers())),
            RecordBytes.bytes("key", "key.converter", record.key()),
            RecordBytes.bytes("value", "value.converter", record.value()),
            record.timestamp());
    return record.newRecord(
        record.topic(), record.kafkaPartition(), key.schema(), key, row.schema(), row, record.timestamp(), List.of());
  }

  @Override
  public ConfigDef config() {
    return new ConfigDef();
  }

  @Override
  public String version() {
    return PluginVersion.get();
  }

  @Override
  public void configure(Map<String, ?> configs) {}

  @Override
  public void close() {}
}
