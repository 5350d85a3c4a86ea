package io.waitreg.connect.record;

import java.nio.charset.StandardCharsets;

/**
 * One header of a Kafka record.
 *
 * @param name any text
 * @param value any bytes; null and empty differ
 */
public record RecordHeader(String name, byte[] value) {
  /** Returns a header with UTF-8 text. */
  public static RecordHeader of(String name, Object text) {
    return new RecordHeader(name, text.toString().getBytes(StandardCharsets.UTF_8));
  }
}
