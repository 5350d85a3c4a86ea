package io.waitreg.connect.record;

import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.errors.DataException;

/**
 * Where a record came from first and which registration it had: the block behind the original headers of a record that
 * the wait registry publishes again. What is unknown is null and gets no header; so is maxDeliveries in a dead letter,
 * idempotencyKey when it is the wait id, and source in the first delivery.
 *
 * <p>The block begins with WAIT_LINEAGE = the number of original headers, and is valid only if that number is its own
 * index and only block names follow; else all headers are original.
 */
public record Lineage(
    String originalTopic,
    Integer originalPartition,
    Long originalOffset,
    Long originalTimestampMs,
    String originalTimestampType,
    String waitId,
    Integer waitPartition,
    Long waitOffset,
    String group,
    String instance,
    Integer delivery,
    Integer maxDeliveries,
    String idempotencyKey,
    Source source) {

  /**
   * A record's headers, cut.
   *
   * @param headers the original headers; all of them when there is no valid block that can be read
   * @param lineage null when there is none
   * @param others the block's DLQ_* headers by name
   */
  public record Split(List<RecordHeader> headers, Lineage lineage, Map<String, byte[]> others) {}

  /** Returns the lineage of an original record and its registration. */
  public static Lineage of(WaitRecord wait, Integer waitPartition, Long waitOffset) {
    Original original = wait.original();
    return new Lineage(
        original.topic(),
        original.partition(),
        original.offset(),
        original.timestampMs(),
        original.timestampType(),
        wait.waitId(),
        waitPartition,
        waitOffset,
        wait.group(),
        wait.instance(),
        wait.delivery(),
        null,
        wait.waitId().equals(wait.idempotencyKey()) ? null : wait.idempotencyKey(),
        wait.source());
  }

  /** Returns the original headers, unchanged and in order, followed by this block. */
  public List<RecordHeader> appendedTo(List<RecordHeader> originalHeaders) {
    var headers = new ArrayList<>(originalHeaders);
    headers.add(RecordHeader.of(HeaderNames.WAIT_LINEAGE, originalHeaders.size()));
    WaitRecordCodec.addKnown(headers, HeaderNames.ORIGINAL_TOPIC, originalTopic);
    WaitRecordCodec.addKnown(headers, HeaderNames.ORIGINAL_PARTITION, originalPartition);
    WaitRecordCodec.addKnown(headers, HeaderNames.ORIGINAL_OFFSET, originalOffset);
    WaitRecordCodec.addKnown(headers, HeaderNames.ORIGINAL_TIMESTAMP, originalTimestampMs);
    WaitRecordCodec.addKnown(headers, HeaderNames.ORIGINAL_TIMESTAMP_TYPE, originalTimestampType);
    WaitRecordCodec.addKnown(headers, HeaderNames.WAIT_EXPIRATION_UUID, waitId);
    WaitRecordCodec.addKnown(headers, HeaderNames.WAIT_PARTITION, waitPartition);
    WaitRecordCodec.addKnown(headers, HeaderNames.WAIT_OFFSET, waitOffset);
    WaitRecordCodec.addKnown(headers, HeaderNames.WAIT_GROUP, group);
    WaitRecordCodec.addKnown(headers, HeaderNames.WAIT_INSTANCE, instance);
    WaitRecordCodec.addKnown(headers, HeaderNames.WAIT_DELIVERY, delivery);
    WaitRecordCodec.addKnown(headers, HeaderNames.WAIT_MAX_DELIVERIES, maxDeliveries);
    WaitRecordCodec.addKnown(headers, HeaderNames.WAIT_IDEMPOTENCY_KEY, idempotencyKey);
    WaitRecordCodec.addSource(headers, source);
    return headers;
  }

  /** Cuts the lineage block off a record's headers. Nothing is ever lost. */
  public static Split split(List<RecordHeader> headers) {
    int start = blockStart(headers);
    if (start < 0) {
      return new Split(headers, null, Map.of());
    }
    List<RecordHeader> block = headers.subList(start + 1, headers.size());
    try {
      return new Split(headers.subList(0, start), read(new SystemHeaders(block)), deadLetterHeaders(block));
    } catch (DataException unreadable) {
      return new Split(headers, null, Map.of());
    }
  }

  /** Returns the index of the only WAIT_LINEAGE that can be valid (the last, if none but block names follow), or -1. */
  private static int blockStart(List<RecordHeader> headers) {
    int index = headers.size() - 1;
    while (index >= 0 && HeaderNames.isInBlock(headers.get(index).name())) {
      index--;
    }
    boolean isValid =
        index >= 0
            && headers.get(index).name().equals(HeaderNames.WAIT_LINEAGE)
            && Integer.toString(index).equals(Utf8.strictly(headers.get(index).value()));
    return isValid ? index : -1;
  }

  private static Lineage read(SystemHeaders block) {
    String topic = block.text(HeaderNames.ORIGINAL_TOPIC);
    String waitId = block.waitId(HeaderNames.WAIT_EXPIRATION_UUID);
    if (topic == null || waitId == null) {
      throw Unreadable.missing("ORIGINAL_TOPIC, WAIT_EXPIRATION_UUID", "both in every lineage block");
    }
    return new Lineage(
        topic,
        block.int32(HeaderNames.ORIGINAL_PARTITION, 0),
        block.int64(HeaderNames.ORIGINAL_OFFSET, 0),
        block.int64(HeaderNames.ORIGINAL_TIMESTAMP, Long.MIN_VALUE),
        block.choice(HeaderNames.ORIGINAL_TIMESTAMP_TYPE, WaitRecordCodec.TIMESTAMP_TYPES),
        waitId,
        block.int32(HeaderNames.WAIT_PARTITION, 0),
        block.int64(HeaderNames.WAIT_OFFSET, 0),
        block.text(HeaderNames.WAIT_GROUP),
        block.text(HeaderNames.WAIT_INSTANCE),
        block.int32(HeaderNames.WAIT_DELIVERY, 1),
        block.int32(HeaderNames.WAIT_MAX_DELIVERIES, 1),
        block.waitId(HeaderNames.WAIT_IDEMPOTENCY_KEY),
        WaitRecordCodec.source(block));
  }

  private static Map<String, byte[]> deadLetterHeaders(List<RecordHeader> block) {
    var found = new LinkedHashMap<String, byte[]>();
    for (RecordHeader header : block) {
      if (HeaderNames.DLQ_NAMES.contains(header.name())) {
        found.put(header.name(), header.value());
      }
    }
    return found;
  }
}
