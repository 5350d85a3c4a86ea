package io.waitreg.bench;

import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelConsumerOptions.ProcessingOrder;
import io.confluent.parallelconsumer.ParallelEoSStreamProcessor;
import java.nio.charset.StandardCharsets;
import java.time.Instant;
import java.util.HashMap;
import java.util.List;
import java.util.Locale;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * Confluent's Parallel Consumer, its core module, with the arguments and the handlers of bench/contenders/flow_program.py.
 *
 * <p>Prints one line of JSON once the measured calls are over, and ends with 0; with 1 when they aren't in time.
 */
public final class ParallelConsumerFlow {
  private static final int CALL_DIGITS = 8;
  private static final int HEAD_BYTES = 28;
  private static final long LOOK_MS = 1000;

  private ParallelConsumerFlow() {}

  /** Runs one flow. */
  public static void main(String[] given) throws InterruptedException {
    // On the spot: the group isn't used again.
    Runtime.getRuntime().halt(run(arguments(given)));
  }

  /** Returns arguments by their names. */
  static Map<String, String> arguments(String[] given) {
    Map<String, String> arguments = new HashMap<>();
    for (int at = 0; at < given.length; at += 2) {
      arguments.put(given[at], given[at + 1]);
    }
    return arguments;
  }

  private static int run(Map<String, String> arguments) throws InterruptedException {
    String handler = arguments.get("handler");
    int to = Integer.parseInt(arguments.get("to_record"));
    Meter meter = new Meter(Integer.parseInt(arguments.get("from_record")), to);
    ParallelEoSStreamProcessor<byte[], byte[]> consumer = new ParallelEoSStreamProcessor<>(options(arguments));
    consumer.subscribe(List.of(arguments.get("topic")));
    consumer.poll(context -> call(handler, context.getSingleConsumerRecord().value(), meter));
    double limitS = Double.parseDouble(arguments.get("limit_s"));
    long deadlineNs = System.nanoTime() + (long) (limitS * 1e9);
    while (!meter.awaitEnd(LOOK_MS)) {
      if (consumer.isClosedOrFailed() || System.nanoTime() - deadlineNs > 0) {
        System.err.printf("%d calls of %d were over: given up; %s%n", meter.completed(), to, consumer.getFailureCause());
        return 1;
      }
    }
    System.out.println(meter.asJson());
    System.out.flush();
    return 0;
  }

  private static void call(String handler, byte[] value, Meter meter) {
    switch (handler) {
      case "noop" -> meter.count();
      case "latency" -> {
        Instant now = Instant.now();
        meter.note(now.getEpochSecond() * 1_000_000_000 + now.getNano() - number(value, CALL_DIGITS, HEAD_BYTES));
      }
      case "timed" -> {
        meter.began();
        try {
          Thread.sleep(number(value, 0, CALL_DIGITS));
        } catch (InterruptedException cutOff) {
          throw new IllegalStateException("interrupted within a call", cutOff);
        }
        meter.ended();
      }
      default -> throw new IllegalArgumentException("handler " + handler);
    }
  }

  /** Returns the options of a flow: N, the order, and its consumer. */
  static ParallelConsumerOptions<byte[], byte[]> options(Map<String, String> arguments) {
    Map<String, Object> config =
        Map.of(
            ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, arguments.get("kafka"),
            ConsumerConfig.GROUP_ID_CONFIG, arguments.get("group"),
            ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest",
            ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false,
            ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class,
            ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
    return ParallelConsumerOptions.<byte[], byte[]>builder()
        .ordering(ProcessingOrder.valueOf(arguments.get("order").toUpperCase(Locale.ROOT)))
        // Of the core module this is the number of threads, each of which is blocked by its call; of Vert.x the calls.
        .maxConcurrency(Integer.parseInt(arguments.get("in_flight")))
        .consumer(new KafkaConsumer<>(config))
        .build();
  }

  private static long number(byte[] value, int from, int to) {
    return Long.parseLong(new String(value, from, to - from, StandardCharsets.US_ASCII));
  }
}
