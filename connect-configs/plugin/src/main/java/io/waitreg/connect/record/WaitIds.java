package io.waitreg.connect.record;

import java.util.regex.Pattern;

/** What a wait id looks like: any UUID in canonical form (the legacy format's are random ones). */
public final class WaitIds {
  private static final Pattern CANONICAL =
      Pattern.compile("[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}");

  private WaitIds() {}

  /** Tells whether a text can key a wait record. */
  public static boolean isWaitId(String text) {
    return text != null && CANONICAL.matcher(text).matches();
  }
}
