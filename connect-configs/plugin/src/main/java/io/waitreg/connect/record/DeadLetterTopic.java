package io.waitreg.connect.record;

import java.util.regex.MatchResult;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.connect.errors.DataException;

/** The name of a dead letter topic, which may say of which topic and group. */
public final class DeadLetterTopic {
  private static final int MAX_LENGTH = 249;
  private static final Pattern NAME = Pattern.compile("[a-zA-Z0-9._-]+");
  private static final Pattern PLACEHOLDER = Pattern.compile("\\{([^{}]*)}");

  private DeadLetterTopic() {}

  /**
   * Returns the dead letter topic of an input topic and a group.
   *
   * @param template in which {topic} and {group} are replaced
   * @throws DataException another placeholder, or a result that Kafka doesn't take as a topic name
   */
  public static String resolve(String template, String topic, String group) {
    String name =
        PLACEHOLDER
            .matcher(template)
            .replaceAll(found -> Matcher.quoteReplacement(replacement(found, template, topic, group)));
    if (name.length() > MAX_LENGTH || !NAME.matcher(name).matches() || name.equals(".") || name.equals("..")) {
      throw new DataException(
          "dead letter topic: '%s' becomes '%s' for topic '%s' and group '%s', expected at most %d of the characters "
              .formatted(template, name, topic, group, MAX_LENGTH)
              + "a-z, A-Z, 0-9, '.', '_', '-'");
    }
    return name;
  }

  private static String replacement(MatchResult found, String template, String topic, String group) {
    return switch (found.group(1)) {
      case "topic" -> topic;
      case "group" -> group;
      default -> throw new DataException(
          "dead letter topic: saw the placeholder '%s' in '%s', expected {topic} or {group}"
              .formatted(found.group(), template));
    };
  }
}
