package io.waitreg.connect.record;

import java.time.DateTimeException;
import java.time.Instant;
import java.time.LocalDate;
import java.time.ZoneOffset;
import java.time.format.DateTimeFormatter;
import java.util.Locale;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.connect.errors.DataException;

/** Times as headers carry them: ISO 8601, read and written as ms since the epoch, years 1 to 9999. */
public final class Times {
  private static final long MIN_MS = -62_135_596_800_000L;
  private static final long MAX_MS = 253_402_300_799_999L;
  private static final int MAX_ZONE_S = 18 * 3600;
  private static final int LONGEST = 128;
  private static final DateTimeFormatter FORMAT =
      DateTimeFormatter.ofPattern("uuuu-MM-dd'T'HH:mm:ss.SSS'Z'", Locale.ROOT).withZone(ZoneOffset.UTC);

  /** What toString() of Instant, LocalDateTime, OffsetDateTime and ZonedDateTime prints. */
  private static final Pattern ISO =
      Pattern.compile(
          "(?<year>[0-9]{4})-(?<month>[0-9]{2})-(?<day>[0-9]{2})T(?<hour>[0-9]{2}):(?<minute>[0-9]{2})"
              + "(?::(?<second>[0-9]{2})(?:\\.(?<fraction>[0-9]{1,9}))?)?"
              + "(?:(?:Z|(?<sign>[+-])(?<zoneHour>[0-9]{2}):(?<zoneMinute>[0-9]{2})(?::(?<zoneSecond>[0-9]{2}))?)"
              + "(?:\\[[A-Za-z0-9_/+:~.-]{1,64}\\])?)?");

  private Times() {}

  /** Tells whether a timestamptz of this time can be read back by every client: years 1 to 9999. */
  public static boolean isShowable(long timeMs) {
    return timeMs >= MIN_MS && timeMs <= MAX_MS;
  }

  /**
   * Writes a time as ISO 8601 UTC with ms and {@code Z}.
   *
   * @throws DataException the time lies outside of the years 1 to 9999
   */
  public static String format(long timeMs) {
    if (!isShowable(timeMs)) {
      throw new DataException("time: saw " + timeMs + " ms since the epoch, expected one in the years 1 to 9999");
    }
    return FORMAT.format(Instant.ofEpochMilli(timeMs));
  }

  /**
   * Reads an ISO 8601 time as java.time prints it; one without a zone is UTC.
   *
   * @return ms since the epoch, rounded down
   * @throws DataException the text is no such time, or lies outside of the years 1 to 9999
   */
  public static long parse(String text) {
    Matcher matched = ISO.matcher(text);
    if (text.length() > LONGEST || !matched.matches()) {
      throw unreadable(text);
    }
    int hour = part(matched, "hour");
    int minute = part(matched, "minute");
    int second = part(matched, "second");
    if (hour > 23 || minute > 59 || second > 59) {
      throw unreadable(text);
    }
    long seconds = day(matched, text) * 86_400 + hour * 3600 + minute * 60 + second - zoneS(matched, text);
    long timeMs = seconds * 1000 + fractionMs(matched.group("fraction"));
    if (!isShowable(timeMs)) {
      throw unreadable(text);
    }
    return timeMs;
  }

  private static int part(Matcher matched, String group) {
    String digits = matched.group(group);
    return digits == null ? 0 : Integer.parseInt(digits);
  }

  private static long day(Matcher matched, String text) {
    int year = part(matched, "year");
    try {
      if (year > 0) {
        return LocalDate.of(year, part(matched, "month"), part(matched, "day")).toEpochDay();
      }
    } catch (DateTimeException noSuchDay) {
      throw unreadable(text);
    }
    throw unreadable(text);
  }

  private static int zoneS(Matcher matched, String text) {
    int minute = part(matched, "zoneMinute");
    int second = part(matched, "zoneSecond");
    int total = part(matched, "zoneHour") * 3600 + minute * 60 + second;
    if (minute > 59 || second > 59 || total > MAX_ZONE_S) {
      throw unreadable(text);
    }
    return "-".equals(matched.group("sign")) ? -total : total;
  }

  private static int fractionMs(String fraction) {
    return fraction == null ? 0 : Integer.parseInt((fraction + "00").substring(0, 3));
  }

  private static DataException unreadable(String text) {
    return new DataException(
        "time: saw '"
            + text.substring(0, Math.min(text.length(), 64))
            + "', expected ISO 8601 in the years 1 to 9999, for example '2026-11-21T02:20:00.123Z'");
  }
}
