package io.waitreg.connect.record;

import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.regex.Pattern;
import org.apache.kafka.connect.errors.DataException;

/**
 * The wait registry's own headers of one record by name; of headers with one name the last counts.
 *
 * <p>Every method returns null when the header is missing and throws DataException when it can't be read.
 */
final class SystemHeaders {
  private static final Pattern NUMBER = Pattern.compile("-?[0-9]{1,19}");

  // tracestate is at most 512 characters in what is common; anything much longer is no trace context.
  private static final int MAX_TRACE_BYTES = 1024;

  private final Map<String, byte[]> values = new HashMap<>();

  SystemHeaders(List<RecordHeader> headers) {
    headers.forEach(header -> values.put(header.name(), header.value()));
  }

  /** Returns the bytes, unread; null for a null header too. */
  byte[] raw(String name) {
    return values.get(name);
  }

  /** Returns UTF-8 text without NUL (which Postgres text can't hold), at least one character. */
  String text(String name) {
    if (!values.containsKey(name)) {
      return null;
    }
    String text = Utf8.strictly(values.get(name));
    if (text == null || text.isEmpty() || text.indexOf('\0') >= 0) {
      throw Unreadable.header(name, values.get(name), "UTF-8 text without NUL");
    }
    return text;
  }

  /** Returns a decimal number of 32 bits from low up. */
  Integer int32(String name, int low) {
    Long number = integer(name, low, Integer.MAX_VALUE);
    return number == null ? null : number.intValue();
  }

  /** Returns a decimal number of 64 bits from low up. */
  Long int64(String name, long low) {
    return integer(name, low, Long.MAX_VALUE);
  }

  /** Returns an ISO 8601 time as ms since the epoch. */
  Long timeMs(String name) {
    String text = text(name);
    try {
      return text == null ? null : Times.parse(text);
    } catch (DataException error) {
      throw new DataException("header " + name + ": " + error.getMessage());
    }
  }

  /** Returns one of the allowed words. */
  String choice(String name, List<String> allowed) {
    String text = text(name);
    if (text != null && !allowed.contains(text)) {
      throw Unreadable.header(name, values.get(name), "'" + String.join("' or '", allowed) + "'");
    }
    return text;
  }

  /** Returns a canonical UUID. */
  String waitId(String name) {
    String text = text(name);
    if (text != null && !WaitIds.isWaitId(text)) {
      throw Unreadable.header(name, values.get(name), "a UUID in canonical lower-case form");
    }
    return text;
  }

  /** Returns a trace context header; null for what can't be one, since it is only a copy of an original header. */
  String trace(String name) {
    byte[] value = values.get(name);
    if (value == null || value.length == 0 || value.length > MAX_TRACE_BYTES) {
      return null;
    }
    for (byte octet : value) {
      if (octet < 0x20 || octet == 0x7F) {
        return null;
      }
    }
    return Utf8.strictly(value);
  }

  private Long integer(String name, long low, long high) {
    if (!values.containsKey(name)) {
      return null;
    }
    String text = Utf8.strictly(values.get(name));
    if (text != null && NUMBER.matcher(text).matches()) {
      try {
        long number = Long.parseLong(text);
        if (number >= low && number <= high) {
          return number;
        }
      } catch (NumberFormatException beyond64Bits) {
        // Said below, as for any other number out of range.
      }
    }
    throw Unreadable.header(name, values.get(name), "decimal text of a number from " + low + " to " + high);
  }
}
