package io.waitreg.connect;

import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;

/** What a source connector's record is: a row to export, a heartbeat, or nothing that anybody must see. */
record SourceEvent(Kind kind, Struct row) {
  enum Kind {
    ROW,
    HEARTBEAT,
    NOTHING
  }

  private static final SourceEvent NOTHING = new SourceEvent(Kind.NOTHING, null);
  private static final SourceEvent HEARTBEAT = new SourceEvent(Kind.HEARTBEAT, null);
  private static final String HEARTBEAT_SCHEMA = "io.debezium.connector.common.Heartbeat";

  /**
   * Looks at a record.
   *
   * @param inEnvelope whether rows stand in Debezium's envelope, under {@code after}
   * @throws DataException it is a row of another table, or the option {@code after} doesn't fit
   */
  static SourceEvent of(ConnectRecord<?> record, boolean inEnvelope) {
    if (record.value() == null) {
      return NOTHING; // behind a delete of the outbox's purge
    }
    if (!(record.value() instanceof Struct value)) {
      throw unexpected(record, "a " + record.value().getClass().getSimpleName());
    }
    if (HEARTBEAT_SCHEMA.equals(value.schema().name())) {
      return HEARTBEAT;
    }
    if (value.schema().field("op") != null && value.schema().field("source") != null) {
      return inEnvelope ? changeEvent(record, value) : refusedEnvelope();
    }
    if (value.schema().field(OutboxRow.ID) == null) {
      throw unexpected(record, "columns without " + OutboxRow.ID);
    }
    if (inEnvelope) {
      throw new DataException("after=true: saw a row that stands in no Debezium envelope. Set after=false");
    }
    return isDeleted(value) ? NOTHING : new SourceEvent(Kind.ROW, value);
  }

  private static SourceEvent changeEvent(ConnectRecord<?> record, Struct envelope) {
    boolean isNew = "c".equals(envelope.get("op")) || "r".equals(envelope.get("op"));
    Object after = envelope.schema().field("after") == null ? null : envelope.get("after");
    // Only what was inserted (c) or found by the snapshot (r) is exported: any other event would be a second export.
    if (!isNew || !(after instanceof Struct row)) {
      return NOTHING;
    }
    if (row.schema().field(OutboxRow.ID) == null) {
      throw unexpected(record, "columns without " + OutboxRow.ID);
    }
    return new SourceEvent(Kind.ROW, row);
  }

  private static SourceEvent refusedEnvelope() {
    throw new DataException("after=false: saw a row in Debezium's envelope. Set after=true");
  }

  /** Tells a delete that Debezium's ExtractNewRecordState has rewritten. */
  private static boolean isDeleted(Struct row) {
    Schema schema = row.schema();
    return schema.field("__deleted") != null && "true".equals(String.valueOf(row.get("__deleted")));
  }

  private static DataException unexpected(ConnectRecord<?> record, String seen) {
    return new DataException(
        "record for topic '%s': saw %s, expected a row of expired waits. Let the connector read no other table"
            .formatted(record.topic(), seen));
  }
}
