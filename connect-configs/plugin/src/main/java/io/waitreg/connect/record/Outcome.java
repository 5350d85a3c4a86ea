package io.waitreg.connect.record;

import java.util.List;
import java.util.Locale;

/** How a registration ended: what its tombstone says. */
public enum Outcome {
  DONE,
  RETRIED,
  DEAD_LETTERED,
  DISCARDED,
  EXPIRED,
  REDELIVERED;

  /** Returns the headers of a tombstone. */
  public List<RecordHeader> headers() {
    return List.of(RecordHeader.of(HeaderNames.WAIT_OUTCOME, name().toLowerCase(Locale.ROOT)));
  }
}
