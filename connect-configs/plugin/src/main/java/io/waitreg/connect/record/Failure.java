package io.waitreg.connect.record;

import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.errors.DataException;

/**
 * What went wrong; the texts that aren't known are null.
 *
 * @param reason one of failed, expired, blocked, malformed, unregistrable
 * @param timeMs when, ms since the epoch
 */
public record Failure(String reason, String errorClass, String errorMessage, String errorStacktrace, long timeMs) {
  private static final List<String> REASONS = List.of("failed", "expired", "blocked", "malformed", "unregistrable");
  private static final int MAX_CLASS_CHARACTERS = 256;
  private static final int MAX_MESSAGE_CHARACTERS = 2_048;
  private static final int MAX_STACKTRACE_CHARACTERS = 8_192;

  /** Returns why a registration was dead-lettered whose time was up. */
  public static Failure expired(WaitRecord wait, long nowMs) {
    String message =
        "no outcome by %s; registered by instance %s of group %s, delivery %d"
            .formatted(
                Times.format(wait.expiresAtMs()),
                wait.instance() == null ? "unknown" : wait.instance(),
                wait.group() == null ? "unknown" : wait.group(),
                wait.delivery() == null ? 1 : wait.delivery());
    return new Failure("expired", "WaitExpired", message, null, nowMs);
  }

  /** Adds the DLQ_* headers behind a lineage block. */
  void appendTo(List<RecordHeader> headers) {
    headers.add(RecordHeader.of(HeaderNames.DLQ_REASON, reason));
    WaitRecordCodec.addKnown(headers, HeaderNames.DLQ_ERROR_CLASS, bounded(errorClass, MAX_CLASS_CHARACTERS));
    WaitRecordCodec.addKnown(headers, HeaderNames.DLQ_ERROR_MESSAGE, bounded(errorMessage, MAX_MESSAGE_CHARACTERS));
    WaitRecordCodec.addKnown(
        headers, HeaderNames.DLQ_ERROR_STACKTRACE, bounded(errorStacktrace, MAX_STACKTRACE_CHARACTERS));
    headers.add(RecordHeader.of(HeaderNames.DLQ_TIME, Times.format(timeMs)));
  }

  /** Reads a block's DLQ_* headers; null when they don't say reason and time. */
  static Failure read(Map<String, byte[]> block) {
    var system =
        new SystemHeaders(
            block.entrySet().stream().map(entry -> new RecordHeader(entry.getKey(), entry.getValue())).toList());
    try {
      String reason = system.choice(HeaderNames.DLQ_REASON, REASONS);
      Long timeMs = system.timeMs(HeaderNames.DLQ_TIME);
      if (reason == null || timeMs == null) {
        return null;
      }
      return new Failure(
          reason,
          shown(block.get(HeaderNames.DLQ_ERROR_CLASS)),
          shown(block.get(HeaderNames.DLQ_ERROR_MESSAGE)),
          shown(block.get(HeaderNames.DLQ_ERROR_STACKTRACE)),
          timeMs);
    } catch (DataException notOurs) {
      return null;
    }
  }

  /** Replaces NUL, which Postgres text can't hold. */
  private static String shown(byte[] text) {
    return text == null ? null : Utf8.leniently(text).replace('\0', '\ufffd');
  }

  private static String bounded(String text, int limit) {
    if (text == null || text.codePointCount(0, text.length()) <= limit) {
      return text;
    }
    return text.substring(0, text.offsetByCodePoints(0, limit - 1)) + "\u2026";
  }
}
