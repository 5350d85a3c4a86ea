package io.waitreg.connect.record;

import java.nio.ByteBuffer;
import java.nio.CharBuffer;
import java.nio.charset.CharacterCodingException;
import java.nio.charset.CoderResult;
import java.nio.charset.CodingErrorAction;
import java.nio.charset.StandardCharsets;

/** UTF-8 read as Postgres and the registry's other readers do. */
public final class Utf8 {
  private static final char REPLACEMENT = '\ufffd';

  private Utf8() {}

  /** Reads bytes as UTF-8; null for null, and for what isn't UTF-8. */
  public static String strictly(byte[] bytes) {
    if (bytes == null) {
      return null;
    }
    try {
      return StandardCharsets.UTF_8
          .newDecoder()
          .onMalformedInput(CodingErrorAction.REPORT)
          .onUnmappableCharacter(CodingErrorAction.REPORT)
          .decode(ByteBuffer.wrap(bytes))
          .toString();
    } catch (CharacterCodingException notUtf8) {
      return null;
    }
  }

  /**
   * Reads bytes as UTF-8, with a replacement character for each longest part of a sequence that could have begun one
   * (Unicode, section 3.9, "U+FFFD Substitution of Maximal Subparts"). Java's own replacement differs for surrogates.
   */
  public static String leniently(byte[] bytes) {
    var decoder =
        StandardCharsets.UTF_8
            .newDecoder()
            .onMalformedInput(CodingErrorAction.REPORT)
            .onUnmappableCharacter(CodingErrorAction.REPORT);
    ByteBuffer in = ByteBuffer.wrap(bytes);
    // No sequence becomes more characters than it has bytes.
    CharBuffer out = CharBuffer.allocate(bytes.length);
    CoderResult result = decoder.decode(in, out, true);
    while (result.isError()) {
      out.put(REPLACEMENT);
      in.position(in.position() + (beginsSurrogate(in) ? 1 : result.length()));
      result = decoder.decode(in, out, true);
    }
    return out.flip().toString();
  }

  private static boolean beginsSurrogate(ByteBuffer in) {
    int start = in.position();
    return in.remaining() > 1 && in.get(start) == (byte) 0xED && (in.get(start + 1) & 0xE0) == 0xA0;
  }

  /** Tells whether a text has half of a surrogate pair, which UTF-8 can't hold. */
  public static boolean hasLoneSurrogate(String text) {
    return text.codePoints().anyMatch(point -> point >= Character.MIN_SURROGATE && point <= Character.MAX_SURROGATE);
  }
}
