package io.waitreg.connect.record;

import java.util.List;

/**
 * A record of a dead letter topic: the original's headers, where it came from, why it ended here.
 *
 * @param headers the original headers; all there are when the wait registry didn't write it
 * @param lineage null when the wait registry didn't write it
 * @param failure null when the wait registry didn't write it
 */
public record DeadLetter(List<RecordHeader> headers, Lineage lineage, Failure failure) {
  /** Returns the headers of the Kafka record; key and value are the original's. */
  public List<RecordHeader> encode() {
    List<RecordHeader> encoded = lineage.appendedTo(headers);
    failure.appendTo(encoded);
    return encoded;
  }

  /** Reads the headers of a record of a dead letter topic. Nothing is ever lost. */
  public static DeadLetter decode(List<RecordHeader> headers) {
    Lineage.Split split = Lineage.split(headers);
    Failure failure = split.lineage() == null ? null : Failure.read(split.others());
    return failure == null
        ? new DeadLetter(headers, null, null)
        : new DeadLetter(split.headers(), split.lineage(), failure);
  }
}
