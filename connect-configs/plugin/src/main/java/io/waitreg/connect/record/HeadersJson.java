package io.waitreg.connect.record;

import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.errors.DataException;

/** The JSON in which a wait record carries the original headers. */
public final class HeadersJson {
  private static final int MAX_BYTES = 16 * 1024 * 1024;
  // In a table the same headers are longer: a blank behind each comma, base64 for names with NUL.
  private static final int MAX_COLUMN_BYTES = 2 * MAX_BYTES;
  private static final String EXPECTED = "expected a list of pairs or an object of strings";

  private HeadersJson() {}

  /**
   * Encodes headers as a JSON list of {@code [name, base64 or null]}, in order, duplicates kept.
   *
   * <p>A name that Postgres JSON can't hold (NUL, half of a surrogate pair) becomes {@code {"base64": ...}} of its
   * UTF-8 bytes.
   */
  public static String encode(List<RecordHeader> headers) {
    var json = new StringBuilder("[");
    for (RecordHeader header : headers) {
      json.append(json.length() > 1 ? ",[" : "[");
      appendName(json, header.name());
      json.append(',');
      if (header.value() == null) {
        json.append("null]");
      } else {
        json.append('"').append(base64(header.value())).append("\"]");
      }
    }
    return json.append(']').toString();
  }

  /**
   * Decodes headers from such a list, or from the legacy format's object of strings.
   *
   * @param json the JSON text in UTF-8, at most 16 MiB
   * @throws DataException it is neither, or too large; the message never holds the headers
   */
  public static List<RecordHeader> decode(byte[] json) {
    return decode(json, MAX_BYTES);
  }

  /**
   * Decodes headers as a table's column has them, as the sweeper does.
   *
   * @param json the JSON text in UTF-8, at most 32 MiB
   * @throws DataException as {@link #decode}
   */
  public static List<RecordHeader> decodeColumn(byte[] json) {
    return decode(json, MAX_COLUMN_BYTES);
  }

  private static List<RecordHeader> decode(byte[] json, int maxBytes) {
    if (json.length > maxBytes) {
      throw new DataException("headers JSON: saw " + json.length + " bytes, expected at most " + maxBytes);
    }
    Object document = StrictJson.read(json);
    if (document instanceof List<?> list) {
      return pairs(list);
    }
    if (document instanceof Map<?, ?> object) {
      return olderMembers(object);
    }
    throw new DataException("headers JSON: saw " + kind(document) + ", " + EXPECTED);
  }

  private static List<RecordHeader> pairs(List<?> list) {
    var headers = new ArrayList<RecordHeader>(list.size());
    for (int index = 0; index < list.size(); index++) {
      if (!(list.get(index) instanceof List<?> pair) || pair.size() != 2) {
        throw item(index, "saw " + kind(list.get(index)) + ", expected a list of 2");
      }
      byte[] value = pair.get(1) == null ? null : bytes(index, "value", pair.get(1));
      headers.add(new RecordHeader(name(index, pair.get(0)), value));
    }
    return headers;
  }

  private static List<RecordHeader> olderMembers(Map<?, ?> object) {
    var headers = new ArrayList<RecordHeader>(object.size());
    object.forEach(
        (name, value) -> {
          if (value != null && !(value instanceof String)) {
            throw item(headers.size(), "saw " + kind(value) + ", expected a string");
          }
          headers.add(
              value == null ? new RecordHeader((String) name, null) : RecordHeader.of((String) name, value));
        });
    return headers;
  }

  private static String name(int index, Object name) {
    if (name instanceof String text) {
      return text;
    }
    if (name instanceof Map<?, ?> object && object.size() == 1 && object.containsKey("base64")) {
      String text = SurrogatePassing.decode(bytes(index, "name", object.get("base64")));
      if (text == null) {
        throw item(index, "the name's base64 doesn't hold UTF-8");
      }
      return text;
    }
    throw item(index, "the name is " + kind(name) + ", expected a string or {\"base64\": string}");
  }

  private static byte[] bytes(int index, String part, Object text) {
    if (!(text instanceof String string)) {
      throw item(index, "the " + part + " is " + kind(text) + ", expected base64 text");
    }
    try {
      // Java's decoder doesn't insist on the padding.
      if (string.length() % 4 == 0) {
        return Base64.getDecoder().decode(string);
      }
    } catch (IllegalArgumentException notBase64) {
      throw item(index, "the " + part + " isn't base64 (standard alphabet, padded)");
    }
    throw item(index, "the " + part + " isn't base64 (standard alphabet, padded)");
  }

  private static void appendName(StringBuilder json, String name) {
    if (name.indexOf('\0') >= 0 || Utf8.hasLoneSurrogate(name)) {
      json.append("{\"base64\":\"").append(base64(SurrogatePassing.encode(name))).append("\"}");
      return;
    }
    json.append('"');
    for (int index = 0; index < name.length(); index++) {
      appendEscaped(json, name.charAt(index));
    }
    json.append('"');
  }

  private static void appendEscaped(StringBuilder json, char character) {
    switch (character) {
      case '"' -> json.append("\\\"");
      case '\\' -> json.append("\\\\");
      case '\b' -> json.append("\\b");
      case '\f' -> json.append("\\f");
      case '\n' -> json.append("\\n");
      case '\r' -> json.append("\\r");
      case '\t' -> json.append("\\t");
      default -> json.append(character < 0x20 ? String.format("\\u%04x", (int) character) : character);
    }
  }

  private static String base64(byte[] bytes) {
    return new String(Base64.getEncoder().encode(bytes), StandardCharsets.ISO_8859_1);
  }

  private static DataException item(int index, String seen) {
    return new DataException("headers JSON, item " + index + ": " + seen);
  }

  /** Names a JSON value's type without showing the value. */
  private static String kind(Object value) {
    if (value == null) {
      return "null";
    }
    if (value instanceof List<?> list) {
      return "a list of " + list.size();
    }
    if (value instanceof Map) {
      return "an object";
    }
    return value instanceof String ? "a string" : value instanceof Boolean ? "a boolean" : "a number";
  }
}
