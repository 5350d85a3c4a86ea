package io.waitreg.connect;

import io.waitreg.connect.record.RecordHeader;
import io.waitreg.connect.record.Utf8;
import java.nio.ByteBuffer;
import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.header.ConnectHeaders;
import org.apache.kafka.connect.header.Header;
import org.apache.kafka.connect.header.Headers;

/** Keys, values and headers as they stood in Kafka, whatever the connector's converters made of them. */
final class RecordBytes {
  private static final String BYTES = "org.apache.kafka.connect.converters.ByteArrayConverter";

  private RecordBytes() {}

  /**
   * Returns a record's headers, in order.
   *
   * @throws DataException the header converter has made something else of the bytes
   */
  static List<RecordHeader> headers(Headers headers) {
    var bytes = new ArrayList<RecordHeader>();
    if (headers != null) {
      for (Header header : headers) {
        bytes.add(new RecordHeader(header.key(), bytes("header " + header.key(), "header.converter", header.value())));
      }
    }
    return bytes;
  }

  /**
   * Returns headers for a record on its way to Kafka.
   *
   * @throws DataException a name that Kafka's UTF-8 can't hold
   */
  static Headers connectHeaders(List<RecordHeader> headers) {
    Headers made = new ConnectHeaders();
    for (RecordHeader header : headers) {
      if (Utf8.hasLoneSurrogate(header.name())) {
        throw new DataException("header " + made.size() + ": its name has half of a surrogate pair, expected UTF-8");
      }
      made.add(header.name(), header.value(), Schema.OPTIONAL_BYTES_SCHEMA);
    }
    return made;
  }

  /** Returns bytes as they are; null for null. */
  static byte[] bytes(String what, String converter, Object value) {
    if (value == null || value instanceof byte[]) {
      return (byte[]) value;
    }
    if (value instanceof ByteBuffer buffer) {
      byte[] copy = new byte[buffer.remaining()];
      buffer.duplicate().get(copy);
      return copy;
    }
    throw new DataException(
        "%s: saw a %s, expected bytes. Set %s=%s"
            .formatted(what, value.getClass().getSimpleName(), converter, BYTES));
  }

  /** Returns the key of a wait record, which a string converter may have read; null for what isn't UTF-8. */
  static String keyText(Object key) {
    return key instanceof String text ? text : Utf8.strictly(bytes("key", "key.converter", key));
  }
}
