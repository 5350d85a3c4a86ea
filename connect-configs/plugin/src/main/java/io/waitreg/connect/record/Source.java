package io.waitreg.connect.record;

/** Where a record that the wait registry delivered again was consumed now. */
public record Source(String topic, int partition, long offset) {}
