package io.waitreg.connect.record;

import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;

/** One vector of tests/vectors, in the form that the README there describes. */
public record GoldenVector(String file, String operation, String name, JsonNode input, JsonNode expected) {
  private static final ObjectMapper JSON = new ObjectMapper();
  private static final Path FOLDER = Path.of(System.getProperty("waitreg.vectors", "../../tests/vectors"));

  /** Returns the vectors of a file; those of an operation a/b once for each direction. */
  public static List<GoldenVector> of(String file) {
    try {
      JsonNode content = JSON.readTree(FOLDER.resolve(file + ".json").toFile());
      JsonNode parts = content.path("parts");
      var vectors = new ArrayList<GoldenVector>();
      for (Map.Entry<String, JsonNode> operation : content.get("vectors").properties()) {
        String[] directions = operation.getKey().split("/");
        for (JsonNode given : operation.getValue()) {
          String name = given.get(0).asText();
          JsonNode left = expanded(given.get(1), parts);
          JsonNode right = expanded(given.get(2), parts);
          vectors.add(new GoldenVector(file, directions[0], name, left, right));
          if (directions.length == 2) {
            vectors.add(new GoldenVector(file, directions[1], name, right, left));
          }
        }
      }
      return vectors;
    } catch (IOException unreadable) {
      throw new UncheckedIOException(unreadable);
    }
  }

  private static JsonNode expanded(JsonNode node, JsonNode parts) {
    if (node.has("text")) {
      var text = new StringBuilder();
      node.get("text").forEach(piece -> text.append(piece.isArray() ? repeated(piece) : piece.asText()));
      return JSON.getNodeFactory().textNode(text.toString());
    }
    if (node.isObject()) {
      var whole = JSON.createObjectNode();
      if (node.has("like")) {
        whole.setAll((ObjectNode) expanded(parts.get(node.get("like").asText()), parts));
      }
      node.properties().forEach(member -> whole.set(member.getKey(), expanded(member.getValue(), parts)));
      node.path("without").forEach(name -> whole.remove(name.asText()));
      return whole.without(List.of("like", "without"));
    }
    if (node.isArray()) {
      var list = JSON.createArrayNode();
      node.forEach(item -> spread(expanded(item, parts), list));
      return list;
    }
    return node;
  }

  private static String repeated(JsonNode piece) {
    return piece.get(0).asText().repeat(piece.get(1).asInt());
  }

  private static void spread(JsonNode item, ArrayNode list) {
    if (item.isObject()) {
      item.properties().forEach(member -> list.addArray().add(member.getKey()).add(member.getValue()));
    } else {
      list.add(item);
    }
  }

  /** Tells whether the input must be refused. */
  public boolean isRefused() {
    return expected.isTextual() && expected.asText().equals("error");
  }

  /** Returns the bytes that a vector shows as text; null for null. */
  public static byte[] binary(JsonNode text) {
    return text.isNull() ? null : text.asText().getBytes(StandardCharsets.ISO_8859_1);
  }

  /** Returns bytes as a vector shows them. */
  public static JsonNode shown(byte[] bytes) {
    return plain(bytes == null ? null : new String(bytes, StandardCharsets.ISO_8859_1));
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
    headers.forEach(header -> list.addArray().add(header.name()).add(shown(header.value())));
    return list;
  }

  /** Returns the headers of a column as a vector lists them. */
  public static JsonNode column(String json) {
    return listed(HeadersJson.decode(json.getBytes(StandardCharsets.UTF_8)));
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
