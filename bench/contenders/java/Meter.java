package io.waitreg.bench;

import com.sun.management.OperatingSystemMXBean;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.lang.management.ManagementFactory;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
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

  /** The meter at one moment: a clock, CPU of all threads (in steps of 10 ms), and the integral of calls in flight. */
  private record Mark(long clockNs, long cpuNs, long busyNs) {}

  private final int from;
  private final int to;
  private final AtomicInteger completed = new AtomicInteger();
  private final LongAdder overNs = new LongAdder();
  private final Queue<AtomicLong> beginnings = new ConcurrentLinkedQueue<>();
  private final ThreadLocal<AtomicLong> own = ThreadLocal.withInitial(this::registered);
  private final List<Long> agesNs = Collections.synchronizedList(new ArrayList<>());
  private final CountDownLatch ended = new CountDownLatch(1);
  private volatile Mark begin;
  private volatile Mark end;

  Meter(int from, int to) {
    this.from = from;
    this.to = to;
    // Not for its figures: it loads what a mark needs, which takes longer than any call.
    this.begin = mark();
  }

  /** Counts a call that took no time. */
  void count() {
    int number = completed.incrementAndGet();
    if (number == from) {
      agesNs.clear();
      begin = mark();
    } else if (number == to) {
      end = mark();
      ended.countDown();
    }
  }

  /** Counts a call that took no time and began so long after its record was published; for few records per second. */
  void note(long ageNs) {
    agesNs.add(ageNs);
    count();
  }

  void began() {
    own.get().set(System.nanoTime());
  }

  void ended() {
    overNs.add(System.nanoTime() - own.get().getAndSet(IDLE));
    count();
  }

  int completed() {
    return completed.get();
  }

  /** Waits until the last measured call is over; false when that takes longer. */
  boolean awaitEnd(long timeoutMs) throws InterruptedException {
    return ended.await(timeoutMs, TimeUnit.MILLISECONDS);
  }

  /** Returns the line that the benchmark reads; after {@link #awaitEnd}. */
  String asJson() {
    List<Long> ages = Arrays.stream(agesNs.toArray(new Long[0])).sorted().toList();
    String latencies =
        ages.isEmpty()
            ? ""
            : String.format(
                Locale.ROOT, ", \"p50_ms\": %.3f, \"p99_ms\": %.3f", percentileMs(ages, 50), percentileMs(ages, 99));
    return String.format(
        Locale.ROOT,
        "{\"records\": %d, \"seconds\": %.6f, \"cpu_s\": %.3f, \"busy_s\": %.6f,"
            + " \"rss_bytes\": %d, \"rss_now_bytes\": %d%s}",
        to - from,
        (end.clockNs() - begin.clockNs()) / NS_PER_S,
        (end.cpuNs() - begin.cpuNs()) / NS_PER_S,
        (end.busyNs() - begin.busyNs()) / NS_PER_S,
        memory("VmHWM:"),
        memory("VmRSS:"),
        latencies);
  }

  private Mark mark() {
    long clockNs = System.nanoTime();
    long busyNs = overNs.sum();
    for (AtomicLong beginning : beginnings) {
      long beganNs = beginning.get();
      busyNs += beganNs == IDLE ? 0 : clockNs - beganNs;
    }
    return new Mark(clockNs, SYSTEM.getProcessCpuTime(), busyNs);
  }

  private AtomicLong registered() {
    AtomicLong beginning = new AtomicLong(IDLE);
    beginnings.add(beginning);
    return beginning;
  }

  /** Returns the nearest rank: the least age that so many per cent of the records don't exceed. */
  private static double percentileMs(List<Long> sorted, int percent) {
    return sorted.get((sorted.size() * percent + 99) / 100 - 1) / NS_PER_MS;
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
