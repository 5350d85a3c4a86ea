package io.waitreg.connect;

import io.waitreg.connect.record.WaitIds;
import io.waitreg.connect.record.WaitRecordCodec;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.connect.components.Versioned;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * Turns a record of the wait topic into a row of the table {@code wait}, for sinks.
 *
 * <p>The connector reads values and headers as bytes ({@code value.converter} and {@code header.converter} =
 * ByteArrayConverter), the key as bytes or text. The key becomes the wait id as text; a tombstone passes with a null
 * value, whatever its headers say, so that the sink deletes the row. The value may also be a row that {@link
 * WaitRecordConverter} has made: then this adds what a converter can't see, partition and offset. Headers go no further
 * than the row: Debezium's sink dies of a name that comes twice.
 *
 * <p>What can't be read, and so what Postgres would refuse, is a DataException: {@code errors.tolerance} and the
 * connector's own dead letter queue take it.
 */
public final class WaitRecordToRow<R extends ConnectRecord<R>> implements Transformation<R>, Versioned {
  /** Makes a transform; it has no options. */
  public WaitRecordToRow() {}

  @Override
  public R apply(R record) {
    String key = RecordBytes.keyText(record.key());
    if (record.value() == null) {
      return tombstone(record, key);
    }
    RecordPlace place = RecordPlace.of(record);
    Struct row =
        record.value() instanceof Struct converted
            ? placed(converted, key, place)
            : WaitRow.of(
                WaitRecordCodec.decode(
                    key,
                    RecordBytes.bytes("value", "value.converter", record.value()),
                    RecordBytes.headers(record.headers())),
                place.topic(),
                place.partition(),
                place.offset());
    return changed(record, key, WaitRow.SCHEMA, row);
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

  private R tombstone(R record, String key) {
    if (!WaitIds.isWaitId(key)) {
      throw new DataException("tombstone's key: saw none that is a wait id, expected a canonical lower-case UUID");
    }
    return changed(record, key, null, null);
  }

  private static Struct placed(Struct row, String key, RecordPlace place) {
    if (!WaitRow.SCHEMA.name().equals(row.schema().name())) {
      throw new DataException(
          "value: saw a Struct of schema '%s', expected bytes or a row that WaitRecordConverter made"
              .formatted(row.schema().name()));
    }
    if (!row.getString("wait_expiration_uuid").equals(key)) {
      throw new DataException("wait record's key: saw another id than in WAIT_EXPIRATION_UUID, expected the same");
    }
    return row.put("wait_topic", place.topic())
        .put("wait_partition", place.partition())
        .put("wait_offset", place.offset());
  }

  private R changed(R record, String key, Schema schema, Struct row) {
    return record.newRecord(
        record.topic(), record.kafkaPartition(), Schema.STRING_SCHEMA, key, schema, row, record.timestamp(), List.of());
  }
}
