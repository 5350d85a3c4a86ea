package io.waitreg.connect.record;

import java.util.Set;

/** The names of all headers that the wait registry writes; original headers may bear any of them too. */
public final class HeaderNames {
  public static final String ORIGINAL_TOPIC = "ORIGINAL_TOPIC";
  public static final String ORIGINAL_PARTITION = "ORIGINAL_PARTITION";
  public static final String ORIGINAL_OFFSET = "ORIGINAL_OFFSET";
  public static final String ORIGINAL_TIMESTAMP = "ORIGINAL_TIMESTAMP";
  public static final String ORIGINAL_TIMESTAMP_TYPE = "ORIGINAL_TIMESTAMP_TYPE";
  public static final String ORIGINAL_KEY = "ORIGINAL_KEY";
  public static final String ORIGINAL_HEADERS = "ORIGINAL_HEADERS";
  public static final String ORIGINAL_VALUE_NULL = "ORIGINAL_VALUE_NULL";

  /** The legacy format's name of ORIGINAL_PARTITION. */
  public static final String LEGACY_PARTITION = "PARTITION";

  public static final String WAIT_EXPIRATION_UUID = "WAIT_EXPIRATION_UUID";
  public static final String WAIT_EXPIRATION_TIME = "WAIT_EXPIRATION_TIME";
  public static final String WAIT_GROUP = "WAIT_GROUP";
  public static final String WAIT_INSTANCE = "WAIT_INSTANCE";
  public static final String WAIT_DELIVERY = "WAIT_DELIVERY";
  public static final String WAIT_DEAD_LETTER_TOPIC = "WAIT_DEAD_LETTER_TOPIC";
  public static final String WAIT_EXPIRY_POLICY = "WAIT_EXPIRY_POLICY";
  public static final String WAIT_MAX_DELIVERIES = "WAIT_MAX_DELIVERIES";
  public static final String WAIT_REDELIVER_TO = "WAIT_REDELIVER_TO";
  public static final String WAIT_IDEMPOTENCY_KEY = "WAIT_IDEMPOTENCY_KEY";
  public static final String WAIT_OUTCOME = "WAIT_OUTCOME";

  public static final String SOURCE_TOPIC = "SOURCE_TOPIC";
  public static final String SOURCE_PARTITION = "SOURCE_PARTITION";
  public static final String SOURCE_OFFSET = "SOURCE_OFFSET";

  public static final String TRACEPARENT = "traceparent";
  public static final String TRACESTATE = "tracestate";

  public static final String WAIT_LINEAGE = "WAIT_LINEAGE";
  public static final String WAIT_PARTITION = "WAIT_PARTITION";
  public static final String WAIT_OFFSET = "WAIT_OFFSET";

  public static final String DLQ_REASON = "DLQ_REASON";
  public static final String DLQ_ERROR_CLASS = "DLQ_ERROR_CLASS";
  public static final String DLQ_ERROR_MESSAGE = "DLQ_ERROR_MESSAGE";
  public static final String DLQ_ERROR_STACKTRACE = "DLQ_ERROR_STACKTRACE";
  public static final String DLQ_TIME = "DLQ_TIME";

  public static final String RETRY_ERROR_CLASS = "RETRY_ERROR_CLASS";
  public static final String RETRY_ERROR_MESSAGE = "RETRY_ERROR_MESSAGE";

  static final Set<String> DLQ_NAMES =
      Set.of(DLQ_REASON, DLQ_ERROR_CLASS, DLQ_ERROR_MESSAGE, DLQ_ERROR_STACKTRACE, DLQ_TIME);

  private static final Set<String> LINEAGE_NAMES =
      Set.of(
          ORIGINAL_TOPIC,
          ORIGINAL_PARTITION,
          ORIGINAL_OFFSET,
          ORIGINAL_TIMESTAMP,
          ORIGINAL_TIMESTAMP_TYPE,
          WAIT_EXPIRATION_UUID,
          WAIT_PARTITION,
          WAIT_OFFSET,
          WAIT_GROUP,
          WAIT_INSTANCE,
          WAIT_DELIVERY,
          WAIT_MAX_DELIVERIES,
          WAIT_IDEMPOTENCY_KEY,
          SOURCE_TOPIC,
          SOURCE_PARTITION,
          SOURCE_OFFSET,
          RETRY_ERROR_CLASS,
          RETRY_ERROR_MESSAGE);

  private HeaderNames() {}

  /** Tells whether a header may follow WAIT_LINEAGE in its block. WAIT_LINEAGE itself may not. */
  static boolean isInBlock(String name) {
    return LINEAGE_NAMES.contains(name) || DLQ_NAMES.contains(name);
  }
}
