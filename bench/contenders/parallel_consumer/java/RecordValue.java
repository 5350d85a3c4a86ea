package io.waitreg.bench;

/** What the benchmark's producer writes at the beginning of a value, in decimal digits. */
final class RecordValue {
  private static final int CALL_BYTES = 8;
  private static final int PRODUCED_BYTES = 20;

  private RecordValue() {}

  /** Returns how long a timed call takes, ms: bytes 0 to 7. */
  static long callMs(byte[] value) {
    return number(value, 0, CALL_BYTES);
  }

  /** Returns when the record was produced, ns since the epoch: bytes 8 to 27. */
  static long producedNs(byte[] value) {
    return number(value, CALL_BYTES, CALL_BYTES + PRODUCED_BYTES);
  }

  private static long number(byte[] value, int from, int to) {
    long number = 0;
    for (int at = from; at < to; at++) {
      byte digit = value[at];
      if (digit < '0' || digit > '9') {
        throw new IllegalArgumentException("byte " + at + " of a value: saw " + digit + ", expected a decimal digit");
      }
      number = number * 10 + digit - '0';
    }
    return number;
  }
}
