package io.waitreg.bench;

import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;

/**
 * The resident memory of this process, heap and all else.
 *
 * @param peakBytes what it held at most so far
 * @param nowBytes what it holds now
 */
record OwnMemory(long peakBytes, long nowBytes) {
  private static final Path STATUS = Path.of("/proc/self/status");
  private static final int BYTES_A_KB = 1024;

  /** Asks the kernel. */
  static OwnMemory read() {
    try {
      List<String> lines = Files.readAllLines(STATUS);
      return new OwnMemory(bytes(lines, "VmHWM:"), bytes(lines, "VmRSS:"));
    } catch (IOException unreadable) {
      throw new UncheckedIOException(unreadable);
    }
  }

  private static long bytes(List<String> lines, String name) {
    for (String line : lines) {
      if (line.startsWith(name)) {
        return Long.parseLong(line.replaceAll("[^0-9]", "")) * BYTES_A_KB;
      }
    }
    throw new IllegalStateException(STATUS + " has no " + name);
  }
}
