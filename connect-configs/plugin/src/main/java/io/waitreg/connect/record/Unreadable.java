package io.waitreg.connect.record;

import org.apache.kafka.connect.errors.DataException;

/**
 * Errors of one header: which, what was seen, what was expected.
 *
 * <p>They are Connect's DataException, so that {@code errors.tolerance} and the connector's own dead letter queue take
 * the record: an error of the database would end the task.
 */
final class Unreadable {
  private static final int SHOWN_BYTES = 64;

  private Unreadable() {}

  static DataException header(String name, byte[] value, String expected) {
    return new DataException("header " + name + ": saw " + shown(value) + ", expected " + expected);
  }

  static DataException missing(String name, String expected) {
    return new DataException("header " + name + ": missing, expected " + expected);
  }

  /** Shows the beginning of a header's value. */
  private static String shown(byte[] value) {
    if (value == null) {
      return "null";
    }
    var text = new StringBuilder("'");
    for (int index = 0; index < Math.min(value.length, SHOWN_BYTES); index++) {
      int octet = value[index] & 0xFF;
      text.append(octet >= 0x20 && octet < 0x7F ? Character.toString(octet) : String.format("\\x%02x", octet));
    }
    return text + (value.length > SHOWN_BYTES ? "'... (" + value.length + " bytes)" : "'");
  }
}
