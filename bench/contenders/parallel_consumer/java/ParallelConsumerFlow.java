package io.waitreg.bench;

import io.confluent.parallelconsumer.ParallelConsumerOptions;
import io.confluent.parallelconsumer.ParallelEoSStreamProcessor;
import java.io.PrintStream;
import java.util.List;
import java.util.Map;
import org.apache.kafka.clients.consumer.ConsumerConfig;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;

/**
 * A flow contender of the benchmark: Confluent's Parallel Consumer, its core module, with one handler a record.
 *
 * <p>Prints one line of JSON on stdout once the measured calls are over, and ends with 0; with 1 when they aren't in
 * time or the consumer failed, with 2 when an argument is wrong.
 */
public final class ParallelConsumerFlow {
  private static final long LOOK_MS = 1000;
  private static final double NS_A_S = 1e9;

  private ParallelConsumerFlow() {}

  /** Runs one flow; see {@link FlowArguments} for what it takes. */
  public static void main(String[] given) {
    FlowArguments arguments;
    try {
      arguments = FlowArguments.parse(given);
    } catch (IllegalArgumentException wrong) {
      System.err.println(wrong.getMessage());
      System.exit(2);
      return;
    }
    int status = run(arguments, System.out);
    // On the spot: calls that are still being made needn't be waited for, and nobody uses the group again.
    Runtime.getRuntime().halt(status);
  }

  private static int run(FlowArguments arguments, PrintStream out) {
    Meter meter = new Meter(arguments.fromRecord(), arguments.toRecord(), arguments.handler().measuresAges());
    ParallelEoSStreamProcessor<byte[], byte[]> consumer = new ParallelEoSStreamProcessor<>(options(arguments));
    consumer.subscribe(List.of(arguments.topic()));
    consumer.poll(context -> arguments.handler().call(context.getSingleConsumerRecord().value(), meter));
    if (!isMeasured(meter, consumer, arguments.limitS())) {
      System.err.printf(
          "%d calls of %d were over after %.1f s at most: given up%n",
          meter.completed(), arguments.toRecord(), arguments.limitS());
      return 1;
    }
    out.println(meter.asJson());
    out.flush();
    return 0;
  }

  /** Waits for the last measured call; false when the time is up or the consumer has failed. */
  private static boolean isMeasured(Meter meter, ParallelEoSStreamProcessor<?, ?> consumer, double limitS) {
    long deadlineNs = System.nanoTime() + (long) (limitS * NS_A_S);
    while (!meter.awaitEnd(LOOK_MS)) {
      if (consumer.isClosedOrFailed()) {
        System.err.println("the consumer failed: " + consumer.getFailureCause());
        return false;
      }
      if (System.nanoTime() - deadlineNs > 0) {
        return false;
      }
    }
    return true;
  }

  /**
   * What its documentation says, and the defaults otherwise: commits are asynchronous, every 5 s ("we suggest starting
   * with this mode"), and a record is a call of its own (batchSize 1).
   */
  private static ParallelConsumerOptions<byte[], byte[]> options(FlowArguments arguments) {
    return ParallelConsumerOptions.<byte[], byte[]>builder()
        .ordering(arguments.order())
        // Of the core module this is the number of threads, each of which is blocked by its call.
        .maxConcurrency(arguments.inFlight())
        .consumer(new KafkaConsumer<>(consumerConfig(arguments)))
        .build();
  }

  private static Map<String, Object> consumerConfig(FlowArguments arguments) {
    return Map.of(
        ConsumerConfig.BOOTSTRAP_SERVERS_CONFIG, arguments.kafka(),
        ConsumerConfig.GROUP_ID_CONFIG, arguments.group(),
        ConsumerConfig.AUTO_OFFSET_RESET_CONFIG, "earliest",
        // Demanded by the Parallel Consumer, which commits by itself.
        ConsumerConfig.ENABLE_AUTO_COMMIT_CONFIG, false,
        ConsumerConfig.KEY_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class,
        ConsumerConfig.VALUE_DESERIALIZER_CLASS_CONFIG, ByteArrayDeserializer.class);
  }
}
