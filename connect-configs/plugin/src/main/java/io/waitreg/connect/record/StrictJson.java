package io.waitreg.connect.record;

import com.fasterxml.jackson.core.JsonFactory;
import com.fasterxml.jackson.core.JsonParser;
import com.fasterxml.jackson.core.JsonProcessingException;
import com.fasterxml.jackson.core.JsonToken;
import com.fasterxml.jackson.core.StreamReadConstraints;
import java.io.IOException;
import java.io.UncheckedIOException;
import java.util.ArrayList;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import org.apache.kafka.connect.errors.DataException;

/** Reads JSON as the registry's other readers do, by the worker's Jackson. */
final class StrictJson {
  /** Stands for any number: no header holds one. */
  static final Object NUMBER = new Object();

  // Names come from other systems: neither interned nor kept in a symbol table.
  private static final JsonFactory JSON =
      JsonFactory.builder()
          .disable(JsonFactory.Feature.INTERN_FIELD_NAMES)
          .disable(JsonFactory.Feature.CANONICALIZE_FIELD_NAMES)
          .streamReadConstraints(
              StreamReadConstraints.builder()
                  .maxNestingDepth(1024)
                  .maxNumberLength(Integer.MAX_VALUE)
                  .maxStringLength(Integer.MAX_VALUE)
                  .maxNameLength(Integer.MAX_VALUE)
                  .build())
          .build();

  private StrictJson() {}

  /**
   * Reads a document.
   *
   * @return a List, a Map in the order of its members (of members with one name the last counts, at the place of the
   *     first), a String, a Boolean, {@link #NUMBER} or null
   * @throws DataException it isn't JSON; the message never holds the document
   */
  static Object read(byte[] utf8) {
    String text = Utf8.strictly(utf8);
    if (text == null) {
      throw new DataException("headers JSON: saw " + utf8.length + " bytes that aren't UTF-8");
    }
    try (JsonParser parser = JSON.createParser(text)) {
      Object document = value(parser, parser.nextToken());
      if (parser.nextToken() != null) {
        throw invalid(parser, "more after the document");
      }
      return document;
    } catch (JsonProcessingException refused) {
      // Its own message, which may quote the document, stays here.
      long offset = refused.getLocation() == null ? 0 : refused.getLocation().getCharOffset();
      throw new DataException("headers JSON: saw invalid JSON at character " + offset + " of " + text.length());
    } catch (IOException impossible) {
      throw new UncheckedIOException(impossible);
    }
  }

  private static Object value(JsonParser parser, JsonToken token) throws IOException {
    if (token == null) {
      throw invalid(parser, "its end too early");
    }
    return switch (token) {
      case START_ARRAY -> list(parser);
      case START_OBJECT -> object(parser);
      case VALUE_STRING -> whole(parser, parser.getText());
      case VALUE_NUMBER_INT, VALUE_NUMBER_FLOAT -> number(parser);
      case VALUE_NULL -> null;
      default -> parser.getBooleanValue();
    };
  }

  private static List<Object> list(JsonParser parser) throws IOException {
    var items = new ArrayList<>();
    for (JsonToken token = parser.nextToken(); token != JsonToken.END_ARRAY; token = parser.nextToken()) {
      items.add(value(parser, token));
    }
    return items;
  }

  private static Map<String, Object> object(JsonParser parser) throws IOException {
    var members = new LinkedHashMap<String, Object>();
    while (parser.nextToken() != JsonToken.END_OBJECT) {
      String name = whole(parser, parser.currentName());
      members.put(name, value(parser, parser.nextToken()));
    }
    return members;
  }

  /** Refuses half of a surrogate pair: UTF-8 has none, so it came by an escape. */
  private static String whole(JsonParser parser, String text) {
    if (Utf8.hasLoneSurrogate(text)) {
      throw invalid(parser, "half of a surrogate pair");
    }
    return text;
  }

  private static Object number(JsonParser parser) throws IOException {
    if (Double.isInfinite(Double.parseDouble(parser.getText()))) {
      throw invalid(parser, "a number beyond any");
    }
    return NUMBER;
  }

  private static DataException invalid(JsonParser parser, String what) {
    return new DataException("headers JSON: saw " + what + " at character " + parser.currentLocation().getCharOffset());
  }
}
