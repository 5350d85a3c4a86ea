package io.waitreg.connect.record;

/**
 * One registration; what a wait record in the legacy format doesn't say is null.
 *
 * @param expiresAtMs ms since the epoch, years 1 to 9999
 * @param expiryPolicy dlq or redeliver
 * @param redeliverTo group or origin: where a redelivery goes; null means group
 * @param idempotencyKey null when it is the wait id, as in the first delivery
 * @param source where it was consumed when it had been delivered again, else null
 */
public record WaitRecord(
    Original original,
    String waitId,
    long expiresAtMs,
    String group,
    String instance,
    Integer delivery,
    String deadLetterTopic,
    String expiryPolicy,
    Integer maxDeliveries,
    String redeliverTo,
    String idempotencyKey,
    Source source,
    String traceparent,
    String tracestate) {}
