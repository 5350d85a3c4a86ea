package io.waitreg.connect;

import io.waitreg.connect.record.DeadLetter;
import io.waitreg.connect.record.DeadLetterTopic;
import io.waitreg.connect.record.Failure;
import io.waitreg.connect.record.Lineage;
import io.waitreg.connect.record.Outcome;
import io.waitreg.connect.record.RecordHeader;
import io.waitreg.connect.record.WaitIds;
import io.waitreg.connect.record.WaitRecord;
import java.nio.charset.StandardCharsets;
import java.time.InstantSource;
import java.util.List;
import java.util.Map;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.config.ConfigException;
import org.apache.kafka.connect.components.Versioned;
import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.data.Schema;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.sink.SinkRecord;
import org.apache.kafka.connect.transforms.Transformation;

/**
 * Turns a row of expired waits into what the sweeper would publish for it, for sources: the dead letter, or the
 * tombstone that resolves the registration. The connector writes bytes (ByteArrayConverter for key, value and headers).
 *
 * <p>A heartbeat of Debezium passes, as bytes like everything else; deletes and updates of the outbox are dropped.
 */
public final class JsonHeadersToKafkaHeaders<R extends ConnectRecord<R>> implements Transformation<R>, Versioned {
  private static final String TOPIC = "topic";
  private static final String EMIT = "emit";
  private static final String TIMESTAMP = "timestamp";
  private static final String AFTER = "after";
  private static final String JSON_FIELD = "json.field";
  private static final String TOMBSTONE = "tombstone";
  private static final String ORIGINAL = "original";

  private static final ConfigDef CONFIG =
      new ConfigDef()
          .define(
              TOPIC,
              ConfigDef.Type.STRING,
              null,
              ConfigDef.LambdaValidator.with(JsonHeadersToKafkaHeaders::validateTopic, () -> "a topic name"),
              ConfigDef.Importance.MEDIUM,
              "The dead letter topic of rows that name none; {topic} and {group} are replaced by the row's. Without it "
                  + "such a row is refused.")
          .define(
              EMIT,
              ConfigDef.Type.STRING,
              "record",
              ConfigDef.ValidString.in("record", TOMBSTONE),
              ConfigDef.Importance.HIGH,
              "What a row becomes: its dead letter (record), or the tombstone of its registration in the wait topic.")
          .define(
              TIMESTAMP,
              ConfigDef.Type.STRING,
              "none",
              ConfigDef.ValidString.in("none", ORIGINAL),
              ConfigDef.Importance.LOW,
              "The dead letter's own time: that of its export (none), or that of the original record (original), by "
                  + "which retention would delete an old one soon.")
          .define(
              AFTER,
              ConfigDef.Type.BOOLEAN,
              false,
              ConfigDef.Importance.HIGH,
              "Whether rows stand in Debezium's envelope, under 'after'.")
          .define(
              JSON_FIELD,
              ConfigDef.Type.STRING,
              null,
              ConfigDef.Importance.LOW,
              "A column with headers in JSON, which are added to the record as text. Then nothing else is done: the "
                  + "pattern's published source builds the record by other transforms.");

  private final InstantSource clock;
  private AbstractConfig config = new AbstractConfig(CONFIG, Map.of(), false);

  /** Makes a transform with the default options. */
  public JsonHeadersToKafkaHeaders() {
    this(InstantSource.system());
  }

  JsonHeadersToKafkaHeaders(InstantSource clock) {
    this.clock = clock;
  }

  @Override
  public R apply(R record) {
    String column = config.getString(JSON_FIELD);
    if (column != null) {
      return JsonColumn.addHeaders(record, column);
    }
    SourceEvent event = SourceEvent.of(record, config.getBoolean(AFTER));
    return switch (event.kind()) {
      case NOTHING -> null;
      case HEARTBEAT -> heartbeat(record);
      case ROW -> published(record, new OutboxRow(event.row()));
    };
  }

  @Override
  public ConfigDef config() {
    return CONFIG;
  }

  @Override
  public String version() {
    return PluginVersion.get();
  }

  @Override
  public void configure(Map<String, ?> configs) {
    config = new AbstractConfig(CONFIG, configs, false);
  }

  @Override
  public void close() {}

  private R published(R record, OutboxRow row) {
    if (!WaitIds.isWaitId(row.waitId())) {
      throw new DataException(
          "row of expired waits, column wait_expiration_uuid: saw none, expected a canonical lower-case UUID");
    }
    return config.getString(EMIT).equals(TOMBSTONE) ? tombstone(record, row) : deadLetter(record, row);
  }

  private R deadLetter(R record, OutboxRow row) {
    WaitRecord wait = row.registration();
    Lineage lineage = Lineage.of(wait, row.waitPartition(), row.waitOffset());
    DeadLetter letter =
        new DeadLetter(wait.original().headers(), lineage, Failure.expired(wait, clock.millis()));
    return bytes(
        record,
        topic(wait),
        null,
        wait.original().key(),
        wait.original().value(),
        timestamp(wait.original().timestampMs()),
        letter.encode());
  }

  private R tombstone(R record, OutboxRow row) {
    byte[] key = utf8(row.waitId());
    return bytes(record, row.waitTopic(), row.waitPartition(), key, null, null, Outcome.EXPIRED.headers());
  }

  /** Returns a heartbeat as bytes, since the connector's converters take nothing else: who sends it, and its time. */
  private R heartbeat(R record) {
    byte[] key = record.key() instanceof Struct name ? firstField(name) : null;
    return bytes(
        record, record.topic(), record.kafkaPartition(), key, firstField((Struct) record.value()), null, List.of());
  }

  private static byte[] firstField(Struct struct) {
    return struct.schema().fields().isEmpty()
        ? null
        : utf8(String.valueOf(struct.get(struct.schema().fields().get(0))));
  }

  private String topic(WaitRecord wait) {
    if (wait.deadLetterTopic() != null) {
      return wait.deadLetterTopic();
    }
    String template = config.getString(TOPIC);
    if (template == null) {
      throw new DataException(
          "row of expired waits, column dead_letter_topic: null, and the transform's option 'topic' isn't set. Set it");
    }
    return DeadLetterTopic.resolve(template, wait.original().topic(), wait.group() == null ? "" : wait.group());
  }

  private Long timestamp(Long originalMs) {
    boolean isOriginal = config.getString(TIMESTAMP).equals(ORIGINAL) && originalMs != null && originalMs >= 0;
    return isOriginal ? originalMs : null;
  }

  private R bytes(
      R record, String topic, Integer partition, byte[] key, byte[] value, Long timestamp, List<RecordHeader> headers) {
    // A sink's record must have one; a source's may leave it to the producer's partitioner.
    Integer placed = partition == null && record instanceof SinkRecord ? record.kafkaPartition() : partition;
    return record.newRecord(
        topic,
        placed,
        Schema.OPTIONAL_BYTES_SCHEMA,
        key,
        Schema.OPTIONAL_BYTES_SCHEMA,
        value,
        timestamp,
        RecordBytes.connectHeaders(headers));
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static void validateTopic(String option, Object template) {
    if (template == null) {
      return;
    }
    try {
      DeadLetterTopic.resolve(template.toString(), "topic", "group");
    } catch (DataException refused) {
      throw new ConfigException(option, template, refused.getMessage());
    }
  }
}
