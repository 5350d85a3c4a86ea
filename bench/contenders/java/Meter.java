package io.waitreg.bench;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Arrays;
import java.util.Locale;
import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;

/**
 * Measures from the end of one call to the end of a later one, as the other contenders' meters do.
 *
 * <p>One atomic counter gives each call its number, some 20 ns; the rest is striped, so that threads don't meet in it.
 */
final class Meter {
  private static final long IDLE = Long.MIN_VALUE;
  private static final double NS_PER_S = 1e9;
  private static final double NS_PER_MS = 1e6;
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  /** The meter at one moment: a clock, CPU of all threads (in steps of 10 ms), and what all calls have taken so far. */
  private record Mark(long clockNs, long cpuNs, long busyNs) {}

  private final int from;
  private final int to;
  private final long[] agesNs;
  private final Queue<AtomicLong> beginnings = new ConcurrentLinkedQueue<>();
  private final ThreadLocal<AtomicLong> own = ThreadLocal.withInitial(this::registered);
  private final AtomicInteger completed = new AtomicInteger();
  private final LongAdder overNs = new LongAdder();
  private final LongAdder measured = new LongAdder();
  private final LongAdder measuredNs = new LongAdder();
  private final CountDownLatch ended = new CountDownLatch(1);
  private volatile long firstNs;
  private volatile Mark begin;
  private volatile Mark end;

  Meter(int from, int to, boolean measuresAges) {
    this.from = from;
    this.to = to;
    this.agesNs = new long[measuresAges ? to - from : 0];
    // Not for its figures: it loads what a mark needs, which takes longer than any call.
    this.begin = mark();
  }

  /** Counts a call that took no time and began so long after its record was produced. */
  void count(long ageNs) {
    over(0, ageNs);
  }

  void began() {
    own.get().set(System.nanoTime());
  }

  void ended() {
    long durationNs = System.nanoTime() - own.get().getAndSet(IDLE);
    overNs.add(durationNs);
    over(durationNs, 0);
  }

  int completed() {
    return completed.get();
  }

  /** Waits until the last measured call is over and all are added up; false when that takes longer. */
  boolean awaitEnd(long timeoutMs) throws InterruptedException {
    if (!ended.await(timeoutMs, TimeUnit.MILLISECONDS)) {
      return false;
    }
    // A call with a lower number may have been between its number and its sum when the last one ended.
    while (measured.sum() < to - from) {
      Thread.sleep(1);
    }
    return true;
  }

  /** Returns the line that the benchmark reads; after {@link #awaitEnd}. */
  String asJson() {
    Arrays.sort(agesNs);
    String latencies =
        agesNs.length == 0
            ? ""
            : String.format(Locale.ROOT, ", \"p50_ms\": %.3f, \"p99_ms\": %.3f", percentileMs(50), percentileMs(99));
    return String.format(
        Locale.ROOT,
        "{\"records\": %d, \"seconds\": %.6f, \"cpu_s\": %.3f, \"calls_s\": %.6f, \"busy_s\": %.6f, \"warm_s\": %.3f,"
            + " \"rss_bytes\": %d, \"rss_now_bytes\": %d%s}",
        to - from,
        (end.clockNs() - begin.clockNs()) / NS_PER_S,
        (end.cpuNs() - begin.cpuNs()) / NS_PER_S,
        measuredNs.sum() / NS_PER_S,
        (end.busyNs() - begin.busyNs()) / NS_PER_S,
        (begin.clockNs() - firstNs) / NS_PER_S,
        memory("VmHWM:"),
        memory("VmRSS:"),
        latencies);
  }

  private void over(long durationNs, long ageNs) {
    int number = completed.incrementAndGet();
    if (number == 1) {
      firstNs = System.nanoTime();
    }
    if (number == from) {
      begin = mark();
    } else if (number > from && number <= to) {
      measuredNs.add(durationNs);
      if (agesNs.length > 0) {
        agesNs[number - from - 1] = ageNs;
      }
      if (number == to) {
        end = mark();
        ended.countDown();
      }
      // Last: once all are counted, all durations and ages can be seen.
      measured.increment();
    }
  }

  private Mark mark() {
    long clockNs = System.nanoTime();
    long cpuNs = SYSTEM.getProcessCpuTime();
    long busyNs = overNs.sum();
    for (AtomicLong beginning : beginnings) {
      long beganNs = beginning.get();
      busyNs += beganNs == IDLE ? 0 : clockNs - beganNs;
    }
    return new Mark(clockNs, cpuNs, busyNs);
  }

  private AtomicLong registered() {
    AtomicLong beginning = new AtomicLong(IDLE);
    beginnings.add(beginning);
    return beginning;
  }

  /** Returns the nearest rank: the least age that so many per cent of the records don't exceed. */
  private double percentileMs(int percent) {
    long rank = (agesNs.length * (long) percent + 99) / 100;
    return agesNs[(int) rank - 1] / NS_PER_MS;
  }

  private static long memory(String name) {
    try {
      for (String line : Files.readAllLines(Path.of("/proc/self/status"))) {
        if (line.startsWith(name)) {
          return Long.parseLong(line.replaceAll("[^0-9]", "")) * 1024;
        }
      }
    } catch (IOException unreadable) {
      throw new UncheckedIOException(unreadable);
    }
    throw new IllegalStateException("/proc/self/status has no " + name);
  }
}
