package io.waitreg.bench;

import com.sun.management.OperatingSystemMXBean;
import java.lang.management.ManagementFactory;

/**
 * What stood on the meter at one moment.
 *
 * @param clockNs a clock that never steps
 * @param cpuNs CPU of this process, user and system, all threads; it moves in steps of 10 ms
 * @param busyNs what all calls have taken, those under way so far
 */
record Mark(long clockNs, long cpuNs, long busyNs) {
  private static final OperatingSystemMXBean SYSTEM =
      (OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean();

  /** Reads clock, CPU and calls now. */
  static Mark of(CallsUnderWay underWay) {
    long clockNs = System.nanoTime();
    return new Mark(clockNs, SYSTEM.getProcessCpuTime(), underWay.busyNs(clockNs));
  }
}
