package io.waitreg.bench;

import io.confluent.parallelconsumer.ParallelConsumerOptions.ProcessingOrder;
import java.util.Arrays;
import java.util.HashMap;
import java.util.Locale;
import java.util.Map;

/**
 * The arguments of a flow contender, each as {@code --name value}.
 *
 * @param kafka bootstrap servers
 * @param topic what is consumed, from its beginning
 * @param group consumer group
 * @param inFlight calls at once, at most
 * @param handler what a call does
 * @param fromRecord the call whose end begins the measurement, counted from 1
 * @param toRecord the call whose end ends it
 * @param limitS when to give up, s
 * @param order of the Parallel Consumer
 */
public record FlowArguments(
    String kafka,
    String topic,
    String group,
    int inFlight,
    Handler handler,
    int fromRecord,
    int toRecord,
    double limitS,
    ProcessingOrder order) {

  /** Refuses numbers that nothing could be measured with. */
  public FlowArguments {
    if (inFlight < 1 || fromRecord < 1 || toRecord <= fromRecord) {
      throw new IllegalArgumentException(
          String.format(
              "saw --from-record %d, --to-record %d, --in-flight %d; expected 1 or more, in this order, and at least"
                  + " 1 in flight",
              fromRecord, toRecord, inFlight));
    }
  }

  /**
   * Reads a command line.
   *
   * @throws IllegalArgumentException an argument is unknown, missing or wrong; the message says which
   */
  public static FlowArguments parse(String... given) {
    Map<String, String> left = pairs(given);
    FlowArguments arguments =
        new FlowArguments(
            take(left, "--kafka"),
            take(left, "--topic"),
            take(left, "--group"),
            Integer.parseInt(take(left, "--in-flight")),
            oneOf(Handler.class, "--handler", take(left, "--handler")),
            Integer.parseInt(take(left, "--from-record")),
            Integer.parseInt(take(left, "--to-record")),
            Double.parseDouble(take(left, "--limit-s")),
            oneOf(ProcessingOrder.class, "--order", take(left, "--order")));
    if (!left.isEmpty()) {
      throw new IllegalArgumentException("saw " + left.keySet() + ", which is no argument of a flow contender");
    }
    return arguments;
  }

  private static Map<String, String> pairs(String[] given) {
    if (given.length % 2 != 0) {
      throw new IllegalArgumentException("saw " + Arrays.toString(given) + ", expected --name value --name value ...");
    }
    Map<String, String> pairs = new HashMap<>();
    for (int at = 0; at < given.length; at += 2) {
      pairs.put(given[at], given[at + 1]);
    }
    return pairs;
  }

  private static String take(Map<String, String> left, String name) {
    String value = left.remove(name);
    if (value == null) {
      throw new IllegalArgumentException(name + " is missing");
    }
    return value;
  }

  private static <E extends Enum<E>> E oneOf(Class<E> kind, String name, String value) {
    for (E known : kind.getEnumConstants()) {
      if (known.name().toLowerCase(Locale.ROOT).equals(value)) {
        return known;
      }
    }
    throw new IllegalArgumentException(name + ": saw " + value + ", expected one of "
        + Arrays.toString(kind.getEnumConstants()).toLowerCase(Locale.ROOT));
  }
}
