package io.waitreg.connect;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.JsonNodeFactory;
import com.fasterxml.jackson.databind.node.ObjectNode;
import io.waitreg.connect.record.GoldenVector;
import java.time.Instant;
import java.time.InstantSource;
import java.util.HashMap;
import java.util.Map;
import java.util.stream.Stream;
import org.apache.kafka.connect.data.Struct;
import org.apache.kafka.connect.errors.DataException;
import org.apache.kafka.connect.source.SourceRecord;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** A row of an expired registration becomes what the sweeper publishes for it, byte for byte. */
class ExpiredVectorsTest {
  @TestFactory
  Stream<DynamicTest> aRowBecomesWhatTheSweeperPublishes() {
    return GoldenVector.of("expired").stream()
        .flatMap(
            vector ->
                Stream.of(ExpiredRow.Types.values())
                    .map(types -> DynamicTest.dynamicTest(vector + ", " + types, () -> run(vector, types))));
  }

  @TestFactory
  Stream<DynamicTest> asManyHeadersAreReadAsTheSweeperReads() {
    return GoldenVector.of("headers_json_size").stream()
        .filter(vector -> vector.operation().equals("decode_column"))
        .map(vector -> DynamicTest.dynamicTest(vector.toString(), () -> runColumn(vector)));
  }

  private static void runColumn(GoldenVector size) {
    GoldenVector plain = GoldenVector.of("expired").get(0);
    ObjectNode fields = plain.input().get("row").deepCopy();
    fields.put("original_headers", "[" + " ".repeat(size.input().asInt() - 2) + "]");
    Struct row = ExpiredRow.of(fields, ExpiredRow.Types.values()[0]);
    if (size.isRefused()) {
      assertThrows(DataException.class, () -> published(plain, row, false));
    } else {
      assertEquals(plain.expected().get("value"), published(plain, row, false).get("value"));
    }
  }

  private static void run(GoldenVector vector, ExpiredRow.Types types) {
    Struct row = ExpiredRow.of(vector.input().get("row"), types);
    if (vector.isRefused()) {
      assertThrows(DataException.class, () -> published(vector, row, false));
    } else {
      assertEquals(vector.expected(), published(vector, row, false));
      assertEquals(vector.expected(), published(vector, ExpiredRow.enveloped("c", null, row), true));
    }
  }

  private static JsonNode published(GoldenVector vector, Struct value, boolean after) {
    long nowMs = vector.input().get("now_ms").longValue();
    InstantSource clock = InstantSource.fixed(Instant.ofEpochMilli(nowMs));
    var transform = new JsonHeadersToKafkaHeaders<SourceRecord>(clock);
    var options = new HashMap<String, Object>(Map.of("after", after, "emit", vector.operation()));
    options.put("topic", vector.input().get("template").asText());
    transform.configure(options);
    SourceRecord made = transform.apply(ExpiredRow.record(value));
    ObjectNode fields = JsonNodeFactory.instance.objectNode().put("topic", made.topic());
    if (vector.operation().equals("tombstone")) {
      fields.set("partition", GoldenVector.parsed(made.kafkaPartition().toString()));
    }
    return fields
        .<ObjectNode>set("key", GoldenVector.shown((byte[]) made.key()))
        .<ObjectNode>set("value", GoldenVector.shown((byte[]) made.value()))
        .set("headers", GoldenVector.listed(RecordBytes.headers(made.headers())));
  }
}
