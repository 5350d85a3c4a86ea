package io.waitreg.connect.record;

import java.util.ArrayList;
import java.util.List;
import org.apache.kafka.connect.errors.DataException;

/** Reads and writes wait records: key = wait id, value = the original's value, the rest in headers. */
public final class WaitRecordCodec {
  static final List<String> TIMESTAMP_TYPES = List.of("create", "append", "none");
  private static final List<String> POLICIES = List.of("dlq", "redeliver");
  private static final List<String> REDELIVER_TO = List.of("group", "origin");
  private static final byte[] EMPTY = new byte[0];

  private WaitRecordCodec() {}

  /**
   * Reads a wait record in this dialect or the older one.
   *
   * <p>The older one says PARTITION instead of ORIGINAL_PARTITION, holds ORIGINAL_HEADERS as a JSON object of strings,
   * an expiry time without a zone, and needs no headers but ORIGINAL_TOPIC and WAIT_EXPIRATION_TIME. Names that aren't
   * the wait registry's are ignored.
   *
   * @param key the record's key as text; null when it is null or isn't UTF-8
   * @throws DataException it can't be read as a wait record. The message says which header, what was seen, what was
   *     expected, and holds nothing of key, value or original headers
   */
  public static WaitRecord decode(String key, byte[] value, List<RecordHeader> headers) {
    if (!WaitIds.isWaitId(key)) {
      throw new DataException(
          "wait record's key: saw "
              + (key == null ? "null, or bytes that aren't UTF-8" : key.length() + " characters that aren't one")
              + ", expected a wait ID (canonical lower-case UUID)");
    }
    var system = new SystemHeaders(headers);
    String waitId = system.waitId(HeaderNames.WAIT_EXPIRATION_UUID);
    if (waitId != null && !waitId.equals(key)) {
      throw Unreadable.header(
          HeaderNames.WAIT_EXPIRATION_UUID, system.raw(HeaderNames.WAIT_EXPIRATION_UUID), "the key, " + key);
    }
    return decode(system, key, value);
  }

  /**
   * Reads a wait record whose key can't be seen: its WAIT_EXPIRATION_UUID says the id.
   *
   * @throws DataException as for a record with its key; also where that header is missing
   */
  public static WaitRecord decodeWithoutKey(byte[] value, List<RecordHeader> headers) {
    var system = new SystemHeaders(headers);
    String waitId = system.waitId(HeaderNames.WAIT_EXPIRATION_UUID);
    if (waitId == null) {
      throw Unreadable.missing(
          HeaderNames.WAIT_EXPIRATION_UUID, "the wait id. Where only the key says it, use WaitRecordToRow instead");
    }
    return decode(system, waitId, value);
  }

  /** Returns the value of a wait record: the original's, or empty when that is null (which would be a tombstone). */
  public static byte[] value(WaitRecord wait) {
    byte[] value = wait.original().value();
    return value == null ? EMPTY : value;
  }

  /** Returns the headers of a wait record; what it doesn't know gets none. */
  public static List<RecordHeader> headers(WaitRecord wait) {
    Original original = wait.original();
    var headers = new ArrayList<RecordHeader>(20);
    addKnown(headers, HeaderNames.ORIGINAL_TOPIC, original.topic());
    addKnown(headers, HeaderNames.ORIGINAL_PARTITION, original.partition());
    addKnown(headers, HeaderNames.ORIGINAL_OFFSET, original.offset());
    addKnown(headers, HeaderNames.ORIGINAL_TIMESTAMP, original.timestampMs());
    addKnown(headers, HeaderNames.ORIGINAL_TIMESTAMP_TYPE, original.timestampType());
    headers.add(new RecordHeader(HeaderNames.ORIGINAL_KEY, original.key()));
    headers.add(RecordHeader.of(HeaderNames.ORIGINAL_HEADERS, HeadersJson.encode(original.headers())));
    headers.add(RecordHeader.of(HeaderNames.ORIGINAL_VALUE_NULL, original.value() == null));
    addKnown(headers, HeaderNames.WAIT_EXPIRATION_UUID, wait.waitId());
    addKnown(headers, HeaderNames.WAIT_EXPIRATION_TIME, Times.format(wait.expiresAtMs()));
    addKnown(headers, HeaderNames.WAIT_GROUP, wait.group());
    addKnown(headers, HeaderNames.WAIT_INSTANCE, wait.instance());
    addKnown(headers, HeaderNames.WAIT_DELIVERY, wait.delivery());
    addKnown(headers, HeaderNames.WAIT_DEAD_LETTER_TOPIC, wait.deadLetterTopic());
    addKnown(headers, HeaderNames.WAIT_EXPIRY_POLICY, wait.expiryPolicy());
    addKnown(headers, HeaderNames.WAIT_MAX_DELIVERIES, wait.maxDeliveries());
    addKnown(headers, HeaderNames.WAIT_REDELIVER_TO, wait.redeliverTo());
    addKnown(headers, HeaderNames.WAIT_IDEMPOTENCY_KEY, wait.idempotencyKey());
    addSource(headers, wait.source());
    addKnown(headers, HeaderNames.TRACEPARENT, wait.traceparent());
    addKnown(headers, HeaderNames.TRACESTATE, wait.tracestate());
    return headers;
  }

  private static WaitRecord decode(SystemHeaders system, String waitId, byte[] value) {
    if (value == null) {
      throw new DataException("wait record: saw a null value (a tombstone), expected a value");
    }
    Long expiresAtMs = system.timeMs(HeaderNames.WAIT_EXPIRATION_TIME);
    if (expiresAtMs == null) {
      throw Unreadable.missing(HeaderNames.WAIT_EXPIRATION_TIME, "the expiry time");
    }
    return new WaitRecord(
        original(system, value),
        waitId,
        expiresAtMs,
        system.text(HeaderNames.WAIT_GROUP),
        system.text(HeaderNames.WAIT_INSTANCE),
        system.int32(HeaderNames.WAIT_DELIVERY, 1),
        system.text(HeaderNames.WAIT_DEAD_LETTER_TOPIC),
        system.choice(HeaderNames.WAIT_EXPIRY_POLICY, POLICIES),
        system.int32(HeaderNames.WAIT_MAX_DELIVERIES, 1),
        system.choice(HeaderNames.WAIT_REDELIVER_TO, REDELIVER_TO),
        system.waitId(HeaderNames.WAIT_IDEMPOTENCY_KEY),
        source(system),
        system.trace(HeaderNames.TRACEPARENT),
        system.trace(HeaderNames.TRACESTATE));
  }

  private static Original original(SystemHeaders system, byte[] value) {
    String topic = system.text(HeaderNames.ORIGINAL_TOPIC);
    if (topic == null) {
      throw Unreadable.missing(HeaderNames.ORIGINAL_TOPIC, "the topic the record came from");
    }
    Integer partition = system.int32(HeaderNames.ORIGINAL_PARTITION, 0);
    return new Original(
        topic,
        partition == null ? system.int32(HeaderNames.LEGACY_PARTITION, 0) : partition,
        system.int64(HeaderNames.ORIGINAL_OFFSET, 0),
        system.int64(HeaderNames.ORIGINAL_TIMESTAMP, Long.MIN_VALUE),
        system.choice(HeaderNames.ORIGINAL_TIMESTAMP_TYPE, TIMESTAMP_TYPES),
        system.raw(HeaderNames.ORIGINAL_KEY),
        originalValue(system, value),
        originalHeaders(system.raw(HeaderNames.ORIGINAL_HEADERS)));
  }

  private static List<RecordHeader> originalHeaders(byte[] json) {
    try {
      return json == null ? List.of() : HeadersJson.decode(json);
    } catch (DataException error) {
      throw new DataException("header " + HeaderNames.ORIGINAL_HEADERS + ": " + error.getMessage());
    }
  }

  private static byte[] originalValue(SystemHeaders system, byte[] value) {
    String isNull = system.choice(HeaderNames.ORIGINAL_VALUE_NULL, List.of("true", "false"));
    if (!"true".equals(isNull)) {
      return value;
    }
    if (value.length > 0) {
      throw new DataException(
          "header " + HeaderNames.ORIGINAL_VALUE_NULL + ": saw 'true' beside a value of " + value.length + " bytes");
    }
    return null;
  }

  static Source source(SystemHeaders system) {
    String topic = system.text(HeaderNames.SOURCE_TOPIC);
    Integer partition = system.int32(HeaderNames.SOURCE_PARTITION, 0);
    Long offset = system.int64(HeaderNames.SOURCE_OFFSET, 0);
    if (topic == null && partition == null && offset == null) {
      return null;
    }
    if (topic == null || partition == null || offset == null) {
      throw Unreadable.missing("SOURCE_*", "all of topic, partition and offset, or none");
    }
    return new Source(topic, partition, offset);
  }

  static void addSource(List<RecordHeader> headers, Source source) {
    if (source != null) {
      addKnown(headers, HeaderNames.SOURCE_TOPIC, source.topic());
      addKnown(headers, HeaderNames.SOURCE_PARTITION, source.partition());
      addKnown(headers, HeaderNames.SOURCE_OFFSET, source.offset());
    }
  }

  static void addKnown(List<RecordHeader> headers, String name, Object text) {
    if (text != null) {
      headers.add(RecordHeader.of(name, text));
    }
  }
}
