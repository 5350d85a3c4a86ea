package io.waitreg.connect.record;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Base64;
import java.util.List;

/** One vector of tests/vectors, and how binary data stands in it. */
public record GoldenVector(String file, String name, String operation, JsonNode input, JsonNode expected) {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Path FOLDER = Path.of(System.getProperty("waitreg.vectors", "../../tests/vectors"));

  /** Returns the vectors of a file. */
  public static List<GoldenVector> of(String file) {
    try {
      var vectors = new ArrayList<GoldenVector>();
      for (JsonNode vector : JSON.readTree(FOLDER.resolve(file + ".json").toFile()).get("vectors")) {
        vectors.add(
            new GoldenVector(
                file,
                vector.get("name").asText(),
                vector.get("operation").asText(),
                vector.get("input"),
                vector.get("expected")));
      }
      return vectors;
    } catch (IOException unreadable) {
      throw new UncheckedIOException(unreadable);
    }
  }

  /** Tells whether the input must be refused. */
  public boolean isRefused() {
    return expected.isTextual() && expected.asText().equals("error");
  }

  /** Returns what a vector holds in base64; null for null. */
  public static byte[] binary(JsonNode base64) {
    return base64.isNull() ? null : Base64.getDecoder().decode(base64.asText());
  }

  /** Returns bytes as a vector holds them. */
  public static JsonNode base64(byte[] bytes) {
    return bytes == null ? JSON.nullNode() : JSON.getNodeFactory().textNode(Base64.getEncoder().encodeToString(bytes));
  }

  /** Returns the headers that a vector lists. */
  public static List<RecordHeader> headers(JsonNode listed) {
    var headers = new ArrayList<RecordHeader>();
    listed.forEach(pair -> headers.add(new RecordHeader(pair.get(0).asText(), binary(pair.get(1)))));
    return headers;
  }

  /** Returns headers as a vector lists them. */
  public static JsonNode listed(List<RecordHeader> headers) {
    var list = JSON.createArrayNode();
    headers.forEach(header -> list.addArray().add(header.name()).add(base64(header.value())));
    return list;
  }

  /** Returns any text, number or null as a vector holds it. */
  public static JsonNode plain(Object value) {
    return JSON.valueToTree(value);
  }

  /** Parses JSON that the codec wrote. */
  public static JsonNode parsed(String json) {
    try {
      return JSON.readTree(json);
    } catch (IOException unreadable) {
      throw new UncheckedIOException(unreadable);
    }
  }

  @Override
  public String toString() {
    return file + ": " + operation + " " + name;
  }
}
