package io.waitreg.bench;

import java.time.Instant;

/** What a call does with a record; the same in every contender. */
public enum Handler {
  /** Nothing. */
  NOOP {
    @Override
    void call(byte[] value, Meter meter) {
      meter.count();
    }
  },

  /** Sleeps as long as the value says. It blocks the thread, as every call in the core module does. */
  TIMED {
    @Override
    void call(byte[] value, Meter meter) {
      long orderedMs = RecordValue.callMs(value);
      meter.began();
      try {
        Thread.sleep(orderedMs);
      } catch (InterruptedException cutOff) {
        Thread.currentThread().interrupt();
        throw new IllegalStateException("cut off in the midst of a call", cutOff);
      }
      meter.ended(orderedMs);
    }
  },

  /** Notes how old the record is. */
  LATENCY {
    @Override
    void call(byte[] value, Meter meter) {
      meter.note(epochNs() - RecordValue.producedNs(value));
    }
  };

  private static final long NS_A_S = 1_000_000_000;

  /** Handles one record and counts it. */
  abstract void call(byte[] value, Meter meter);

  /** Tells whether ages of records are measured. */
  boolean measuresAges() {
    return this == LATENCY;
  }

  private static long epochNs() {
    Instant now = Instant.now();
    return now.getEpochSecond() * NS_A_S + now.getNano();
  }
}
