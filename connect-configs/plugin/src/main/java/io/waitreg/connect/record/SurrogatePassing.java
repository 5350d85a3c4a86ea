package io.waitreg.connect.record;

import java.io.ByteArrayOutputStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;

/**
 * Header names that hold half of a surrogate pair, as the three bytes that UTF-8 would give it.
 *
 * <p>Two halves behind each other, in three bytes each, become the character that they mean: Java's text can't tell.
 */
final class SurrogatePassing {
  private SurrogatePassing() {}

  static byte[] encode(String text) {
    var bytes = new ByteArrayOutputStream(text.length() + 16);
    text.codePoints().forEach(point -> bytes.writeBytes(encoded(point)));
    return bytes.toByteArray();
  }

  /** Returns null for what isn't UTF-8 even so. */
  static String decode(byte[] bytes) {
    var text = new StringBuilder(bytes.length);
    int start = 0;
    for (int index = 0; index + 2 < bytes.length; index++) {
      if (isSurrogate(bytes, index)) {
        String before = Utf8.strictly(Arrays.copyOfRange(bytes, start, index));
        if (before == null) {
          return null;
        }
        text.append(before).append((char) (0xD000 | (bytes[index + 1] & 0x3F) << 6 | bytes[index + 2] & 0x3F));
        start = index + 3;
        index += 2;
      }
    }
    String rest = Utf8.strictly(Arrays.copyOfRange(bytes, start, bytes.length));
    return rest == null ? null : text.append(rest).toString();
  }

  private static byte[] encoded(int point) {
    if (point < Character.MIN_SURROGATE || point > Character.MAX_SURROGATE) {
      return Character.toString(point).getBytes(StandardCharsets.UTF_8);
    }
    return new byte[] {(byte) 0xED, (byte) (0x80 | point >> 6 & 0x3F), (byte) (0x80 | point & 0x3F)};
  }

  private static boolean isSurrogate(byte[] bytes, int index) {
    return (bytes[index] & 0xFF) == 0xED && (bytes[index + 1] & 0xE0) == 0xA0 && (bytes[index + 2] & 0xC0) == 0x80;
  }
}
