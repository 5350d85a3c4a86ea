package io.waitreg.bench;

import java.util.Arrays;
import java.util.Locale;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.LongAdder;

/**
 * Measures from the end of one call to the end of a later one, as the other contenders' meters do.
 *
 * <p>One atomic counter gives each call its number, some 20 ns; the rest is striped, so that threads don't meet in it.
 */
final class Meter {
  private static final long SETTLE_MS = 1;
  private static final double NS_A_S = 1e9;
  private static final double NS_A_MS = 1e6;
  private static final double MS_A_S = 1e3;

  private final int from;
  private final int to;
  private final long[] agesNs;
  private final CallsUnderWay underWay = new CallsUnderWay();
  private final AtomicInteger completed = new AtomicInteger();
  private final LongAdder measured = new LongAdder();
  private final LongAdder measuredNs = new LongAdder();
  private final LongAdder orderedMs = new LongAdder();
  private final CountDownLatch ended = new CountDownLatch(1);
  private volatile long firstNs;
  private volatile Mark begin;
  private volatile Mark end;

  /** Prepares a meter that measures between the ends of two calls, counted from 1. */
  Meter(int from, int to, boolean measuresAges) {
    this.from = from;
    this.to = to;
    this.agesNs = new long[measuresAges ? to - from : 0];
    // Not for its figures: it loads what a mark needs, which takes longer than any call.
    this.begin = Mark.of(underWay);
  }

  /** Counts a call that took no time. */
  void count() {
    over(0, 0, 0);
  }

  /** Counts a call that took no time and began so long after its record was produced. */
  void note(long ageNs) {
    over(0, 0, ageNs);
  }

  /** Says that a call of this thread begins. */
  void began() {
    underWay.began();
  }

  /** Counts the call that this thread began, which was told to take so long. */
  void ended(long toldMs) {
    over(underWay.ended(), toldMs, 0);
  }

  /** Returns how many calls are over. */
  int completed() {
    return completed.get();
  }

  /** Waits until the last measured call is over and all are added up; false when that takes longer. */
  boolean awaitEnd(long timeoutMs) {
    try {
      if (!ended.await(timeoutMs, TimeUnit.MILLISECONDS)) {
        return false;
      }
      // A call with a lower number may have been between its number and its sum when the last one ended.
      while (measured.sum() < to - from) {
        Thread.sleep(SETTLE_MS);
      }
      return true;
    } catch (InterruptedException stopped) {
      throw new IllegalStateException("nobody interrupts the main thread", stopped);
    }
  }

  /** Returns the line that the benchmark reads; after {@link #awaitEnd}. */
  String asJson() {
    OwnMemory memory = OwnMemory.read();
    StringBuilder line = new StringBuilder(256);
    line.append(
        String.format(
            Locale.ROOT,
            "{\"records\": %d, \"seconds\": %.6f, \"cpu_s\": %.3f, \"calls_s\": %.6f, \"ordered_s\": %.3f,"
                + " \"busy_s\": %.6f, \"warm_s\": %.3f, \"rss_bytes\": %d, \"rss_now_bytes\": %d",
            to - from,
            (end.clockNs() - begin.clockNs()) / NS_A_S,
            (end.cpuNs() - begin.cpuNs()) / NS_A_S,
            measuredNs.sum() / NS_A_S,
            orderedMs.sum() / MS_A_S,
            (end.busyNs() - begin.busyNs()) / NS_A_S,
            (begin.clockNs() - firstNs) / NS_A_S,
            memory.peakBytes(),
            memory.nowBytes()));
    if (agesNs.length > 0) {
      Arrays.sort(agesNs);
      line.append(
          String.format(Locale.ROOT, ", \"p50_ms\": %.3f, \"p99_ms\": %.3f", percentileMs(50), percentileMs(99)));
    }
    return line.append('}').toString();
  }

  private void over(long durationNs, long toldMs, long ageNs) {
    int number = completed.incrementAndGet();
    if (number == 1) {
      firstNs = System.nanoTime();
    }
    if (number == from) {
      begin = Mark.of(underWay);
    } else if (number > from && number <= to) {
      measuredNs.add(durationNs);
      orderedMs.add(toldMs);
      if (agesNs.length > 0) {
        agesNs[number - from - 1] = ageNs;
      }
      if (number == to) {
        end = Mark.of(underWay);
        ended.countDown();
      }
      // Last: who sees all of them sees their durations and ages.
      measured.increment();
    }
  }

  /** Returns the nearest rank: the least age that so many percent of the records don't exceed. */
  private double percentileMs(int percent) {
    long rank = (agesNs.length * (long) percent + 99) / 100;
    return agesNs[(int) rank - 1] / NS_A_MS;
  }
}
