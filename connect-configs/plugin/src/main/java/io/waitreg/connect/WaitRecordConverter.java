package io.waitreg.connect;

import io.waitreg.connect.record.RecordHeader;
import io.waitreg.connect.record.WaitRecordCodec;
import java.util.ArrayList;
import java.util.Map;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.header.Headers;
import org.apache.kafka.connect.components.Versioned;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.SchemaAndValue;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.storage.Converter;

/**
 * Reads a record of the wait topic as a row of the table {@code wait}: a value converter for sinks.
 *
 * <p>A converter sees neither key nor partition nor offset. So the wait id comes from its header, and wait_partition
 * and wait_offset are null, which the table's constraints refuse: put {@link WaitRecordToRow} behind it, which fills
 * them in (or use that alone, with ByteArrayConverter). A tombstone is a null value.
 *
 * <p>What can't be read is a DataException: {@code errors.tolerance} and the connector's own dead letter queue take it.
 */
public final class WaitRecordConverter implements Converter, Versioned {
  /** Makes a converter; it has no options. */
  public WaitRecordConverter() {}

  @Override
  public void configure(Map<String, ?> configs, boolean isKey) {
    if (isKey) {
      throw new ConfigException(
          "key.converter: saw WaitRecordConverter, which reads values. "
              + "Set org.apache.kafka.connect.storage.StringConverter");
    }
  }

  @Override
  public SchemaAndValue toConnectData(String topic, Headers headers, byte[] value) {
    if (value == null) {
      return SchemaAndValue.NULL;
    }
    var listed = new ArrayList<RecordHeader>();
    if (headers != null) {
      for (Header header : headers) {
        listed.add(new RecordHeader(header.key(), header.value()));
      }
    }
    return new SchemaAndValue(
        WaitRow.SCHEMA, WaitRow.of(WaitRecordCodec.decodeWithoutKey(value, listed), topic, null, null));
  }

  @Override
  public SchemaAndValue toConnectData(String topic, byte[] value) {
    return toConnectData(topic, null, value);
  }

  @Override
  public byte[] fromConnectData(String topic, Schema schema, Object value) {
    throw new DataException(
        "WaitRecordConverter: saw a record on its way to Kafka, expected a sink. For sources set value.converter="
            + "org.apache.kafka.connect.converters.ByteArrayConverter");
  }

  @Override
  public ConfigDef config() {
    return new ConfigDef();
  }

  @Override
  public String version() {
    return PluginVersion.get();
  }
}
