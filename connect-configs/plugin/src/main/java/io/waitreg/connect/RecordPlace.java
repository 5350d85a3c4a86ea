package io.waitreg.connect;

import org.apache.kafka.connect.connector.ConnectRecord;
import org.apache.kafka.connect.sink.SinkRecord;

/**
 * Where a record stands in Kafka, whatever other transforms have made of its topic.
 *
 * @param partition null where it isn't known (a record on its way to Kafka)
 * @param offset likewise
 */
record RecordPlace(String topic, Integer partition, Long offset) {
  static RecordPlace of(ConnectRecord<?> record) {
    if (record instanceof SinkRecord consumed) {
      return new RecordPlace(
          consumed.originalTopic(), consumed.originalKafkaPartition(), consumed.originalKafkaOffset());
    }
    return new RecordPlace(record.topic(), record.kafkaPartition(), null);
  }
}
