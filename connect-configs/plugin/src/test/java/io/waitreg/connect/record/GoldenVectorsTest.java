package io.waitreg.connect.record;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.nio.charset.StandardCharsets;
import java.util.Locale;
import java.util.Map;
import java.util.function.Function;
import java.util.stream.Stream;
import org.apache.kafka.connect.errors.DataException;
import org.junit.jupiter.api.DynamicTest;
import org.junit.jupiter.api.TestFactory;

/** The Java codec does what the golden vectors say, byte for byte: they are those of the Python codec. */
class GoldenVectorsTest {
  private static final Map<String, Function<JsonNode, JsonNode>> OPERATIONS =
      Map.ofEntries(
          Map.entry("times parse", given -> VectorFields.number(Times.parse(given.asText()))),
          Map.entry("times format", given -> GoldenVector.plain(Times.format(given.longValue()))),
          Map.entry("headers_json encode", GoldenVectorsTest::encodedHeaders),
          Map.entry(
              "headers_json decode", given -> GoldenVector.listed(HeadersJson.decode(GoldenVector.binary(given)))),
          Map.entry(
              "headers_json_size decode", given -> GoldenVector.listed(HeadersJson.decode(blankHeaders(given)))),
          Map.entry(
              "headers_json_size decode_column",
              given -> GoldenVector.listed(HeadersJson.decodeColumn(blankHeaders(given)))),
          Map.entry("wait_record decode", GoldenVectorsTest::decodedWaitRecord),
          Map.entry("wait_record encode", GoldenVectorsTest::encodedWaitRecord),
          Map.entry("wait_record_legacy decode", GoldenVectorsTest::decodedWaitRecord),
          Map.entry("tombstone encode", GoldenVectorsTest::tombstone),
          Map.entry("lineage append", GoldenVectorsTest::appendedLineage),
          Map.entry("lineage split", GoldenVectorsTest::splitLineage),
          Map.entry("dead_letter encode", GoldenVectorsTest::encodedDeadLetter),
          Map.entry("dead_letter decode", GoldenVectorsTest::decodedDeadLetter),
          Map.entry("dead_letter topic", GoldenVectorsTest::deadLetterTopic));

  // What a sink or a source never needs: it makes no ids, reads no tombstone's outcome, redelivers nothing.
  private static final String NOT_NEEDED = "tombstone decode";

  @TestFactory
  Stream<DynamicTest> theCodecDoesWhatTheVectorSays() {
    return Stream.of(
            "times",
            "headers_json",
            "headers_json_size",
            "wait_record",
            "wait_record_legacy",
            "tombstone",
            "lineage",
            "dead_letter")
        .flatMap(file -> GoldenVector.of(file).stream())
        .filter(vector -> !(vector.file() + " " + vector.operation()).equals(NOT_NEEDED))
        .map(vector -> DynamicTest.dynamicTest(vector.toString(), () -> run(vector)));
  }

  private static void run(GoldenVector vector) {
    Function<JsonNode, JsonNode> operation = OPERATIONS.get(vector.file() + " " + vector.operation());
    if (vector.isRefused()) {
      assertThrows(DataException.class, () -> operation.apply(vector.input()));
    } else {
      assertEquals(vector.expected(), operation.apply(vector.input()));
    }
  }

  private static byte[] blankHeaders(JsonNode size) {
    return utf8("[" + " ".repeat(size.asInt() - 2) + "]");
  }

  private static byte[] utf8(String text) {
    return text.getBytes(StandardCharsets.UTF_8);
  }

  private static JsonNode encodedHeaders(JsonNode given) {
    return GoldenVector.shown(utf8(HeadersJson.encode(GoldenVector.headers(given))));
  }

  private static JsonNode decodedWaitRecord(JsonNode given) {
    return VectorFields.of(
        WaitRecordCodec.decode(
            Utf8.strictly(GoldenVector.binary(given.get("key"))),
            GoldenVector.binary(given.get("value")),
            GoldenVector.headers(given.get("headers"))));
  }

  private static JsonNode encodedWaitRecord(JsonNode given) {
    WaitRecord wait = VectorFields.wait(given);
    return VectorFields.object()
        .put("key", wait.waitId())
        .<ObjectNode>set("value", GoldenVector.shown(WaitRecordCodec.value(wait)))
        .set("headers", GoldenVector.listed(WaitRecordCodec.headers(wait)));
  }

  private static JsonNode tombstone(JsonNode given) {
    return GoldenVector.listed(Outcome.valueOf(given.asText().toUpperCase(Locale.ROOT)).headers());
  }

  private static JsonNode appendedLineage(JsonNode given) {
    Lineage lineage = VectorFields.lineage(given.get("lineage"));
    return GoldenVector.listed(lineage.appendedTo(GoldenVector.headers(given.get("headers"))));
  }

  private static JsonNode splitLineage(JsonNode given) {
    Lineage.Split split = Lineage.split(GoldenVector.headers(given));
    ObjectNode others = VectorFields.object();
    split.others().forEach((name, value) -> others.set(name, GoldenVector.shown(value)));
    return VectorFields.object()
        .<ObjectNode>set("headers", GoldenVector.listed(split.headers()))
        .<ObjectNode>set("lineage", VectorFields.of(split.lineage()))
        .set("others", others);
  }

  private static JsonNode encodedDeadLetter(JsonNode given) {
    return GoldenVector.listed(
        new DeadLetter(
                GoldenVector.headers(given.get("headers")),
                VectorFields.lineage(given.get("lineage")),
                VectorFields.failure(given.get("failure")))
            .encode());
  }

  private static JsonNode decodedDeadLetter(JsonNode given) {
    DeadLetter letter = DeadLetter.decode(GoldenVector.headers(given));
    return VectorFields.object()
        .<ObjectNode>set("headers", GoldenVector.listed(letter.headers()))
        .<ObjectNode>set("lineage", VectorFields.of(letter.lineage()))
        .set("failure", VectorFields.of(letter.failure()));
  }

  private static JsonNode deadLetterTopic(JsonNode given) {
    return GoldenVector.plain(
        DeadLetterTopic.resolve(
            given.get("template").asText(), given.get("topic").asText(), given.get("group").asText()));
  }
}
