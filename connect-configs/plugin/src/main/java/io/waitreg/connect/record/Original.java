package io.waitreg.connect.record;

import java.util.List;

/**
 * A record as it was when it was first delivered; what the legacy format doesn't say is null.
 *
 * @param timestampMs ms since the epoch, -1 for none
 * @param timestampType create, append or none
 */
public record Original(
    String topic,
    Integer partition,
    Long offset,
    Long timestampMs,
    String timestampType,
    byte[] key,
    byte[] value,
    List<RecordHeader> headers) {}
