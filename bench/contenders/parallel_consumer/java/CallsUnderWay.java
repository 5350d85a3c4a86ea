package io.waitreg.bench;

import java.util.Queue;
import java.util.concurrent.ConcurrentLinkedQueue;
import java.util.concurrent.atomic.AtomicLong;
import java.util.concurrent.atomic.LongAdder;

/** How long calls have taken, also those that aren't over: each thread notes for itself when its call began. */
final class CallsUnderWay {
  private static final long IDLE = Long.MIN_VALUE;

  private final Queue<AtomicLong> beginnings = new ConcurrentLinkedQueue<>();
  private final ThreadLocal<AtomicLong> own = ThreadLocal.withInitial(this::registered);
  private final LongAdder overNs = new LongAdder();

  /** Says that a call of this thread begins. */
  void began() {
    own.get().set(System.nanoTime());
  }

  /** Says that the call of this thread is over, and returns how long it took, ns. */
  long ended() {
    AtomicLong beginning = own.get();
    long durationNs = System.nanoTime() - beginning.getAndSet(IDLE);
    overNs.add(durationNs);
    return durationNs;
  }

  /** Returns what all calls have taken up to a moment, ns; a call that ends at that very moment may be left out. */
  long busyNs(long clockNs) {
    long busyNs = overNs.sum();
    for (AtomicLong beginning : beginnings) {
      long beganNs = beginning.get();
      if (beganNs != IDLE) {
        busyNs += clockNs - beganNs;
      }
    }
    return busyNs;
  }

  private AtomicLong registered() {
    AtomicLong beginning = new AtomicLong(IDLE);
    beginnings.add(beginning);
    return beginning;
  }
}
